//! What was measured around a run, and what is summed up over it.

use crate::inproc::monitor::results::cpu_time::{Asking, Ours};
use crate::inproc::monitor::results::overhead::Again;
use systoll_hooks::assemble::MadeInPlace;
use systoll_model::Spread;

/// What was measured around the run.
#[derive(Default)]
pub(crate) struct Around {
    pub(crate) command: Vec<String>,
    pub(crate) crossing_before: Spread,
    /// For measuring the crossing at the end as it was before.
    pub(crate) again: Option<Again>,
    pub(crate) children_before: (u64, u64),
    pub(crate) started_unix: u64,
    /// Cycles of every timed call that are our own.
    pub(crate) own_cycles: f64,
    /// What counting and timing adds to a call, ns.
    pub(crate) added_ns: f64,
    /// Whether both were measured, not guessed.
    pub(crate) share_measured: bool,
}

impl Around {
    /// Leaves out what children of ours have used between two readings.
    pub(crate) fn leave_out(&mut self, from: (u64, u64), to: (u64, u64)) {
        self.children_before.0 += to.0.saturating_sub(from.0);
        self.children_before.1 += to.1.saturating_sub(from.1);
    }
}

/// Sums over a run.
pub(crate) struct RunStats {
    pub(crate) around: Around,
    pub(crate) seed: u64,
    pub(crate) counted: Counted,
    /// Processor time new programs spent on mapping our memory, ns.
    pub(crate) births_ns: u64,
    /// How many did.
    pub(crate) births: u64,
    /// What a hand-shake takes beside what is seen of it.
    pub(crate) asking: Asking,
}

/// Of them, what is read from programs' images.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) vdso_calls: u64,
    /// Processor time threads spent on asking.
    pub(crate) asked: Ours,
    /// Calls made that were to be answered in place.
    pub(crate) in_place: MadeInPlace,
}
