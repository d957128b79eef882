//! The sentences about a run and its findings. The terminal, the page and JSON all print these, so
//! no two of them show different figures for the same thing.

mod finding;
mod most;
mod problems;
mod round;
mod run;
mod trace;
mod wall;

pub(crate) use finding::{OBJECT, subject};
pub(crate) use most::{Most, NOTICED_NS};

use crate::units::{percent_of_cpu, percent_span};
use std::ops::RangeInclusive;
use systoll_judge::Judgement;
use systoll_model::Recording;

/// Duration of a run from which on rates are shown, ns.
pub(crate) const LONG_RUN_NS: u64 = 10_000_000_000;

/// Fraction of the estimate by which an end of its interval must differ for shares of processor
/// time to be written as intervals: shares have two figures.
const SHARE_SPAN_TOLD: f64 = 0.1;

/// Returns true if an end of `span` lies further from `own` than the fraction `part` of it.
pub(crate) fn is_wide(span: &RangeInclusive<u64>, own: u64, part: f64) -> bool {
    own.abs_diff(*span.start()).max(own.abs_diff(*span.end())) as f64 > part * own as f64
}

/// The data from which sentences are made.
#[derive(Clone, Copy)]
pub(crate) struct Sentences<'a> {
    pub(crate) rec: &'a Recording,
    pub(crate) judgement: &'a Judgement,
}

impl Sentences<'_> {
    /// Returns the program's own processor time, ns; `None` if it is not known.
    pub(crate) fn own_cpu_ns(&self) -> Option<u64> {
        self.judgement.own_cpu_ns(self.rec)
    }

    /// Writes `ns` as a part of the program's own processor time: `32 %`. Returns `None` if that is
    /// not known.
    pub(crate) fn part_of_cpu(&self, ns: u64) -> Option<String> {
        self.share_of_own_cpu(ns as f64 / self.own_cpu_ns()? as f64)
    }

    /// Writes a share of the program's own processor time, as an interval if that time is not known
    /// well.
    pub(crate) fn share_of_own_cpu(&self, share: f64) -> Option<String> {
        let own = self.own_cpu_ns().unwrap_or(0);
        match self.judgement.own_cpu_span_ns(self.rec).filter(|span| is_wide(span, own, SHARE_SPAN_TOLD)) {
            Some(span) if share < 1.005 => {
                let of = |ns: u64| share * own as f64 / ns.max(1) as f64;
                percent_span(of(*span.end()), of(*span.start()))
            }
            _ => percent_of_cpu(share),
        }
    }

    /// Writes a share as in `, 32 % of CPU`; nothing if it is not known.
    pub(crate) fn share_of_cpu(&self, ns: u64) -> String {
        self.part_of_cpu(ns).map_or_else(String::new, |p| format!(", {p} of CPU"))
    }

    /// Returns `about ` if tolls are estimates.
    pub(crate) fn about(&self) -> &'static str {
        if self.rec.header.toll_estimated { "about " } else { "" }
    }

    /// Returns true if watching took so long that the wall time isn't the program's own.
    pub(crate) fn slowed(&self) -> bool {
        let h = &self.rec.header;
        let each = h.observer_wall_ns_per_call;
        let slow = h.backend.stops_at_calls() || h.backend.is_trace();
        let unknown = slow && (each <= 0.0 || !each.is_finite());
        unknown || each * self.rec.calls() as f64 > 0.1 * h.wall_ns as f64
    }
}
