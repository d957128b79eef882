//! Look-ups in a recording that return `None` for an id that the recording does not have, and
//! figures that every screen needs.

use std::collections::HashSet;
use systoll_judge::Finding;
use systoll_model::{Frame, FrameId, Module, ModuleId, Process, Recording, Row, RowId, Stack, StackId, Sysno};

pub(crate) fn row(rec: &Recording, id: RowId) -> Option<&Row> {
    rec.rows.get(id.0 as usize)
}

pub(crate) fn frame(rec: &Recording, id: FrameId) -> Option<&Frame> {
    rec.frames.get(id.0 as usize)
}

pub(crate) fn stack(rec: &Recording, id: StackId) -> Option<&Stack> {
    rec.stacks.get(id.0 as usize)
}

pub(crate) fn module(rec: &Recording, id: Option<ModuleId>) -> Option<&Module> {
    rec.modules.get(id?.0 as usize)
}

/// Calls that make another image of a process.
const EXECS: [Sysno; 2] = [Sysno::named("execve"), Sysno::named("execveat")];

/// Returns the number of processes in the tree: images of one process, before and after an `execve`, count once. It is an
/// estimate if [`has_folded_processes`].
pub(crate) fn processes(rec: &Recording) -> u64 {
    let images = |of: &dyn Fn(&Process) -> bool| {
        rec.processes.iter().filter(|p| of(p)).fold(0u64, |sum, p| sum.saturating_add(p.instances))
    };
    if has_folded_processes(rec) {
        // In a folded image, only the first image's process is known, so calls are counted instead. The run's first
        // `execve` made the first image.
        let made = |row: &Row| row.counts.calls.saturating_sub(row.counts.failed());
        let execs = rec.rows.iter().filter(|row| EXECS.contains(&row.syscall)).map(made);
        let went_on = execs.fold(0u64, u64::saturating_add).saturating_sub(1);
        return images(&|_| true).saturating_sub(went_on).max(1);
    }
    let parent_pid = |p: &Process| Some(rec.processes.get(p.parent?.0 as usize)?.pid);
    images(&|p| parent_pid(p) != Some(p.pid))
}

/// Returns true if the recording has entries that represent several process images.
pub(crate) fn has_folded_processes(rec: &Recording) -> bool {
    rec.processes.iter().any(Process::is_many)
}

/// Returns the rows of `findings`, each once.
pub(crate) fn rows_of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> HashSet<RowId> {
    findings.into_iter().flat_map(|f| f.rows.iter().copied()).collect()
}
