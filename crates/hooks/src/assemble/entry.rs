//! What runs before a call: count it in its context, and note what its return will need.

use super::Options;
use super::emitter::{Emitted, Emitter, asm, at, gs, gs_at};
use super::sampled::{self, Timing};
use super::start::{arm, start_time};
use super::tree_walk::{Start, walk, walk_for_the_last_time};
use crate::layout::{capture, node, record, slot};
use crate::numbers::EXIT;
use iced_x86::code_asm::*;
use systoll_model::Sysno;

/// What `before` writes of a site.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// The system call, where it is known: it need not be in eax yet.
    pub(super) number: Option<u32>,
    /// Where its tree starts.
    pub(super) start: Start,
    /// What return addresses are to be looked for from, if any are.
    pub(super) base: Option<AsmRegister64>,
    /// Whether something will see to the call's return.
    pub(super) results: bool,
    /// Which calls are timed, if any is.
    pub(super) timing: Timing,
    /// Whether the kernel is asked to tell that the thread was scheduled out, or met a signal.
    pub(super) arms: bool,
}

/// Counts a call. Lost: rcx, r11, flags.
pub(super) fn before(e: &mut Emitter, options: &Options, entry: Entry) -> Emitted {
    if entry.results {
        interrupted(e)?;
    }
    match (entry.number, entry.start) {
        (Some(EXIT), Start::Root(root)) if entry.base == Some(rsp) => walk_for_the_last_time(e, root)?,
        // By rbp nobody finds out whether its stack is still there.
        (Some(EXIT), start) => walk(e, start, None, rcx)?,
        (_, start) => walk(e, start, entry.base, rcx)?,
    }
    if entry.results {
        // rsp first: from here on a signal handler's call keeps what is in the slot.
        asm!(e; mov(gs(slot::RSP), rsp); mov(gs(slot::NODE), r11););
    }
    count(e, rcx)?;
    let asked = e.label();
    if options.windows {
        window(e, entry.number, asked)?;
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
        Timing::Sampled { may_wait } => sampled::start(e, options, asked, may_wait),
    }
}

/// Counts at the node in r11 and leaves its record's offset in `scratch`.
pub(super) fn count(e: &mut Emitter, scratch: AsmRegister64) -> Emitted {
    asm!(e; mov(scratch, at(r11, node::RECORD)); inc(gs_at(scratch, record::ENTERED)););
    Ok(())
}

/// If a call is under way in this thread, this one is made by a signal handler that interrupted
/// it (or the other never ended, because a handler jumped away): puts the other aside.
fn interrupted(e: &mut Emitter) -> Emitted {
    let (aside, clear, room) = (e.label(), e.label(), e.label());
    asm!(e; cmp(gs(slot::RSP), 0); jne(aside););
    e.here(clear)?;
    e.cold(move |e| {
        e.here(aside)?;
        // A call from the very same place on the stack: that one can't be under way any more.
        asm!(e; mov(r11, gs(slot::RSP)); cmp(r11, rsp); je(clear););
        // Full of calls that never ended: forget them all.
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

/// Hands the call to the launcher if a window is open, or due by this thread's count, or to be looked at.
/// In: r11 the node, rcx its record.
/// It goes on at `asked` then.
fn window(e: &mut Emitter, number: Option<u32>, asked: CodeLabel) -> Emitted {
    let ask = e.label();
    if number.is_none_or(|n| Sysno(n).signature().is_some_and(capture::is_looked_at)) {
        asm!(e; dec(gs_at(rcx, record::LOOK_LEFT)); js(ask););
    }
    asm!(e; cmp(gs(slot::WANT), 0); jne(ask););
    asm!(e; mov(rcx, gs_at(rcx, record::ENTERED)); cmp(rcx, at(r11, node::WINDOW_AT)); je(ask););
    e.ask_at_entry(number, ask, asked);
    Ok(())
}
