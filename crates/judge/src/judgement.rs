//! All that the judge says.

use crate::finding::{Finding, Unjudged, Untold};
use crate::rounds::Round;

/// All the judge has to say of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Findings, most time to win first.
    pub findings: Vec<Finding>,
    /// Less sure or too small to be findings.
    pub also: Vec<Finding>,
    /// What is in neither.
    pub untold: Untold,
    /// What nothing can be said of.
    pub unjudged: Unjudged,
    /// What threads do again and again, dearest first.
    pub rounds: Vec<Round>,
}
