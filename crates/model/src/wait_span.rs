//! Long waits, kept one by one.

use crate::errno::Errno;
use crate::names::FrameId;
use crate::row::RowId;
use std::sync::Arc;

/// Shortest call that is kept as a [`WaitSpan`], ns. A backend may keep shorter ones too.
pub const LONG_WAIT_NS: u64 = 1_000_000;

/// A call of a millisecond or more during which its thread was scheduled out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitSpan {
    /// The row to which the call belongs.
    pub row: RowId,
    /// Process id of the thread's process.
    pub pid: u32,
    /// Thread id; 0 if it is not known.
    pub tid: u32,
    /// Time of the call's entry, ns since the run's start.
    pub begin_ns: u64,
    /// Elapsed time of the call, ns.
    pub ns: u64,
    /// The argument registers; those that the call does not have are 0.
    pub args: [u64; 6],
    /// The call's result, as in rax. `None` if it never returned.
    pub result: Option<i64>,
    /// Time of the call, ns, for which its thread may have been ready to run and waited for a processor, at most; `None` if
    /// it is not known.
    pub queued_most_ns: Option<u64>,
    /// The script's line that made the call, if its stack was sampled.
    pub line: Option<FrameId>,
    /// The file behind the call's descriptor, as [`crate::WindowCall::fd`] names it, or the path that the call names.
    pub object: Option<Arc<str>>,
}

impl WaitSpan {
    /// Returns the time of the call's return, ns since the run's start.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.begin_ns.saturating_add(self.ns)
    }

    /// Returns the errno, if the call failed.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        Errno::from_result(self.result?)
    }
}

/// Sum of a row's long waits that are not among [`WaitSpans::spans`] for lack of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedWaits {
    /// The row to which the calls belong.
    pub row: RowId,
    /// Number of calls.
    pub calls: u64,
    /// Their elapsed time, ns.
    pub ns: u64,
}

/// The long waits of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitSpans {
    /// True if the backend keeps long waits. Without that, an empty list does not mean that nothing waited.
    pub kept: bool,
    /// Waits by rising time of their entry. If there are too many, these are each row's longest and a fair sample of
    /// its others.
    pub spans: Vec<WaitSpan>,
    /// Exact sums of the waits that were dropped, one entry for each row that has some.
    pub dropped: Vec<DroppedWaits>,
    /// Number of long calls that threads overwrote before anybody read them. They are in no other figure here.
    pub overwritten: u64,
}

impl WaitSpans {
    /// Returns true if every long wait of the run is among the spans.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.kept && self.dropped.is_empty() && self.overwritten == 0
    }
}
