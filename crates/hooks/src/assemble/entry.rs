//! Code that runs before a call: it counts the call in its context, and notes what its return needs.

use super::Options;
use super::emitter::{Emitted, Emitter, asm, at, gs, gs_at};
use super::sampling::{self, Timing};
use super::start::{arm, start_time};
use super::tree_walk::{Start, walk, walk_for_the_last_time};
use crate::layout::{capture, node, record, slot};
use crate::numbers::EXIT;
use iced_x86::code_asm::*;
use systoll_model::{Signature, Sysno};

/// Facts about a site that [`before`] needs.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// The system call, if it is known: eax may not hold it yet.
    pub(super) number: Option<u32>,
    /// Start of the walk through the site's tree.
    pub(super) start: Start,
    /// Register from which return addresses are searched, if any.
    pub(super) base: Option<AsmRegister64>,
    /// True if the returns of the site's calls are hooked.
    pub(super) results: bool,
    /// The calls of the site that are timed.
    pub(super) timing: Timing,
    /// True if the thread asks the kernel to show that it was scheduled out, or received a signal.
    pub(super) arms: bool,
}

/// Counts a call. Lost: rcx, r11, flags.
pub(super) fn before(e: &mut Emitter, options: &Options, entry: Entry) -> Emitted {
    if entry.results {
        interrupted(e)?;
    }
    match (entry.number, entry.start) {
        (Some(EXIT), Start::Root(root)) if entry.base == Some(rsp) => walk_for_the_last_time(e, root)?,
        // With rbp there is no way to find out if the stack still exists.
        (Some(EXIT), start) => walk(e, start, None, rcx)?,
        (_, start) => walk(e, start, entry.base, rcx)?,
    }
    if entry.results {
        // Set rsp first: from here on a signal handler's call keeps what is in the slot.
        asm!(e; mov(gs(slot::RSP), rsp); mov(gs(slot::NODE), r11););
    }
    count(e, rcx)?;
    let asked = e.label();
    if options.windows {
        window(e, options, entry.number, asked)?;
    }
    let arms = |e: &mut Emitter| if entry.arms { arm(e, options.elide) } else { Ok(()) };
    match entry.timing {
        Timing::None | Timing::All => {
            e.here(asked)?;
            arms(e)?;
            if entry.timing == Timing::All {
                start_time(e)?;
            }
            Ok(())
        }
        Timing::Sampled { may_wait } => sampling::start(e, options, asked, may_wait),
    }
}

/// Counts at the node in r11 and leaves its record's offset in `scratch`.
pub(super) fn count(e: &mut Emitter, scratch: AsmRegister64) -> Emitted {
    asm!(e; mov(scratch, at(r11, node::RECORD)); inc(gs_at(scratch, record::ENTERED)););
    Ok(())
}

/// Puts another pending call of this thread aside: this call is made by a signal handler that interrupted it, or the
/// other never ended, because a handler jumped away.
fn interrupted(e: &mut Emitter) -> Emitted {
    let (aside, clear, room) = (e.label(), e.label(), e.label());
    asm!(e; cmp(gs(slot::RSP), 0); jne(aside););
    e.here(clear)?;
    e.cold(move |e| {
        e.here(aside)?;
        // If the other call was made from the very same place on the stack, it can't be pending any more.
        asm!(e; mov(r11, gs(slot::RSP)); cmp(r11, rsp); je(clear););
        // If the stack is full of calls that never ended, forget them all.
        asm!(e; mov(rcx, gs(slot::DEPTH)); cmp(rcx, slot::STACK_SIZE as i32); jb(room); xor(ecx, ecx););
        e.here(room)?;
        // A handler in the middle of this puts aside the same values at the same place.
        asm!(e; mov(gs_at(rcx, slot::STACK), r11););
        asm!(e; mov(r11, gs(slot::START)); mov(gs_at(rcx, slot::STACK + 8), r11););
        asm!(e; mov(r11, gs(slot::NODE)); mov(gs_at(rcx, slot::STACK + 16), r11););
        asm!(e; add(rcx, slot::STACK_ENTRY as i32); mov(gs(slot::DEPTH), rcx); jmp(clear););
        Ok(())
    });
    Ok(())
}

/// Hands the call to the launcher if a window is open, or due by this thread's count, or if the call is to be sampled;
/// then it continues at `asked`. In: r11 the node, rcx its record.
fn window(e: &mut Emitter, options: &Options, number: Option<u32>, asked: CodeLabel) -> Emitted {
    let ask = e.label();
    let is_sampled = |s: &Signature| {
        capture::is_looked_at(s) || options.receives && capture::is_receive(s) || options.writes && capture::is_write(s)
    };
    if number.is_none_or(|n| Sysno(n).signature().is_some_and(is_sampled)) {
        asm!(e; dec(gs_at(rcx, record::LOOK_LEFT)); js(ask););
    }
    asm!(e; cmp(gs(slot::WANT), 0); jne(ask););
    asm!(e; mov(rcx, gs_at(rcx, record::ENTERED)); cmp(rcx, at(r11, node::WINDOW_AT)); je(ask););
    e.ask_at_entry(number, ask, asked);
    Ok(())
}
