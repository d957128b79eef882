//! The judge's whole result.

use crate::finding::{Beneath, Counted, Finding, Unjudged, Untold, Wait};
use crate::requests::Requests;
use crate::rounds::Round;

/// The judge's whole result on a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The findings, most time to win first.
    pub findings: Vec<Finding>,
    /// The remarks: needless calls that are less sure, or cost too little for a finding.
    pub also: Vec<Finding>,
    /// Needless calls that no finding and no remark reports.
    pub untold: Untold,
    /// The places where the needless calls of [`Judgement::untold`] are made, costliest first.
    pub beneath: Vec<Beneath>,
    /// The calls that can't be judged.
    pub unjudged: Unjudged,
    /// Sequences of calls that threads make again and again, costliest first.
    pub rounds: Vec<Round>,
    /// The costs of a server's requests; `None` if the recording was made without `--by request`.
    pub requests: Option<Requests>,
    /// Waits of an imported trace.
    pub waits: Vec<Wait>,
    /// Rows of tables that are worth a closer look.
    pub counted: Vec<Counted>,
    /// True if the recording was made from an excerpt of a trace.
    pub is_excerpt: bool,
}
