//! The recording that is judged, with what was derived from it.

use crate::evidence::claim::Claims;
use crate::evidence::survey::RowView;
use crate::groups::program_facts::ProgramFacts;
use crate::semantics::Semantics;
use systoll_model::{Recording, RowId};

/// The data of the judge: a recording and what was derived from it.
#[derive(Clone, Copy)]
pub(crate) struct JudgedView<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// The views of the recording's rows.
    pub views: &'a [RowView<'a>],
    /// The claims on calls in the recording's windows.
    pub claims: &'a Claims,
    /// The tables of system calls' meanings.
    pub semantics: &'a Semantics,
    /// Facts about whole programs that cures ask for.
    pub programs: &'a ProgramFacts,
}

impl JudgedView<'_> {
    /// Returns the estimated number of a row's needless calls, weakly claimed ones among them.
    pub(crate) fn needless_calls(&self, id: RowId) -> f64 {
        let calls = self.recording.row(id).counts.calls;
        self.views.get(id.0 as usize).map_or(0.0, |view| view.needless(calls).any)
    }
}
