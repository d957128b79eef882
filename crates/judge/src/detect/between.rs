//! The time of a thread between two calls.

use crate::world::replay::Step;
use systoll_model::{Recording, WindowCall};

/// Measures the time of a thread between two calls, without what watching adds.
#[derive(Clone, Copy, Default)]
pub(super) struct Between {
    /// Largest time that watching adds between two calls, ns.
    observer_ns: u64,
}

impl Between {
    pub(super) fn new(recording: &Recording) -> Self {
        let observer = recording.header.observer_wall_ns_per_call;
        Self { observer_ns: if observer.is_finite() { observer.max(0.0) as u64 } else { 0 } }
    }

    /// Returns the time from the return of one call to the entry of the next, ns; 0 if watching may account for all of it.
    pub(super) fn ns(self, before: &Step<'_>, next: &Step<'_>) -> u64 {
        self.calls_ns(before.observed.call, next.observed.call)
    }

    /// Returns the same time for two calls of a window.
    pub(super) fn calls_ns(self, before: &WindowCall, next: &WindowCall) -> u64 {
        let left = before.entry_ns.saturating_add(before.elapsed_ns);
        next.entry_ns.saturating_sub(left).saturating_sub(self.observer_ns)
    }
}
