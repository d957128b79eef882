//! Chooses the instructions around a call that a jump can replace.
//!
//! Reasons for the rules: the call itself stays put because musl and newer glibc compare the interrupted address with
//! the call's to cancel a thread, and because unwinders know only addresses of the file. Hooks use rcx and r11, which
//! the kernel destroys anyway, and flags. No code may jump into the inside of a span, or between hook and call, which
//! would bypass the hook.

use super::addresses::Targets;
use super::effects::{Effects, can_move, ends, flags_cross, is_branch, is_direct_call, reads_flags};
use super::image::Region;
use super::types::{JUMP_LEN, Span, UnpatchableReason, crosses_pages};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a near jump.
const JUMP: u64 = JUMP_LEN;
/// Instructions examined on either side of a call, at most.
const REACH: usize = 8;

/// The registers that hold a call's arguments.
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::R10, Register::R8, Register::R9];

/// Code around calls, with the facts about it.
pub(super) struct Block<'a> {
    pub(super) code: &'a [Instruction],
    pub(super) targets: &'a Targets,
    pub(super) region: &'a Region<'a>,
    /// True if a call may be made from elsewhere with the return address that it has here; a shadow stack would detect
    /// that.
    pub(super) can_call: bool,
}

/// The bytes taken by hooks: their end and their site's address, by their start.
#[derive(Default)]
pub(super) struct ReservedSpans(BTreeMap<u64, (u64, u64)>);

impl ReservedSpans {
    pub(super) fn add(&mut self, span: &Span, site: u64) {
        self.0.insert(span.start, (span.end(), site));
    }

    /// Releases a span.
    pub(super) fn release(&mut self, span: &Span) {
        self.0.remove(&span.start);
    }

    /// Returns true if a byte of `start..end` belongs to another site than `site`.
    fn by_other(&self, start: u64, end: u64, site: u64) -> bool {
        // Spans are short and disjoint except for a site's own, so only the last four can overlap.
        self.0.range(..end).rev().take(4).any(|(_, (their_end, theirs))| *their_end > start && *theirs != site)
    }
}

