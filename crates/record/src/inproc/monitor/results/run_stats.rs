//! Measurements around a run, and sums over it.

use crate::assemble::RunFacts;
use crate::inproc::monitor::results::cpu_time::{AskingCost, ObserverTime};
use crate::inproc::monitor::results::overhead::RepeatCode;
use crate::inproc::monitor::sys;
use systoll_hooks::assemble::MadeInPlace;

/// Cost that counting adds to calls, and the code that measures it.
#[derive(Default)]
pub(crate) struct Around {
    /// The code for measuring the crossing again at the end.
    pub(crate) again: Option<RepeatCode>,
    /// Cycles that counting adds to every timed call.
    pub(crate) own_cycles: f64,
    /// Time that counting and timing add to a call, ns.
    pub(crate) added_ns: f64,
    /// True if both were measured, false if they are guesses.
    pub(crate) share_measured: bool,
}

/// Facts and sums for a run's recording.
pub(crate) struct RunStats {
    pub(crate) facts: RunFacts,
    pub(crate) around: Around,
    pub(crate) counted: ImageSums,
    /// Processor time that new programs spent on mapping our memory, ns.
    pub(crate) starts_ns: u64,
    /// Time for which threads waited while the launcher worked for them, ns.
    pub(crate) watching_ns: u64,
    /// Processor time of the launcher up to the last reading, ns.
    pub(crate) launcher_ns: u64,
    /// Number of programs that mapped our memory.
    pub(crate) starts: u64,
    /// Cost of a hand-shake beyond the time that its thread's clock sees.
    pub(crate) asking: AskingCost,
}

impl RunStats {
    /// Adds the time since `began_ns`, for which the launcher has worked for threads that wait.
    pub(crate) fn watched_since(&mut self, began_ns: u64) {
        self.watching_ns = self.watching_ns.saturating_add(sys::now().saturating_sub(began_ns));
    }
}

/// Sums that are read from programs' images.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageSums {
    pub(crate) vdso_calls: u64,
    /// Processor time that threads spent on asking.
    pub(crate) asked: ObserverTime,
    /// Calls that were made although they were to be answered in place.
    pub(crate) in_place: MadeInPlace,
}
