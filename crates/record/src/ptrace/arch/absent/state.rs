//! State that there is none of.

use systoll_model::BackendKind;

/// What a run has.
#[derive(Default)]
pub(crate) struct OfRun(());

impl OfRun {
    /// Returns the kind of the backend.
    pub(crate) fn kind(&self) -> BackendKind {
        BackendKind::Ptrace
    }
}

/// What a process has.
#[derive(Clone, Default)]
pub(crate) struct OfProcess(());

/// What a thread has.
#[derive(Default)]
pub(crate) struct OfThread(());