impl Block<'_> {
    fn address(&self, n: usize) -> Option<u64> {
        self.code.get(n).map(Instruction::ip)
    }

    /// Returns true if flags set before the call at `site` matter behind it.
    pub(super) fn flags_cross(&self, site: usize) -> bool {
        flags_cross(self.code, site)
    }

    /// Searches instructions before the call at `site`, nearest first; those whose jump would lie across two pages
    /// are taken only if there are no others. If `adjacent` is true, only those right before the call count, where
    /// nothing but the call needs the value of eax.
    pub(super) fn entry_span(
        &self,
        site: usize,
        how: (Option<u32>, bool),
        effects: &mut Effects,
        reserved: &ReservedSpans,
    ) -> Result<Span, UnpatchableReason> {
        let nearest = self.entry_span_of(site, how, effects, (reserved, false))?;
        if !nearest.jump_crosses_pages() {
            return Ok(nearest);
        }
        Ok(self.entry_span_of(site, how, effects, (reserved, true)).unwrap_or(nearest))
    }

    /// Does the same as [`Block::entry_span`], with `in_page` only for a jump that lies in one page.
    fn entry_span_of(
        &self,
        site: usize,
        (number, adjacent): (Option<u32>, bool),
        effects: &mut Effects,
        (reserved, in_page): (&ReservedSpans, bool),
    ) -> Result<Span, UnpatchableReason> {
        let call = self.address(site).ok_or(UnpatchableReason::TooShort)?;
        if self.targets.contains(call) {
            return Err(UnpatchableReason::BranchTarget);
        }
        let mut why = UnpatchableReason::TooShort;
        for first in (site.saturating_sub(REACH)..site).rev() {
            let Some(i) = self.code.get(first) else { break };
            if !can_move(i) || ends(i) {
                return Err(if why == UnpatchableReason::TooShort { UnpatchableReason::Fixed } else { why });
            }
            if self.targets.inside(i.ip(), call).is_some() {
                return Err(if why == UnpatchableReason::TooShort { UnpatchableReason::BranchTarget } else { why });
            }
            // The hook reads the call's arguments, so that it should come after all that sets them.
            for behind in (first + 1..=site).rev() {
                let Some(end) = self.address(behind).filter(|end| end - i.ip() >= JUMP) else { continue };
                if adjacent && behind != site || in_page && crosses_pages(i.ip()) {
                    continue;
                }
                if !self.undisturbed(behind..site, number, effects) {
                    why = UnpatchableReason::RegistersInUse;
                } else if reserved.by_other(i.ip(), end, call) {
                    why = UnpatchableReason::ReservedByOther;
                } else {
                    return self.span(first..behind, 0).ok_or(why);
                }
            }
        }
        Err(why)
    }

    /// Returns true if a hook before `between` may use rcx, r11 and flags, is always followed by the call, and knows
    /// the call's number and its arguments.
    fn undisturbed(&self, between: Range<usize>, number: Option<u32>, effects: &mut Effects) -> bool {
        self.code.get(between).unwrap_or_default().iter().all(|i| {
            let known = number.is_some() || !effects.writes(i, Register::RAX);
            let free = [Register::RCX, Register::R11].iter().all(|r| !effects.reads(i, *r));
            let sets_argument = ARGUMENTS.iter().any(|r| effects.writes(i, *r));
            known && free && !sets_argument && !is_branch(i) && !reads_flags(i)
        })
    }

    /// Returns the instructions behind the call at `site` that a jump can replace.
    pub(super) fn return_span(&self, site: usize, reserved: &ReservedSpans) -> Option<Span> {
        let call = self.address(site)?;
        let (end, padding) = self.extend(site + 1, 0)?;
        let span = self.span(site + 1..end, padding)?;
        let free = !reserved.by_other(span.start, span.end(), call) && !flags_cross(self.code, site);
        (free && self.targets.inside(span.start, span.end()).is_none()).then_some(span)
    }

    /// Returns true if no code jumps into `span`, and no site has taken a byte of it.
    pub(super) fn is_free(&self, span: &Span, reserved: &ReservedSpans) -> bool {
        !reserved.by_other(span.start, span.end(), u64::MAX) && self.targets.inside(span.start, span.end()).is_none()
    }

    /// Returns a window around the call at `site`. A window whose jump lies in one page is preferred, then one with
    /// the fewest branches, then one with the fewest instructions.
    pub(super) fn wrap_span(&self, site: usize, reserved: &ReservedSpans) -> Option<Span> {
        let call = self.address(site)?;
        if flags_cross(self.code, site) {
            return None;
        }
        let mut best: Option<((bool, usize, usize), Span)> = None;
        for first in (site.saturating_sub(REACH)..=site).rev() {
            let i = self.code.get(first)?;
            let movable = first == site || can_move(i) && !is_branch(i) && !ends(i);
            if !movable || self.targets.inside(i.ip(), call.saturating_add(1)).is_some() {
                break;
            }
            let Some((end, padding)) = self.extend(site + 1, call.saturating_add(2) - i.ip()) else { continue };
            let branches = self.code.get(first..end).unwrap_or_default().iter().filter(|i| is_branch(i)).count();
            let cost = (crosses_pages(i.ip()), branches, end - first);
            let Some(span) = self.span(first..end, padding) else { continue };
            let free = !reserved.by_other(span.start, span.end(), call)
                && self.targets.inside(span.start, span.end()).is_none();
            if free && best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, span));
            }
        }
        best.map(|b| b.1)
    }

    /// Collects instructions from `first` on until they make room for a jump, together with the `have` bytes before
    /// them. Returns their end and the padding that is needed. The last one may be a call, which returns to an
    /// address behind the jump.
    pub(super) fn extend(&self, first: usize, have: u64) -> Option<(usize, usize)> {
        let (mut len, mut n) = (have, first);
        while len < JUMP {
            let i = self.code.get(n)?;
            let entered = (have > 0 || n > first) && self.targets.contains(i.ip());
            let call = self.can_call && is_direct_call(i) && len + i.len() as u64 >= JUMP;
            if entered || !(call || can_move(i)) {
                return None;
            }
            len += i.len() as u64;
            n += 1;
            if len < JUMP && ends(i) {
                return Some((n, self.padding(i.next_ip(), JUMP - len)?));
            }
        }
        Some((n, 0))
    }

    /// Returns the bytes of whole filling instructions from `at` on that make up at least `need` bytes.
    fn padding(&self, at: u64, need: u64) -> Option<usize> {
        let bytes = self.region.slice(at, at.saturating_add(need + 15));
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let mut len = 0;
        while (len as u64) < need {
            let filling = decoder.can_decode().then(|| decoder.decode())?;
            let idle = matches!(filling.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            if !idle || self.targets.contains(filling.ip()) {
                return None;
            }
            len += filling.len();
        }
        Some(len)
    }

    pub(super) fn span(&self, instructions: Range<usize>, padding: usize) -> Option<Span> {
        let code = self.code.get(instructions)?;
        let start = code.first()?.ip();
        let end = code.last()?.next_ip().checked_add(padding as u64)?;
        let bytes = self.region.slice(start, end).to_vec();
        let complete = bytes.len() as u64 == end.checked_sub(start)?;
        complete.then_some(Span { start, bytes, instructions: code.len(), padding })
    }
}
