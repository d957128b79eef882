//! What is said of a run and of its findings, worked out once: the terminal, the page and JSON print these sentences,
//! so that no two of them tell another figure of the same thing.

mod finding;
mod problems;
mod run;
mod trace;

pub(crate) use finding::{OBJECT, subject};

use crate::units::{percent_of_cpu, percent_span};
use std::ops::RangeInclusive;
use systoll_judge::Judgement;
use systoll_model::{BackendKind, Recording};

/// Runs as long as this, in ns, are told in rates too.
pub(crate) const LONG_RUN_NS: u64 = 10_000_000_000;

/// Shares of the processor time are intervals where one end of it lies further off than this part of it: they have two
/// figures.
const SHARE_SPAN_TOLD: f64 = 0.1;

/// Returns whether an end of `span` lies further from `own` than such a part of it.
pub(crate) fn is_wide(span: &RangeInclusive<u64>, own: u64, part: f64) -> bool {
    own.abs_diff(*span.start()).max(own.abs_diff(*span.end())) as f64 > part * own as f64
}

/// All that sentences are made of.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) rec: &'a Recording,
    pub(crate) judgement: &'a Judgement,
}

impl Told<'_> {
    /// A part of the program's own processor time, where that is known: `32 % of CPU`, but for the last two words.
    pub(crate) fn part_of_cpu(&self, ns: u64) -> Option<String> {
        self.share_of_own_cpu(ns as f64 / self.rec.own_cpu_ns()? as f64)
    }

    /// A share of the program's own processor time, an interval where that time is known no better.
    pub(crate) fn share_of_own_cpu(&self, share: f64) -> Option<String> {
        let own = self.rec.own_cpu_ns().unwrap_or(0);
        match self.rec.own_cpu_span_ns().filter(|span| is_wide(span, own, SHARE_SPAN_TOLD)) {
            Some(span) if share < 1.005 => {
                let of = |ns: u64| share * own as f64 / ns.max(1) as f64;
                percent_span(of(*span.end()), of(*span.start()))
            }
            _ => percent_of_cpu(share),
        }
    }

    /// `, 32 % of CPU`, or nothing.
    pub(crate) fn share_of_cpu(&self, ns: u64) -> String {
        self.part_of_cpu(ns).map_or_else(String::new, |p| format!(", {p} of CPU"))
    }

    /// `about ` where tolls are estimates.
    pub(crate) fn about(&self) -> &'static str {
        if self.rec.header.toll_estimated { "about " } else { "" }
    }

    /// Whether watching took so much time that the wall time isn't the program's own.
    pub(crate) fn slowed(&self) -> bool {
        let h = &self.rec.header;
        let each = h.observer_wall_ns_per_call;
        let unknown = h.backend != BackendKind::Inproc && (each <= 0.0 || !each.is_finite());
        unknown || each * self.rec.calls() as f64 > 0.1 * h.wall_ns as f64
    }
}
