//! Look-ups in a recording that return `None` for an id that the recording does not have, and
//! figures that every screen needs.

use std::collections::HashSet;
use systoll_judge::Finding;
use systoll_model::{Frame, FrameId, Module, ModuleId, Recording, Row, RowId, Stack, StackId};

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

/// Returns the number of processes in the tree. Images of one process, before and after an
/// `execve`, count once.
pub(crate) fn processes(rec: &Recording) -> u64 {
    let parent_pid = |p: &systoll_model::Process| Some(rec.processes.get(p.parent?.0 as usize)?.pid);
    rec.processes.iter().filter(|p| parent_pid(p) != Some(p.pid)).fold(0, |sum, p| sum.saturating_add(p.instances))
}

/// Returns the rows of `findings`, each once.
pub(crate) fn rows_of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> HashSet<RowId> {
    findings.into_iter().flat_map(|f| f.rows.iter().copied()).collect()
}
