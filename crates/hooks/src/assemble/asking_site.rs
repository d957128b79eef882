//! Code that asks the launcher before a call is made.

use super::emitter::{Emitted, Emitter, asm, gs, gs32};
use super::entry::Entry;
use super::sampling::{Timing, keep_marks};
use super::start::{arm, start_time};
use crate::layout::{Question, slot};
use iced_x86::code_asm::*;

/// A site that asks the launcher before its calls.
#[derive(Clone, Copy)]
pub(super) struct AskingSite {
    /// Address of the site's root.
    pub(super) root: u64,
    /// Facts about the site that the code before its calls needs.
    pub(super) entry: Entry,
    /// True if calls are answered in place.
    pub(super) elide: bool,
    /// True if all arguments are in their registers: nothing lies between hook and call.
    pub(super) adjacent: bool,
}

impl AskingSite {
    /// Asks the launcher. The time for that does not count as the call's. Lost: rcx, r11, flags.
    pub(super) fn ask(self, e: &mut Emitter, question: Question) -> Emitted {
        let answered = e.label();
        asm!(e; mov(r11, self.root););
        e.ask(question, answered)?;
        e.here(answered)?;
        start_again(e, self.elide, self.entry)
    }
}

/// Reads the clock again if it was read for this call, so that asking does not count as part of the call. While the
/// thread asks, the first reading stays in place for the launcher. Lost: rcx, r11, flags.
fn start_again(e: &mut Emitter, elide: bool, entry: Entry) -> Emitted {
    let untimed = e.label();
    match entry.timing {
        Timing::None => return Ok(()),
        Timing::All => {}
        Timing::Sampled { .. } => asm!(e; cmp(gs(slot::START), 0); je(untimed);),
    }
    if entry.arms {
        arm(e, elide)?;
    }
    if entry.timing == Timing::All {
        start_time(e)?;
    } else {
        asm!(e; mov(rcx, rax); mov(r11, rdx); rdtsc(););
        keep_marks(e)?;
        asm!(e; or(gs32(slot::START + 4), edx); mov(gs32(slot::START), eax); mov(rax, rcx); mov(rdx, r11););
    }
    e.here(untimed)?;
    Ok(())
}
