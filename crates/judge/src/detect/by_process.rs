//! The files about which windows show processes make certain calls.

use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::{Lines, ObservedCall, Semantics};
use systoll_model::Recording;

/// Files, each with the processes that make calls of one sort about it.
#[derive(Default)]
pub(super) struct FilesByProcess {
    files: Map<String, Vec<u32>>,
}

impl FilesByProcess {
    /// Collects the files of the calls for which `is_such` is true; none if the run has one process only.
    pub(super) fn of(
        recording: &Recording,
        semantics: &Semantics,
        is_such: impl Fn(&Lines, &ObservedCall<'_>) -> bool,
    ) -> Self {
        let mut files: Map<String, Vec<u32>> = Map::default();
        for window in recording.windows.iter().filter(|_| recording.processes.len() > 1) {
            for call in &window.calls {
                let syscall = recording.row(call.row).syscall;
                if !is_such(semantics.lines_of(syscall), &ObservedCall { window, call, syscall }) {
                    continue;
                }
                let Some(file) = call.object(syscall) else { continue };
                let processes = files.entry(file).or_default();
                if !processes.contains(&window.process.0) {
                    processes.push(window.process.0);
                }
            }
        }
        Self { files }
    }

    /// Returns true if a process other than the step's makes such calls about the step's file.
    pub(super) fn is_of_another(&self, step: &Step<'_>) -> bool {
        let own = step.observed.window.process.0;
        let processes = || step.observed.call.object(step.observed.syscall).and_then(|file| self.files.get(&file));
        !self.files.is_empty() && processes().is_some_and(|of| of.iter().any(|process| *process != own))
    }
}
