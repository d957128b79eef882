//! Finds a file's calls and gives each what hooks there is room for.

use super::cfi::Cfi;
use super::effects::{Effects, goes_on};
use super::extents::Extent;
use super::image::{Image, Region};
use super::targets::Targets;
use super::types::{Plan, Site, Span, Unplanned, Why};
use super::window::{Block, Taken};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};

/// Instructions held at a time (40 bytes each); a longer function's sites at a seam get less.
const BLOCK: usize = 1 << 16;
/// Instructions that decoding from a wrong start may take to fall into step.
const OUT_OF_STEP: usize = 16;

/// Calls that make processes, images or code, and so are waited for by whoever writes hooks:
/// clone, fork, vfork, execve, execveat, clone3, mmap.
const WRAPPED: &[u32] = &[56, 57, 58, 59, 322, 435, 9];

const ARCH_PRCTL: u32 = 158;
/// `ARCH_SET_GS` of the kernel's asm/prctl.h.
const ARCH_SET_GS: u32 = 0x1001;

/// Whether the bytes of a `syscall` occur.
pub(super) fn has_bytes(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == [0x0f, 0x05])
}

/// Whether a `syscall` is really among the instructions of `extent`.
pub(super) fn has_call(image: &Image<'_>, extent: &Extent) -> bool {
    let Some(bytes) = image.region(extent.start).map(|r| r.slice(extent.start, extent.end)) else { return false };
    has_bytes(bytes)
        && Decoder::with_ip(64, bytes, extent.start, DecoderOptions::NONE)
            .iter()
            .any(|i| i.mnemonic() == Mnemonic::Syscall)
}

/// Plans the sites of one file, extent after extent.
pub(super) struct Planner<'a> {
    pub(super) image: &'a Image<'a>,
    pub(super) cfi: Cfi<'a>,
    pub(super) targets: &'a Targets,
    pub(super) effects: Effects,
    pub(super) taken: Taken,
    pub(super) plan: Plan,
}

impl Planner<'_> {
    /// Plans what `extent` has.
    pub(super) fn extent(&mut self, extent: &Extent) {
        let image = self.image;
        let Some(region) = image.region(extent.start) else { return };
        let bytes = region.slice(extent.start, extent.end);
        let mut decoder = Decoder::with_ip(64, bytes, extent.start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let code: Vec<_> = decoder.iter().take(BLOCK).collect();
            self.block(&code, extent.known, region);
        }
    }

    fn block(&mut self, code: &[Instruction], known: bool, region: &Region<'_>) {
        let calls = code.iter().enumerate().filter(|(_, i)| i.mnemonic() == Mnemonic::Syscall);
        let calls: Vec<usize> = calls.map(|(n, _)| n).collect();
        let (sure, unsure): (Vec<_>, Vec<_>) = calls.into_iter().partition(|n| known || self.is_code(code, *n));
        for call in unsure.iter().filter_map(|n| code.get(*n)) {
            self.plan.sites.push(bare(call.ip(), None));
            self.plan.unplanned.push(Unplanned { address: call.ip(), why: Why::Unsure });
        }
        let block = Block { code, targets: self.targets, region };
        let first = self.plan.sites.len();
        let mut obstacles = Vec::new();
        // Counting comes first: no site's hook behind may take the room of another's before.
        for n in &sure {
            let number = self.number(code, *n);
            let before = block.before(*n, number, &mut self.effects, &self.taken);
            let mut site = bare(code.get(*n).map_or(0, Instruction::ip), number);
            obstacles.push(before.as_ref().err().copied());
            site.before = before.ok();
            self.take(site.before.as_ref(), site.address);
            self.plan.sites.push(site);
        }
        for (at, (n, obstacle)) in (first..).zip(sure.iter().zip(obstacles)) {
            let Some(site) = self.plan.sites.get_mut(at) else { return };
            let wrapped = site.number.is_none_or(|number| WRAPPED.contains(&number));
            if wrapped || obstacle.is_some() {
                site.whole = block.whole(*n, &self.taken);
            }
            if let (Some(why), None) = (obstacle, &site.whole) {
                self.plan.unplanned.push(Unplanned { address: site.address, why });
            }
            let (whole, address) = (site.whole.clone(), site.address);
            self.take(whole.as_ref(), address);
        }
        for (at, n) in (first..).zip(&sure) {
            let Some(site) = self.plan.sites.get_mut(at) else { return };
            site.after = block.after(*n, &self.taken);
            site.after_is_target = self.targets.contains(site.address.saturating_add(2));
            site.cfa = self.cfi.cfa_offset(site.address);
            site.hook_cfa = site.before.as_ref().and_then(|span| self.cfi.cfa_offset(span.end()));
            let (after, address) = (site.after.clone(), site.address);
            self.take(after.as_ref(), address);
        }
    }

    fn take(&mut self, span: Option<&Span>, site: u64) {
        if let Some(span) = span {
            self.taken.add(span, site);
        }
    }

    fn number(&mut self, code: &[Instruction], n: usize) -> Option<u32> {
        let number = self.effects.constant(code, n, Register::RAX, self.targets);
        if number == Some(ARCH_PRCTL) {
            let what = self.effects.constant(code, n, Register::RDI, self.targets);
            self.plan.uses_gs |= what == Some(ARCH_SET_GS);
        }
        number
    }

    /// Whether the call at `code[n]`, found where nothing says that a function is, belongs to
    /// code: something leads there, and no target nearby contradicts how it was decoded.
    fn is_code(&self, code: &[Instruction], n: usize) -> bool {
        let from = n.saturating_sub(OUT_OF_STEP);
        let near = code.get(from..(n + OUT_OF_STEP).min(code.len())).unwrap_or_default();
        let in_step =
            |i: &Instruction| i.mnemonic() != Mnemonic::INVALID && self.targets.inside(i.ip(), i.next_ip()).is_none();
        let call = code.get(n).is_some_and(|i| self.targets.contains(i.ip()));
        let mut back = code.get(..n).unwrap_or_default().iter().rev();
        let led_to =
            call || back.by_ref().take_while(|i| goes_on(i) || can_return(i)).any(|i| self.targets.contains(i.ip()));
        led_to && near.iter().all(in_step)
    }
}

fn can_return(i: &Instruction) -> bool {
    matches!(i.flow_control(), iced_x86::FlowControl::Call | iced_x86::FlowControl::IndirectCall)
}

fn bare(address: u64, number: Option<u32>) -> Site {
    Site { address, number, before: None, after: None, after_is_target: false, whole: None, cfa: None, hook_cfa: None }
}
