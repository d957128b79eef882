//! The recording that is judged, with what was derived from it.

use crate::detect::Claims;
use crate::program_facts::ProgramFacts;
use crate::semantics::Semantics;
use crate::survey::RowView;
use systoll_model::Recording;

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
