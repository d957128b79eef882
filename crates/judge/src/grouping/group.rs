//! Calls with something in common, and what they have.

use std::sync::Arc;
use systoll_model::{FrameId, ModuleId, ProcessId, RowId};

/// What the calls of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Common {
    /// The function a frame stands in.
    Function(FrameId),
    /// The line a frame stands at.
    Line(FrameId),
    /// A public function, and its module.
    Api(Arc<str>, Option<ModuleId>),
    /// A file.
    Library(ModuleId),
    /// A process image.
    Process(ProcessId),
    /// A thread of a process image; 0 and no name for those that are not told apart.
    Thread {
        /// The process image.
        process: ProcessId,
        /// Thread id.
        tid: u32,
        /// The thread's name.
        name: Arc<str>,
    },
    /// What a descriptor is behind.
    File(Arc<str>),
    /// Nothing is known of them.
    Unknown,
    /// They have nothing of the kind: calls without a descriptor.
    None,
}

/// Calls with something in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they have in common.
    pub common: Common,
    /// Calls; an estimate where [`super::Grouping::sampled`].
    pub calls: u64,
    /// At least so many calls.
    pub low: u64,
    /// At most so many calls.
    pub high: u64,
    /// Failed calls; `None` where it can't be told.
    pub failed: Option<u64>,
    /// What they cost, ns.
    pub toll_ns: Option<u64>,
    /// Time waited in them, ns.
    pub waited_ns: Option<u64>,
    /// Calls of them that windows looked at; `None` where nothing rests on windows.
    pub looked_at: Option<u64>,
    /// Rows they belong to, costliest first; empty where rows are not told apart that way.
    pub rows: Vec<RowId>,
}

impl Group {
    /// No calls yet.
    pub(super) fn none(common: Common) -> Self {
        Self {
            common,
            calls: 0,
            low: 0,
            high: 0,
            failed: None,
            toll_ns: None,
            waited_ns: None,
            looked_at: None,
            rows: Vec::new(),
        }
    }
}

/// Sums what is known.
pub(super) fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}
