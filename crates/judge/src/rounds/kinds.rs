//! Kinds of calls: rows of the same system call from the same place, in all processes of a program, whichever
//! function of the C library made the call. The processes that a program forks do other work than the one that forks
//! them, so that their calls are of other kinds.

use crate::collections::hash::Map;
use crate::evidence::phases::toll;
use systoll_model::{FrameId, Process, Recording, Row, RowId, StackId, Sysno};

/// Returns the time waited in a row's calls, ns; `None` if it is unknown, or if the call can't wait: its thread then
/// only lost the processor to others.
pub(super) fn waited(row: &Row) -> Option<u64> {
    let may_wait = row.syscall.signature().is_none_or(|call| call.may_block || call.waits);
    row.counts.waited_ns.filter(|_| may_wait)
}

/// Index into [`Kinds::all`].
pub(super) type KindId = u32;

/// A system call from one place.
pub(super) struct Kind {
    /// The number of the process image that makes all the calls; `None` if several do.
    pub(super) process: Option<u32>,
    pub(super) syscall: Sysno,
    /// Rows of the kind, each with its number of calls.
    pub(super) rows: Vec<(RowId, u64)>,
    pub(super) calls: u64,
    /// Toll of the calls, ns.
    pub(super) toll: f64,
    /// Time waited in the calls, ns; 0 if it is unknown.
    pub(super) waited: f64,
}

impl Kind {
    /// Returns the number of calls of one of the kind's rows.
    pub(super) fn calls_of(&self, row: RowId) -> Option<u64> {
        let at = self.rows.binary_search_by_key(&row, |(id, _)| *id).ok()?;
        self.rows.get(at).map(|(_, calls)| *calls)
    }
}

/// The caller that rows of one kind share.
#[derive(PartialEq, Eq, Hash)]
enum Caller {
    User(FrameId),
    Context(StackId),
}

/// Returns true if a process runs the program of the process that forked it.
fn is_fork(recording: &Recording, process: &Process) -> bool {
    let parent = process.parent.and_then(|parent| recording.processes.get(parent.0 as usize));
    parent.is_some_and(|parent| parent.pid != process.pid && parent.exe == process.exe)
}

/// All calls of a recording by kind.
pub(super) struct Kinds {
    pub(super) all: Vec<Kind>,
    of_row: Vec<KindId>,
}

impl Kinds {
    /// Returns the rows of a recording by kind.
    pub(super) fn of(recording: &Recording) -> Self {
        let mut programs: Map<(&str, bool), u32> = Map::default();
        let program: Vec<u32> = recording
            .processes
            .iter()
            .map(|process| {
                let next = programs.len() as u32;
                *programs.entry((&process.exe, is_fork(recording, process))).or_insert(next)
            })
            .collect();
        let mut ids: Map<(u32, Sysno, Caller), KindId> = Map::default();
        ids.reserve(recording.rows.len() / 2);
        let mut all: Vec<Kind> = Vec::new();
        let mut of_row = Vec::with_capacity(recording.rows.len());
        for (id, row) in (0..).map(RowId).zip(&recording.rows) {
            let caller = row.user.map_or(Caller::Context(row.context), Caller::User);
            let program = program.get(row.process.0 as usize).copied().unwrap_or(u32::MAX);
            let next = all.len() as KindId;
            let kind = *ids.entry((program, row.syscall, caller)).or_insert(next);
            if kind == next {
                let process = Some(row.process.0);
                all.push(Kind { process, syscall: row.syscall, rows: Vec::new(), calls: 0, toll: 0.0, waited: 0.0 });
            }
            of_row.push(kind);
            if let Some(kind) = all.get_mut(kind as usize) {
                kind.process = kind.process.filter(|process| *process == row.process.0);
                kind.rows.push((id, row.counts.calls));
                kind.calls = kind.calls.saturating_add(row.counts.calls);
                kind.toll += toll(recording, row);
                kind.waited += waited(row).unwrap_or(0) as f64;
            }
        }
        Self { all, of_row }
    }

    /// Returns the kind of a row.
    pub(super) fn of_row(&self, row: RowId) -> KindId {
        self.of_row.get(row.0 as usize).copied().unwrap_or(KindId::MAX)
    }

    /// Returns the kind with this id.
    pub(super) fn get(&self, id: KindId) -> Option<&Kind> {
        self.all.get(id as usize)
    }
}
