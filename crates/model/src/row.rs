//! Rows: the exact counts of each calling context.

use crate::counts::Counts;
use crate::names::{FrameId, ModuleId, StackId};
use crate::process::ProcessId;
use crate::sysno::Sysno;
use std::sync::Arc;

/// Index into [`crate::Recording::rows`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

/// All calls of one system call that one process image makes in one calling context.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The process image that makes the calls.
    pub process: ProcessId,
    /// The system call that the row counts.
    pub syscall: Sysno,
    /// Exact calling context: the frames from the `syscall` instruction up to the user's frame.
    pub context: StackId,
    /// The frames above the context that all sampled stacks of this row have in common, innermost
    /// first; sampled, not exact. If scripts' lines were seen, these are all frames above the first
    /// line.
    pub outer: StackId,
    /// Public API that the user's frame called; exact.
    pub api: Option<Arc<str>>,
    /// The module that contains the API.
    pub api_module: Option<ModuleId>,
    /// The user's own frame: the first outside libc, the loader and language runtimes. In a script
    /// it is the first of `lines`.
    pub user: Option<FrameId>,
    /// The script's lines that were seen making these calls, most calls first, if one native
    /// context serves a script. Sampled, not exact.
    pub lines: Vec<RowLine>,
    /// Figures of the row's calls.
    pub counts: Counts,
}

/// A line of a script that made some of a row's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLine {
    /// The frame of the line.
    pub frame: FrameId,
    /// Number of samples whose stack contains the line.
    pub looks: u64,
    /// Number of calls that these samples stand for. A sample stands for the calls of an octave of
    /// the row's count, and for half of up to two neighbouring octaves without a sample.
    pub weight: u64,
}

/// A sampled whole stack of a row's calls with all of its frames. [`RowTrunk`] and [`Row::outer`] leave out the frames
/// of an interpreter between the lines of a script, and of a run-time's own threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeStack {
    /// The row to which the stack belongs.
    pub row: RowId,
    /// The stack, from the system call outwards.
    pub stack: StackId,
    /// Number of calls that the samples of this stack stand for.
    pub weight: u64,
    /// Number of samples.
    pub looks: u64,
}

/// One of several whole stacks from which a row's calls came. It is sampled, not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTrunk {
    /// The row to which the stack belongs.
    pub row: RowId,
    /// The frames above the row's context, innermost first. The stack ends early if the samples
    /// only found that it differs from all others: then its further frames are unknown.
    pub stack: StackId,
    /// Number of calls that the samples of this stack stand for. A sample stands for the calls of
    /// an octave of the row's count.
    pub weight: u64,
    /// Number of samples; 0 if it is not known: of stacks that samples only found to differ, and in recordings that
    /// were made without it.
    pub looks: u64,
}

/// Sampled calls of a row that are about one object and came by one whole stack. A row that serves several lines or
/// callers has these, so that what is said of one object comes from samples about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSample {
    /// The row to which the calls belong.
    pub row: RowId,
    /// The object, as [`crate::WindowCall::object`] names it; its [shape](crate::shape) if the row has too many objects
    /// to list. `None` if the calls are about no object, or it is not known.
    pub object: Option<Arc<str>>,
    /// The script's line in the stack, if it has one.
    pub line: Option<FrameId>,
    /// The frames above the row's context, as in [`RowTrunk::stack`].
    pub above: StackId,
    /// The whole stack with all of its frames, as in [`WholeStack::stack`].
    pub whole: StackId,
    /// Number of samples.
    pub looks: u64,
    /// Number of calls that the samples stand for. Those of all of a row's samples add up to about its calls.
    pub weight: u64,
    /// Sum of the squares of the numbers of calls for which each sample stands.
    pub squares: u64,
}

impl Row {
    /// Creates a row of which no caller is known: its stacks are the recording's first one.
    #[must_use]
    pub fn new(process: ProcessId, syscall: Sysno, counts: Counts) -> Self {
        Self {
            process,
            syscall,
            context: StackId(0),
            outer: StackId(0),
            api: None,
            api_module: None,
            user: None,
            lines: Vec::new(),
            counts,
        }
    }

    /// Estimates the share of the row's calls that `line` makes, from 0 to 1.
    pub fn share(&self, line: &RowLine) -> f64 {
        let all = self.lines.iter().fold(0u64, |sum, l| sum.saturating_add(l.weight));
        if all == 0 { 0.0 } else { line.weight as f64 / all as f64 }
    }
}
