//! Makes a thread that waits for an answer execute system calls, and waits for it to come back.

use crate::inproc::monitor::handles::{ProgramId, SlotRef};
use crate::inproc::monitor::polling::{BUSY_LIMIT, LONG_LIMIT, Polling};
use crate::inproc::monitor::results::clock::RunClock;
use crate::inproc::monitor::session::Targets;
use crate::inproc::monitor::shared::memory::{Area, Memory};
use crate::inproc::monitor::sys;
use std::sync::atomic::Ordering;
use std::time::Duration;
use systoll_hooks::layout::{slot, state};

/// Requests that a program's threads may leave undone, at most: other threads wait while a request does.
const MOST_UNHEEDED: u32 = 8;
/// Interval at which the launcher checks if a thread with a request has ended, ns.
const LOOKS_AFTER: u64 = 2_000_000;

/// Makes a waiting thread execute a system call. Returns its result; `None` if the thread does not come back.
pub(crate) fn request(targets: &mut Targets, thread: SlotRef, call: [u64; 7]) -> Option<u64> {
    // The limit is long, since on a busy machine it may take long before the thread runs.
    request_and_come_back(targets, thread, thread.program, call, LONG_LIMIT / 4)
}

/// Makes a waiting thread execute system calls, and continue with the answer to its question when all have been made.
/// Returns true if it was still waiting. The launcher then has nothing more to do with it, unless a call fails: then
/// the thread asks again, see [`undone`].
pub(crate) fn request_and_let_go(targets: &Targets, thread: SlotRef, calls: &[[u64; 7]]) -> bool {
    let Some((first, others)) = calls.split_first().filter(|(_, others)| others.len() as u64 <= slot::MOST_REQUESTS)
    else {
        return false;
    };
    if targets.programs.get(&thread.program).is_none_or(|p| p.threads.unheeded >= MOST_UNHEEDED) {
        return false;
    }
    let Some(area) = targets.memory.image(thread.program) else { return false };
    put(area, thread, first, others);
    area.set(thread.offset() + slot::REQUESTS_LET_GO, 1);
    let Some(word) = area.half(thread.offset() + slot::STATE) else { return false };
    let taken = word.compare_exchange(state::WAITING, state::REQUEST, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    match taken {
        true => sys::futex_wake(word),
        false => area.set(thread.offset() + slot::REQUESTS_LET_GO, 0),
    }
    taken
}

/// Writes a request into a thread's slot.
fn put(area: &Area, thread: SlotRef, first: &[u64; 7], others: &[[u64; 7]]) {
    let base = thread.offset();
    (0..).zip(first).for_each(|(i, word)| area.set(base + slot::REQUEST + 8 * i, *word));
    (0..).zip(others.as_flattened()).for_each(|(i, word)| area.set(base + slot::REQUESTS + 8 * i, *word));
    area.set(base + slot::REQUESTS_NEXT, slot::REQUESTS);
    area.set(base + slot::REQUESTS_END, slot::REQUESTS + slot::REQUEST_LEN * others.len() as u64);
}

/// If a waiting thread was released and is back because a call has failed, returns how many calls were made before that
/// one.
pub(crate) fn undone(memory: &Memory, thread: SlotRef) -> Option<u64> {
    let (area, base) = (memory.image(thread.program)?, thread.offset());
    if area.get(base + slot::REQUESTS_LET_GO) == 0 {
        return None;
    }
    area.set(base + slot::REQUESTS_LET_GO, 0);
    Some(area.get(base + slot::REQUESTS_NEXT).saturating_sub(slot::REQUESTS) / slot::REQUEST_LEN)
}

/// Does the same as [`request`] for a call after which the thread waits in the image of program `back`.
pub(crate) fn request_and_come_back(
    targets: &mut Targets,
    thread: SlotRef,
    back: ProgramId,
    call: [u64; 7],
    patience: Duration,
) -> Option<u64> {
    let patience = patience.as_nanos() as u64;
    let base = thread.offset();
    if targets.programs.get(&thread.program).is_some_and(|p| p.threads.unheeded >= MOST_UNHEEDED) {
        return None;
    }
    let area = targets.memory.image(thread.program)?;
    put(area, thread, &call, &[]);
    let word = area.half(base + slot::STATE)?;
    word.compare_exchange(state::WAITING, state::REQUEST, Ordering::SeqCst, Ordering::SeqCst).ok()?;
    sys::futex_wake(word);
    let (asked, mut looked) = (sys::now(), sys::now());
    let area = targets.memory.image(back)?;
    let word = area.half(base + slot::STATE)?;
    let tid = targets.memory.head(thread).tid as i32;
    while word.load(Ordering::SeqCst) != state::WAITING {
        let now = sys::now();
        // Don't wait for a thread that was killed meanwhile: others wait for the launcher.
        if now.saturating_sub(looked) > LOOKS_AFTER && tid > 0 {
            looked = now;
            if crate::procfs::is_ending(tid) {
                return None;
            }
        }
        if now.saturating_sub(asked) > patience {
            if let Some(program) = targets.programs.get_mut(&thread.program) {
                program.threads.unheeded += 1;
            }
            return None;
        }
        std::hint::spin_loop();
        std::thread::yield_now();
    }
    Some(area.get(base + slot::REPLY))
}

/// Returns true if a thread has waited so long that it may go on by itself at any moment.
pub(crate) fn waited_long(memory: &Memory, clock: &RunClock, polling: &Polling, thread: SlotRef) -> bool {
    let base = thread.offset();
    let start = memory.image(thread.program).map_or(0, |a| a.get(base + slot::WAIT_START));
    let past =
        |cycles: u64, limit: Duration| cycles as f64 / clock.ratio.cycles_per_ns() > limit.as_nanos() as f64 / 2.0;
    past(polling.item.saturating_sub(start), LONG_LIMIT) || past(sys::tsc().saturating_sub(polling.item), BUSY_LIMIT)
}
