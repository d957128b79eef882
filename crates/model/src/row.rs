//! Rows: what each calling context called, exactly.

use crate::counts::Counts;
use crate::names::{FrameId, ModuleId, StackId};
use crate::process::ProcessId;
use crate::sysno::Sysno;
use std::sync::Arc;

/// Index into [`crate::Recording::rows`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

/// All calls of one process image, one system call and one calling context.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The process image.
    pub process: ProcessId,
    /// The system call.
    pub syscall: Sysno,
    /// Exact calling context: from the `syscall` instruction up to the user's frame.
    pub context: StackId,
    /// Frames above the context that all whole stacks seen of this row have in common, innermost
    /// first; sampled, not exact. Where scripts' lines were seen: all those of the first line.
    pub outer: StackId,
    /// Public API the user's frame called, exact.
    pub api: Option<Arc<str>>,
    /// The module that API lives in.
    pub api_module: Option<ModuleId>,
    /// The user's own frame: the first outside libc, loader and language runtimes. Where that is a
    /// script's line, it is the first of `lines`.
    pub user: Option<FrameId>,
    /// Where one native context serves a script: its lines that were seen making these calls, most
    /// calls first. Sampled, not exact.
    pub lines: Vec<RowLine>,
    /// The figures.
    pub counts: Counts,
}

/// A line of a script that made calls of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLine {
    /// The line.
    pub frame: FrameId,
    /// How often it was seen.
    pub looks: u64,
    /// Calls these looks stand for: each for an octave of the row's count, and for half of up to two beside it that have none.
    pub weight: u64,
}

/// One of several whole stacks by which calls of a row came. Sampled, not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTrunk {
    /// The row.
    pub row: RowId,
    /// The frames above the row's context, innermost first. Where they end is not known of the stacks that were seen to be
    /// none of the others, and not kept.
    pub stack: StackId,
    /// Calls for which the looks stand that saw it: each for an octave of the row's count.
    pub weight: u64,
}

impl Row {
    /// The share of the row's calls that a line seen of it stands for, 0 to 1: an estimate.
    pub fn share(&self, line: &RowLine) -> f64 {
        let all = self.lines.iter().fold(0u64, |sum, l| sum.saturating_add(l.weight));
        if all == 0 { 0.0 } else { line.weight as f64 / all as f64 }
    }
}
