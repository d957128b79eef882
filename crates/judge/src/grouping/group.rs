//! Groups of calls that share a property.

use std::sync::Arc;
use systoll_model::{FrameId, ModuleId, ProcessId, RowId};

/// The property that the calls of a group share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Common {
    /// The function of a frame.
    Function(FrameId),
    /// The source line of a frame.
    Line(FrameId),
    /// A public function and its module.
    Api(Arc<str>, Option<ModuleId>),
    /// A mapped file: the program or a library.
    Library(ModuleId),
    /// A process image.
    Process(ProcessId),
    /// A thread of a process image; 0 and no name for threads that are counted together.
    Thread {
        /// The process image.
        process: ProcessId,
        /// Thread id.
        tid: u32,
        /// The thread's name.
        name: Arc<str>,
    },
    /// The file behind a descriptor.
    File(Arc<str>),
    /// The property is unknown.
    Unknown,
    /// The calls lack the property: for example, they have no descriptor.
    #[default]
    None,
}

/// Calls that share a property.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// The shared property.
    pub common: Common,
    /// Number of calls; an estimate if [`super::Grouping::sampled`].
    pub calls: u64,
    /// Lower bound of `calls`.
    pub low: u64,
    /// Upper bound of `calls`.
    pub high: u64,
    /// Number of failed calls; `None` if it is unknown.
    pub failed: Option<u64>,
    /// Toll of the calls, ns.
    pub toll_ns: Option<u64>,
    /// Time waited in the calls, ns.
    pub waited_ns: Option<u64>,
    /// Number of the calls in windows; `None` if the figures don't rest on windows.
    pub looked_at: Option<u64>,
    /// Rows of the calls, costliest first; empty if the group does not tell rows apart.
    pub rows: Vec<RowId>,
}

/// Returns the sum of the known values; `None` if neither is known.
pub(super) fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}
