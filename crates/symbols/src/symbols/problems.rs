//! Problems of naming, each of which is reported once.

use std::collections::HashSet;
use systoll_model::{Problem, ProblemKind};

/// Problems kept, at most.
const MAX_PROBLEMS: usize = 100;

/// The problems of a run.
#[derive(Debug, Default)]
pub(super) struct Problems {
    kept: Vec<Problem>,
    told: HashSet<String>,
}

impl Problems {
    pub(super) fn add(&mut self, text: String) {
        if self.kept.len() < MAX_PROBLEMS && self.told.insert(text.clone()) {
            self.kept.push(Problem::new(ProblemKind::Name, text));
        }
    }

    pub(super) fn all(&self) -> &[Problem] {
        &self.kept
    }
}
