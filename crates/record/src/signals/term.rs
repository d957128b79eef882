//! Makes SIGTERM end systoll within two seconds, whatever systoll is doing.
//!
//! The target gets the signal and [`GRACE`] to end, unless the user gives it another time. Then the tracer lets it run
//! on unwatched, and systoll reports what it has seen. If that takes longer than [`REST`] (the tracer sleeps in the
//! kernel on memory of a target that serves its own page faults, or names and findings take long), the thread that
//! waits for signals ends the process, and the kernel detaches it from every target.

use super::set::is_pending;
use crate::limits::last_words;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time to wait for a target that was told to end; the rest of the two seconds is for naming and printing.
const GRACE: Duration = Duration::from_millis(1_250);
/// Time after the target's time until systoll ends, with or without a report.
const REST: Duration = Duration::from_millis(700);
/// Exit code that a shell reports for a process ended by SIGTERM.
const CODE: i32 = 128 + libc::SIGTERM;

/// The time at which SIGTERM came, if it has, and the time granted to the target.
#[derive(Debug, Default)]
pub(super) struct Term {
    /// Time of the monotonic clock when SIGTERM came, ns; 0 if it has not come.
    since: AtomicU64,
    grace: Option<Duration>,
}

impl Term {
    /// Creates a state that grants the target `grace`, or [`GRACE`].
    pub(super) fn new(grace: Option<Duration>) -> Self {
        Self { grace, ..Self::default() }
    }

    /// Notes that SIGTERM has come.
    pub(super) fn note(&self) {
        // The first SIGTERM counts: a repeated one does not extend the time.
        let _ = self.since.compare_exchange(0, crate::sys::now().max(1), Ordering::AcqRel, Ordering::Acquire);
    }

    /// Notes SIGTERM if it is pending, while no thread takes signals yet.
    pub(super) fn note_pending(&self, ignored: &[i32]) {
        if !ignored.contains(&libc::SIGTERM) && is_pending(libc::SIGTERM) {
            self.note();
        }
    }

    /// Returns true if the time granted to the target is over.
    pub(super) fn is_too_long(&self) -> bool {
        self.elapsed().is_some_and(|elapsed| elapsed >= self.grace())
    }

    /// Notes that the run is over. If the user gave the target a time of its own, the remaining work gets its time from
    /// now on.
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

    /// Writes `line` and ends this process if all the granted time is over. Once the run is over, the target's part of
    /// it is [`GRACE`], even if the user gave it another.
    pub(super) fn end_if_over(&self, run_is_over: bool, line: &[u8]) {
        let limit = if run_is_over { GRACE } else { self.grace() } + REST;
        if self.elapsed().is_some_and(|elapsed| elapsed >= limit) {
            // Nothing here takes a lock that a hanging thread may hold.
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
