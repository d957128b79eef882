//! What is said of a run and of its findings, worked out once: the terminal, the page and JSON print these sentences,
//! so that no two of them tell another figure of the same thing.

mod finding;
mod problems;
mod run;

pub(crate) use finding::{OBJECT, subject};

use crate::units::percent_of_cpu;
use systoll_judge::Judgement;
use systoll_model::{BackendKind, Recording};

/// Runs as long as this, in ns, are told in rates too.
pub(crate) const LONG_RUN_NS: u64 = 10_000_000_000;

/// All that sentences are made of.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) rec: &'a Recording,
    pub(crate) judgement: &'a Judgement,
}

impl Told<'_> {
    /// A part of the program's own processor time, where that is known: `32 % of CPU`, but for the last two words.
    pub(crate) fn part_of_cpu(&self, ns: u64) -> Option<String> {
        percent_of_cpu(ns as f64 / self.rec.own_cpu_ns()? as f64)
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
