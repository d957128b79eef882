//! Handles returns from signals that debuggers recognise by their bytes.
//!
//! If there is no call frame information, debuggers and unwinders recognise a signal's frame by the code to which its
//! handler returns: `mov $15,%rax; syscall`, and no other bytes (gdb: gdb/amd64-linux-tdep.c; libgcc:
//! config/i386/linux-unwind.h). A jump over them would end backtraces there. Go's run-time has a few handlers written
//! in assembler: signals are counted where those return.

use super::calls::SYSCALL_LEN;
use super::go;
use super::patch_span::Block;
use super::planner::Planner;
use super::types::{Site, Span, UnpatchableReason, Unplanned};
use crate::numbers::RT_SIGRETURN;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

/// The bytes of `mov $15,%rax; syscall`, by which unwinders recognise a signal's return.
pub const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// Number of bytes in [`SIGNAL_RETURN`].
pub const SIGNAL_RETURN_LEN: u64 = SIGNAL_RETURN.len() as u64;

/// Number of bytes in [`SIGNAL_RETURN`] before the call.
pub const SIGNAL_NUMBER_LEN: u64 = SIGNAL_RETURN_LEN - SYSCALL_LEN as u64;

/// Go's functions that the kernel enters with a signal and that return with the stack with which they were entered;
/// its other handlers jump to one of these (src/runtime/sys_linux_amd64.s).
const HANDLERS: &[&str] = &["runtime.sigtramp", "runtime.sigprofNonGoWrapper"];

/// Instructions that replace the end of a handler, at most.
const REACH: usize = 8;

impl Planner<'_> {
    /// Moves the hooks of a signal's return whose bytes must stay to the handlers that return there, if those are
    /// known. Otherwise GCC's unwinder can be told of the return, and gdb uses the function's name; in a file without
    /// names it is left alone.
    pub(super) fn spare_signals_returns(&mut self) {
        let known = |s: &&Site| s.number == Some(RT_SIGRETURN) && self.is_known_by_bytes(s.address);
        let calls: Vec<u64> = self.plan.sites.iter().filter(known).map(|s| s.address).collect();
        // With several such returns it is not known which handler returns through which: none is moved.
        let [call] = *calls.as_slice() else { return };
        let exits = self.exits();
        if exits.is_empty() && !self.image.symbols.is_empty() {
            self.plan.signal_return = Some(call - SIGNAL_NUMBER_LEN);
            return;
        }
        self.plan.unplanned.retain(|u| u.address != call);
        if exits.is_empty() {
            self.plan.unplanned.push(Unplanned { address: call, why: UnpatchableReason::KnownByBytes });
        }
        let Some(site) = self.plan.sites.iter_mut().find(|s| s.address == call) else { return };
        for span in [site.entry_span.take(), site.return_span.take(), site.wrap_span.take()].into_iter().flatten() {
            self.reserved.release(&span);
        }
        site.exits.clone_from(&exits);
        for span in &exits {
            self.take(Some(span), call);
        }
    }

    fn is_known_by_bytes(&self, call: u64) -> bool {
        let start = call.saturating_sub(SIGNAL_NUMBER_LEN);
        let is_told_of = |f: &systoll_binfile::cfi::Function| f.is_signal_trampoline && f.start <= call && call < f.end;
        let region = self.image.region(start);
        region.is_some_and(|r| r.slice(start, start + SIGNAL_RETURN_LEN) == SIGNAL_RETURN)
            && !self.cfi.functions.all().iter().any(is_told_of)
            && !self.image.shadow_stack
    }

    /// Returns the ends of Go's handlers; nothing unless all are known and hooks fit there.
    fn exits(&self) -> Vec<Span> {
        let mut exits = Vec::new();
        for (start, end) in go::named(self.image, HANDLERS) {
            let Some(region) = self.image.region(start) else { return Vec::new() };
            let code: Vec<_> =
                Decoder::with_ip(64, region.slice(start, end), start, DecoderOptions::NONE).iter().collect();
            let block = Block { code: &code, targets: self.targets, region, can_call: false };
            let returns = code.iter().enumerate().filter(|(_, i)| i.flow_control() == FlowControl::Return);
            for (n, _) in returns {
                let Some(span) = self.exit(&block, n) else { return Vec::new() };
                exits.push(span);
            }
        }
        exits
    }

    /// Returns the fewest instructions that end with the return at `n` and make room for a jump.
    fn exit(&self, block: &Block<'_>, n: usize) -> Option<Span> {
        let straight = |i: &Instruction| i.flow_control() == FlowControl::Next && !i.is_invalid();
        let starts = (n.saturating_sub(REACH)..n).rev();
        let starts = starts.take_while(|first| block.code.get(*first).is_some_and(straight));
        { starts }
            .filter_map(|first| block.span(first..n + 1, 0))
            .find(Span::holds_a_jump)
            .filter(|s| block.is_free(s, &self.reserved))
    }
}
