//! System calls of one side, counted in a watched run.

use std::collections::BTreeMap;
use systoll_model::{Recording, Sysno};

/// Calls of a run by system call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls of each system call made.
    pub by_syscall: BTreeMap<Sysno, u64>,
}

impl CallCounts {
    /// The counts of a recording.
    pub fn of(recording: &Recording) -> Self {
        let by_syscall = recording.by_syscall().into_iter().map(|t| (t.syscall, t.counts.calls)).collect();
        Self { by_syscall }
    }

    /// All calls.
    pub fn total(&self) -> u64 {
        self.by_syscall.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Calls of `syscall`.
    pub fn of_syscall(&self, syscall: Sysno) -> u64 {
        self.by_syscall.get(&syscall).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, ProcessId, Row, StackId};

    #[test]
    fn rows_of_one_call_are_added_up() {
        let row = |n, calls| Row {
            process: ProcessId(0),
            syscall: Sysno(n),
            context: StackId(0),
            outer: StackId(0),
            api: None,
            api_module: None,
            user: None,
            counts: Counts { calls, ..Counts::default() },
        };
        let recording = Recording { rows: vec![row(0, 3), row(1, 5), row(0, 4)], ..Recording::default() };
        let counts = CallCounts::of(&recording);
        assert_eq!((counts.total(), counts.of_syscall(Sysno(0)), counts.of_syscall(Sysno(2))), (12, 7, 0));
    }
}
