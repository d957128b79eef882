//! Has a thread that waits for an answer make a system call, and waits for it to come back.

use crate::inproc::monitor::handles::{ProgramId, SlotRef};
use crate::inproc::monitor::polling::{BUSY_LIMIT, LONG_LIMIT};
use crate::inproc::monitor::session::Session;
use crate::inproc::monitor::sys;
use std::sync::atomic::Ordering;
use std::time::Duration;
use systoll_hooks::layout::{slot, state};

/// Requests that a program's threads may leave undone: others wait meanwhile.
const MOST_UNHEEDED: u32 = 8;
/// How often the launcher looks whether a thread that it has asked for something has ended, ns.
const LOOKS_AFTER: u64 = 2_000_000;

/// Has a waiting thread make a system call; its result, `None` if it does not come back.
pub(crate) fn request(session: &mut Session, thread: SlotRef, call: [u64; 7]) -> Option<u64> {
    // On a busy box it may be long before the thread is let run.
    request_and_come_back(session, thread, thread.program, call, LONG_LIMIT / 4)
}

/// [`request`] of a call after which the thread waits in the image of `back`.
pub(crate) fn request_and_come_back(
    session: &mut Session,
    thread: SlotRef,
    back: ProgramId,
    call: [u64; 7],
    patience: Duration,
) -> Option<u64> {
    let patience = patience.as_nanos() as u64;
    let base = thread.offset();
    if session.programs.get(&thread.program).is_some_and(|p| p.threads.unheeded >= MOST_UNHEEDED) {
        return None;
    }
    let area = session.memory.image(thread.program)?;
    for (i, word) in (0..).zip(call) {
        area.set(base + slot::REQUEST + 8 * i, word);
    }
    let word = area.half(base + slot::STATE)?;
    word.compare_exchange(state::WAITING, state::REQUEST, Ordering::SeqCst, Ordering::SeqCst).ok()?;
    sys::futex_wake(word);
    let (asked, mut looked) = (sys::now(), sys::now());
    let area = session.memory.image(back)?;
    let word = area.half(base + slot::STATE)?;
    let tid = session.memory.head(thread).tid as i32;
    while word.load(Ordering::SeqCst) != state::WAITING {
        let now = sys::now();
        // One that was killed meanwhile is not waited for: others wait for the launcher.
        if now.saturating_sub(looked) > LOOKS_AFTER && tid > 0 {
            looked = now;
            if crate::procfs::is_ending(tid) {
                return None;
            }
        }
        if now.saturating_sub(asked) > patience {
            if let Some(program) = session.programs.get_mut(&thread.program) {
                program.threads.unheeded += 1;
            }
            return None;
        }
        std::hint::spin_loop();
        std::thread::yield_now();
    }
    Some(area.get(base + slot::REPLY))
}

/// Whether a thread has waited so long that it may go on at any moment: it was about to when
/// its question was looked at, or that was too long ago.
pub(crate) fn waited_long(session: &Session, thread: SlotRef) -> bool {
    let base = thread.offset();
    let start = session.memory.image(thread.program).map_or(0, |a| a.get(base + slot::WAIT_START));
    let past = |cycles: u64, limit: Duration| {
        cycles as f64 / session.clock.ratio.cycles_per_ns() > limit.as_nanos() as f64 / 2.0
    };
    past(session.polling.item.saturating_sub(start), LONG_LIMIT)
        || past(sys::tsc().saturating_sub(session.polling.item), BUSY_LIMIT)
}
