//! The judge's whole result.

use crate::finding::{Beneath, Counted, Finding, Unjudged, Untold, Wait};
use crate::requests::Requests;
use crate::rounds::Round;
use std::ops::RangeInclusive;
use systoll_model::Recording;

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
    /// Processor time that all calls and the findings' started processes take together, ns; 0 if the program's is unknown.
    pub claimed_cpu_ns: u64,
    /// The recording as the findings see it; `None` if they see it as it is. A row whose calls are about several objects
    /// has parts there, each with the lines and callers of its own objects.
    pub strands: Option<Box<Recording>>,
}

impl Judgement {
    /// Returns the recording to which [`Finding::strands`] refers, for a judgement of `recording`.
    pub fn strands<'a>(&'a self, recording: &'a Recording) -> &'a Recording {
        self.strands.as_deref().unwrap_or(recording)
    }

    /// Returns the program's processor time, ns, that shares refer to: [`Recording::own_cpu_ns`], or what the findings
    /// claim together if that is more. Returns `None` if it is unknown.
    pub fn own_cpu_ns(&self, recording: &Recording) -> Option<u64> {
        recording.own_cpu_ns().map(|own| own.max(self.claimed_cpu_ns))
    }

    /// Returns the interval of [`Judgement::own_cpu_ns`]; `None` if it is not known. Its lower bound is no less than what
    /// the findings claim together.
    pub fn own_cpu_span_ns(&self, recording: &Recording) -> Option<RangeInclusive<u64>> {
        let span = recording.own_cpu_span_ns()?;
        let least = (*span.start()).max(self.claimed_cpu_ns);
        Some(least..=(*span.end()).max(least))
    }
}
