//! SIGTERM ends systoll within two seconds, whatever it is at.
//!
//! The target gets the signal and [`GRACE`] to end. Then the tracer lets it run on unwatched, and what
//! was seen is reported. Where that is not done by [`LIMIT`] (the tracer sleeps in the kernel, on memory
//! of a target that answers its page faults itself; or names and findings take long), the thread that
//! waits for signals ends the process: the kernel detaches it from every target.

use super::set::is_pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a target that was told to end is waited for: what is left is for naming and printing.
const GRACE: Duration = Duration::from_millis(1_400);
/// When systoll ends, with or without a report.
const LIMIT: Duration = Duration::from_millis(1_950);
/// What a shell says of a process that SIGTERM ended.
const CODE: i32 = 128 + libc::SIGTERM;

/// When SIGTERM came, if it has.
#[derive(Debug, Default)]
pub(super) struct Term {
    /// Nanoseconds of the monotonic clock, or 0.
    since: AtomicU64,
}

impl Term {
    /// It has come.
    pub(super) fn note(&self) {
        // The first one counts: who repeats it wants systoll to end no later.
        let _ = self.since.compare_exchange(0, crate::sys::now().max(1), Ordering::AcqRel, Ordering::Acquire);
    }

    /// Looks whether it is waiting to be taken, where nobody takes it yet.
    pub(super) fn note_pending(&self, ignored: &[i32]) {
        if !ignored.contains(&libc::SIGTERM) && is_pending(libc::SIGTERM) {
            self.note();
        }
    }

    /// Whether the target has had its time.
    pub(super) fn is_too_long(&self) -> bool {
        self.elapsed().is_some_and(|elapsed| elapsed >= GRACE)
    }

    fn elapsed(&self) -> Option<Duration> {
        let since = self.since.load(Ordering::Acquire);
        (since != 0).then(|| Duration::from_nanos(crate::sys::now().saturating_sub(since)))
    }

    /// Ends this process at once if all the time is over.
    pub(super) fn end_if_over(&self, run_is_over: bool) {
        if self.elapsed().is_none_or(|elapsed| elapsed < LIMIT) {
            return;
        }
        let line: &[u8] = if run_is_over {
            b"systoll: ended by SIGTERM before the report was made\n"
        } else {
            b"systoll: ended by SIGTERM; what it watched does not let go of it, so there is no report: it runs on unwatched\n"
        };
        // SAFETY: writes bytes that live on, and leaves: nothing here takes a lock that the thread that hangs
        // may hold.
        unsafe {
            libc::write(2, line.as_ptr().cast(), line.len());
            libc::_exit(CODE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sigterm_counts() {
        let term = Term::default();
        assert!(!term.is_too_long() && term.elapsed().is_none());
        term.end_if_over(true);
        term.since.store(crate::sys::now() - GRACE.as_nanos() as u64, Ordering::Release);
        term.note();
        assert!(term.is_too_long());
    }
}
