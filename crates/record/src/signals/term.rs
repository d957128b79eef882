//! SIGTERM ends systoll within two seconds, whatever it is at.
//!
//! The target gets the signal and [`GRACE`] to end, unless the user gives it another time. Then the
//! tracer lets it run on unwatched, and what was seen is reported. Where that is not done in [`REST`] (the
//! tracer sleeps in the kernel, on memory of a target that answers its page faults itself; or names and
//! findings take long), the thread that waits for signals ends the process: the kernel detaches it from
//! every target.

use super::set::is_pending;
use crate::limits::last_words;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a target that was told to end is waited for: what is left is for naming and printing.
const GRACE: Duration = Duration::from_millis(1_250);
/// How long after that systoll ends, with or without a report.
const REST: Duration = Duration::from_millis(700);
/// What a shell says of a process that SIGTERM ended.
const CODE: i32 = 128 + libc::SIGTERM;

/// When SIGTERM came, if it has.
#[derive(Debug, Default)]
pub(super) struct Term {
    /// Nanoseconds of the monotonic clock, or 0.
    since: AtomicU64,
    grace: Option<Duration>,
}

impl Term {
    /// With so much time for the target.
    pub(super) fn new(grace: Option<Duration>) -> Self {
        Self { grace, ..Self::default() }
    }

    /// It has come.
    pub(super) fn note(&self) {
        // The first one counts: who repeats it wants systoll to end no later.
        let _ = self.since.compare_exchange(0, crate::sys::now().max(1), Ordering::AcqRel, Ordering::Acquire);
    }

    /// Looks whether it is waiting to be taken, where no thread takes it yet.
    pub(super) fn note_pending(&self, ignored: &[i32]) {
        if !ignored.contains(&libc::SIGTERM) && is_pending(libc::SIGTERM) {
            self.note();
        }
    }

    /// Whether the target has had its time.
    pub(super) fn is_too_long(&self) -> bool {
        self.elapsed().is_some_and(|elapsed| elapsed >= self.grace())
    }

    /// The run is over. Where the target was given a time of its own, what is left to do gets its time now.
    pub(super) fn run_is_over(&self) {
        if self.grace.is_some() && self.since.load(Ordering::Acquire) != 0 {
            self.since.store(crate::sys::now().max(1), Ordering::Release);
        }
    }

    fn grace(&self) -> Duration {
        self.grace.unwrap_or(GRACE)
    }

    fn elapsed(&self) -> Option<Duration> {
        let since = self.since.load(Ordering::Acquire);
        (since != 0).then(|| Duration::from_nanos(crate::sys::now().saturating_sub(since)))
    }

    /// Says `line` and ends this process at once, if all the time is over; the target has had its part of it
    /// where the run is over.
    pub(super) fn end_if_over(&self, run_is_over: bool, line: &[u8]) {
        let limit = if run_is_over { GRACE } else { self.grace() } + REST;
        if self.elapsed().is_some_and(|elapsed| elapsed >= limit) {
            // Nothing there takes a lock that the thread that hangs may hold.
            last_words(line, CODE)
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
        term.end_if_over(true, b"");
        term.since.store(crate::sys::now() - GRACE.as_nanos() as u64, Ordering::Release);
        term.note();
        assert!(term.is_too_long());
    }
}
