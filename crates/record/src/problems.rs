//! Errors and gaps of a run, each of which is noted once.

use systoll_model::{Problem, ProblemKind};

/// Problems kept, at most; further ones tell nothing new.
const MOST: usize = 64;

/// The problems of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems {
    pub(crate) list: Vec<Problem>,
    /// Number of losses noted, repeated ones included: calls that are not counted.
    pub(crate) losses: u64,
}

impl Problems {
    /// Notes a problem, unless it has been noted before.
    pub(crate) fn note(&mut self, kind: ProblemKind, text: impl Into<String>) {
        let problem = Problem::new(kind, text);
        self.losses += u64::from(kind == ProblemKind::Lost);
        if self.list.len() < MOST && !self.list.contains(&problem) {
            self.list.push(problem);
        }
    }
}
