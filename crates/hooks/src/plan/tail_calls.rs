//! Calls at the end of a function (`syscall; ret`): no hook fits behind them, so their results are seen at the place
//! to which the function returns. musl makes all calls at which threads can be cancelled in this way.

use super::addresses::Targets;
use super::effects::{ends, is_direct_call};
use super::extents::Extent;
use super::patch_span::Block;
use super::planner::{EndCall, Planner};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// Instructions from a function's start to its call, at most.
const REACH: usize = 32;
/// Number of instructions decoded; no window needs so many.
const ENOUGH: usize = 8;

/// The callers of a function, as far as code tells.
#[derive(Default)]
struct Callers {
    /// Return addresses of calls.
    returns: Vec<u64>,
    /// True if anything jumps to the function.
    jumped_to: bool,
}

/// Returns the function that ends with the call at `code[site]`, if it is entered at its start only and leaves the
/// stack as it was, so that its return address lies at rsp.
pub(super) fn function_of(code: &[Instruction], site: usize, targets: &Targets) -> Option<EndCall> {
    let call = code.get(site)?;
    if code.get(site + 1)?.flow_control() != FlowControl::Return {
        return None;
    }
    let idle = |i: &Instruction| matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
    let body = code.get(site.saturating_sub(REACH)..site)?;
    let end = body.iter().rposition(ends)?;
    let body = body.get(end + 1..)?;
    let body = body.get(body.iter().position(|i| !idle(i))?..)?;
    let still =
        |i: &Instruction| !i.is_stack_instruction() && i.op0_register().full_register() != iced_x86::Register::RSP;
    let function = body.first()?.ip();
    let alone = body.iter().all(still) && targets.inside(function, call.next_ip()).is_none();
    alone.then_some(EndCall { site: call.ip(), function })
}

impl Planner<'_> {
    /// Plans a hook at the place to which functions that end with a call return, if each has a single caller.
    pub(super) fn look_where_returned(&mut self, extents: &[Extent]) {
        for returning in std::mem::take(&mut self.returning) {
            let callers = self.callers(returning.function, extents);
            let ([back], false) = (callers.returns.as_slice(), callers.jumped_to) else { continue };
            self.hook_return(returning.site, *back);
        }
    }

    fn callers(&self, function: u64, extents: &[Extent]) -> Callers {
        let mut callers = Callers::default();
        for extent in extents {
            let Some(region) = self.image.region(extent.start) else { continue };
            let bytes = region.slice(extent.start, extent.end);
            for i in Decoder::with_ip(64, bytes, extent.start, DecoderOptions::NONE).iter() {
                if i.op0_kind() != OpKind::NearBranch64 || i.near_branch64() != function {
                    continue;
                }
                if is_direct_call(&i) {
                    callers.returns.push(i.next_ip());
                } else {
                    callers.jumped_to = true;
                }
            }
        }
        callers
    }

    fn hook_return(&mut self, site: u64, back: u64) {
        let Some(region) = self.image.region(back) else { return };
        let mut decoder = Decoder::with_ip(64, region.slice(back, region.end()), back, DecoderOptions::NONE);
        let code: Vec<_> = decoder.iter().take(ENOUGH).collect();
        let block = Block { code: &code, targets: self.targets, region, can_call: false };
        let span = block.extend(0, 0).and_then(|(end, padding)| block.span(0..end, padding));
        let Some(span) = span.filter(|span| block.is_free(span, &self.reserved)) else { return };
        if let Some(site) = self.plan.sites.iter_mut().find(|s| s.address == site) {
            self.reserved.add(&span, site.address);
            site.returned = Some(span);
        }
    }
}
