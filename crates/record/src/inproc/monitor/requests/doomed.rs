//! Recognises processes that are killed while they start or while they wait for the launcher. Code that they had not
//! begun to run made no calls, so nothing of it is lost.

use crate::inproc::monitor::handles::SlotRef;
use crate::inproc::monitor::shared::memory::Memory;
use crate::problems::Problems;
use crate::procfs;
use std::time::Duration;

/// Number of checks, and the pause before each further one, after which a killed thread has begun to end.
const LOOKS: usize = 4;
const PAUSE: Duration = Duration::from_millis(1);

/// Returns true if a thread that could not be reached is gone, or has been killed and will run no more of its program.
pub(crate) fn is_doomed(tid: i32) -> bool {
    // A thread's status shows nothing between its taking the signal and its beginning to end.
    (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::sleep(PAUSE);
        }
        procfs::is_ending(tid) || procfs::is_killed(tid)
    })
}

/// Returns true if the thread of a slot, which waits for the launcher, is doomed.
pub(crate) fn is_waiter_doomed(memory: &Memory, thread: SlotRef) -> bool {
    let tid = memory.head(thread).tid as i32;
    tid > 0 && is_doomed(tid)
}

/// Drops the problems beyond the first `known`, which say that code mapped by a thread could not be hooked, if the thread
/// is doomed: no other thread can run that code before it.
pub(crate) fn forget_what_doomed_lack(memory: &Memory, problems: &mut Problems, thread: SlotRef, known: usize) {
    if problems.list.len() > known && is_waiter_doomed(memory, thread) {
        problems.list.truncate(known);
    }
}
