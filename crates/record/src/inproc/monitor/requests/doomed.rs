//! Processes that are killed while they start or while they wait for the launcher. What they had not begun
//! to run made no calls, so that nothing of theirs is lost.

use crate::inproc::monitor::handles::SlotRef;
use crate::inproc::monitor::session::Session;
use crate::procfs;
use std::time::Duration;

/// A thread that has been killed comes to its end within so many looks.
const LOOKS: usize = 4;
const PAUSE: Duration = Duration::from_millis(1);

/// Whether a thread that could not be reached is gone, or has been killed and runs no more of its program.
pub(crate) fn is_doomed(tid: i32) -> bool {
    // Between taking the signal and saying that it ends, it says neither.
    (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::sleep(PAUSE);
        }
        procfs::is_ending(tid) || procfs::is_killed(tid)
    })
}

/// Whether the thread of a slot, which waits for the launcher, is doomed.
pub(crate) fn is_waiter_doomed(session: &Session, thread: SlotRef) -> bool {
    let tid = session.memory.head(thread).tid as i32;
    tid > 0 && is_doomed(tid)
}

/// Code that a thread has mapped could not be hooked, as problems beyond the first `known` say: that is
/// nothing where the thread is doomed, for no other may run that code before it.
pub(crate) fn forget_what_doomed_lack(session: &mut Session, thread: SlotRef, known: usize) {
    if session.problems.list.len() > known && is_waiter_doomed(session, thread) {
        session.problems.list.truncate(known);
    }
}
