//! What was measured around a run, and what is summed up over it.

use crate::inproc::monitor::results::cpu_time::{Asking, Ours};
use crate::inproc::monitor::results::overhead::Again;
use crate::parts::RunFacts;
use systoll_hooks::assemble::MadeInPlace;

/// What counting adds to calls.
#[derive(Default)]
pub(crate) struct Around {
    /// For measuring the crossing at the end as it was before.
    pub(crate) again: Option<Again>,
    /// Cycles of every timed call that are our own.
    pub(crate) own_cycles: f64,
    /// What counting and timing adds to a call, ns.
    pub(crate) added_ns: f64,
    /// Whether both were measured, not guessed.
    pub(crate) share_measured: bool,
}

/// Sums over a run.
pub(crate) struct RunStats {
    pub(crate) facts: RunFacts,
    pub(crate) around: Around,
    pub(crate) counted: Counted,
    /// Processor time new programs spent on mapping our memory, ns.
    pub(crate) starts_ns: u64,
    /// How many did.
    pub(crate) starts: u64,
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
