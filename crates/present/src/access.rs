//! Look-ups in a recording that answer `None` for a handle that isn't the recording's, and the
//! few figures that every screen needs.

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

/// Processes of the tree: images that an image of the same process became by `execve` are one.
pub(crate) fn processes(rec: &Recording) -> u64 {
    let parent_pid = |p: &systoll_model::Process| Some(rec.processes.get(p.parent?.0 as usize)?.pid);
    rec.processes.iter().filter(|p| parent_pid(p) != Some(p.pid)).fold(0, |sum, p| sum.saturating_add(p.instances))
}

/// Rows of `findings`, each once.
pub(crate) fn rows_of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> HashSet<RowId> {
    findings.into_iter().flat_map(|f| f.rows.iter().copied()).collect()
}
