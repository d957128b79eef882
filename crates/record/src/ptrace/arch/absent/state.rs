//! State that there is none of.

use systoll_model::BackendKind;

/// State of the counting code for a whole run.
#[derive(Default)]
pub(crate) struct OfRun(());

impl OfRun {
    /// Returns the kind of the backend.
    pub(crate) fn kind(&self) -> BackendKind {
        BackendKind::Ptrace
    }
}

/// State of the counting code for a process.
#[derive(Clone, Default)]
pub(crate) struct OfProcess(());

/// State of the counting code for a thread.
#[derive(Default)]
pub(crate) struct OfThread(());
