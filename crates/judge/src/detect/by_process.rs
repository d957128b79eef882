//! The files about which windows show processes make certain calls.

use crate::collections::hash::{Map, Set};
use crate::semantics::{Lines, ObservedCall, Semantics};
use crate::world::replay::Step;
use std::borrow::Cow;
use systoll_model::{Recording, RowId};

/// Number of calls of a process for each call of another that is rare beside them.
const RARE: u64 = 16;

/// Files, each with the processes that make calls of one sort about it.
#[derive(Default)]
pub(super) struct FilesByProcess {
    /// By file and process.
    files: Map<String, Map<u32, Caller>>,
}

/// The calls of a process about a file.
#[derive(Default)]
struct Caller {
    /// Rows of the calls.
    rows: Set<RowId>,
    /// Number of all calls of the rows, by exact counts: the calls about the file are no more.
    calls: u64,
    /// Time of the first call of any of the rows, ns since the run's start; 0 if no window shows it.
    first_ns: u64,
}

impl FilesByProcess {
    /// Collects the files of the calls for which `is_such` is true; none if the run has one process only.
    pub(super) fn of(
        recording: &Recording,
        semantics: &Semantics,
        is_such: impl Fn(&Lines, &ObservedCall<'_>) -> bool,
    ) -> Self {
        if recording.processes.len() <= 1 {
            return Self::default();
        }
        let mut files: Map<String, Map<u32, Caller>> = Map::default();
        let mut firsts: Map<RowId, u64> = Map::default();
        for observed in semantics.calls_in_windows(recording, |_| true) {
            let call = observed.call;
            let lines = semantics.lines_of(observed.syscall);
            if call.nth == 1 {
                firsts.insert(call.row, call.entry_ns);
            }
            if !is_such(lines, &observed) {
                continue;
            }
            for file in named(lines, &observed) {
                let caller = files.entry(file).or_default().entry(observed.window.process.0).or_default();
                if caller.rows.insert(call.row) {
                    caller.calls = caller.calls.saturating_add(recording.row(call.row).counts.calls);
                }
            }
        }
        for caller in files.values_mut().flat_map(Map::values_mut) {
            caller.first_ns = caller.rows.iter().map(|row| firsts.get(row).copied().unwrap_or(0)).min().unwrap_or(0);
        }
        Self { files }
    }

    /// Returns true if a process other than the step's makes such calls about the step's file by a row for which `is_such`
    /// is true.
    pub(super) fn is_of_another_by(&self, step: &Step<'_>, is_such: impl Fn(RowId) -> bool) -> bool {
        self.others(step).any(|caller| caller.rows.iter().any(|row| is_such(*row)))
    }

    /// Returns true if a process other than the step's may have made such a call about the step's file before the step.
    pub(super) fn is_of_another_by_then(&self, step: &Step<'_>) -> bool {
        self.others(step).any(|caller| caller.first_ns <= step.observed.call.entry_ns)
    }

    /// Returns true if a process other than the step's makes such calls about the step's file, and not rarely beside the
    /// `calls` that the step is one of.
    pub(super) fn is_often_of_another(&self, step: &Step<'_>, calls: u64) -> bool {
        self.others(step).any(|caller| caller.calls.saturating_mul(RARE) > calls)
    }

    /// Returns the processes other than the step's that make such calls about the step's file.
    fn others(&self, step: &Step<'_>) -> impl Iterator<Item = &Caller> {
        let own = step.observed.window.process.0;
        let of_file = || step.observed.call.object(step.observed.syscall).and_then(|file| self.files.get(&file));
        let callers = if self.files.is_empty() { None } else { of_file() };
        callers.into_iter().flatten().filter(move |(process, _)| **process != own).map(|(_, caller)| caller)
    }
}

/// Returns the files that a call is about: both names of a call that moves a file.
fn named(lines: &Lines, call: &ObservedCall<'_>) -> Vec<String> {
    if !lines.names() {
        return call.call.object(call.syscall).into_iter().collect();
    }
    call.paths(lines.effects(call)).map(Cow::into_owned).collect()
}
