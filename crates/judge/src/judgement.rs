//! All that the judge says.

use crate::finding::{Beneath, Counted, Finding, Unjudged, Untold, Wait};
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
    /// Where the needless calls of [`Judgement::untold`] are made, dearest first.
    pub beneath: Vec<Beneath>,
    /// What nothing can be said of.
    pub unjudged: Unjudged,
    /// What threads do again and again, dearest first.
    pub rounds: Vec<Round>,
    /// What the calls of a trace waited for.
    pub waits: Vec<Wait>,
    /// Rows of tables that are worth a closer look.
    pub counted: Vec<Counted>,
    /// True if the recording is made of an excerpt of a trace.
    pub is_excerpt: bool,
}
