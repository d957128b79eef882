//! The judge's whole result.

use crate::requests::Requests;
use crate::results::finding::{Beneath, Counted, Doubt, Finding, Unjudged, Untold, Wait};
use crate::rounds::Round;
use crate::time::{StartWork, WallTime};
use crate::verdict::silences::Silence;
use std::cmp::Reverse;
use std::ops::RangeInclusive;
use systoll_model::Recording;

/// Least share of processor time, 0 to 1, of calls whose removal a reader may consider. The remarks on 22 everyday commands
/// (`tests/suites/first_sight.py`) cost 1.2 % at most; those on nginx under load cost 7 and 17 %.
const CONSIDERED_CPU: f64 = 0.02;
/// Least share of elapsed time, 0 to 1, of waiting whose removal a reader may consider: a gain that `prove` can show in some
/// twenty pairs.
const CONSIDERED_WALL: f64 = 0.05;
/// Least share of all calls, 0 to 1, that makes up for a low price, and least share of processor time of the work around the
/// calls: the bounds by which `verdict` makes a remark of them.
const CONSIDERED_CALLS: f64 = 0.10;
/// Least share of processor time, 0 to 1, of so many calls: of 24 programs, the cure of calls that took 0.5 to 1 % of the time
/// won 2 to 16 %.
const CONSIDERED_OF_MANY: f64 = 0.005;
/// Least gain, ns, that a reader may consider: [`crate::Options::min_ns`], the least price of a finding.
const CONSIDERED_NS: u64 = 1_000_000;
/// Share of processor time, 0 to 1, from which on a reader wants to know of calls that only others can remove: a program that
/// takes this much is worth another program, or a report to its authors.
const CONSIDERED_OF_OTHERS: f64 = 0.2;

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
    /// Where the elapsed time went; `None` if it is not known.
    pub wall_time: Option<WallTime>,
    /// The work of the program's start; `None` unless the run was watched until the program was ready.
    pub start_work: Option<StartWork>,
    /// Rows of tables that are worth a closer look.
    pub counted: Vec<Counted>,
    /// True if the recording was made from an excerpt of a trace.
    pub is_excerpt: bool,
    /// Processor time that all calls and the findings' started processes take together, ns; 0 if the program's is unknown.
    pub claimed_cpu_ns: u64,
    /// The claims and the reasons for silence of the calls in windows, by row; empty unless
    /// [`crate::UseOfReasons::Explain`] is asked for.
    pub silences: Vec<Silence>,
    /// The recording as the findings see it; `None` if they see it as it is. A row whose calls are about several objects
    /// has parts there, each with the lines and callers of its own objects.
    pub strands: Option<Box<Recording>>,
}

impl Judgement {
    /// Returns the recording to which [`Finding::strands`] refers, for a judgement of `recording`.
    pub fn strands<'a>(&'a self, recording: &'a Recording) -> &'a Recording {
        self.strands.as_deref().unwrap_or(recording)
    }

    /// Returns the remarks that a reader should see beside the findings, most time to win first: those that cost much and
    /// that the reader can do something about.
    pub fn considered<'a>(&'a self, recording: &Recording) -> Vec<&'a Finding> {
        let own = self.own_cpu_ns(recording).unwrap_or(0);
        let mut all: Vec<&Finding> = self.also.iter().filter(|remark| is_considered(remark, own)).collect();
        all.sort_by_key(|remark| Reverse(remark.time_to_win_ns()));
        all
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

/// Returns true if a reader should see a remark on a program that took `own_ns` of processor time; 0 if that is unknown. What
/// may keep a pace is shown where the elapsed time went.
fn is_considered(remark: &Finding, own_ns: u64) -> bool {
    if matches!(remark.doubt, Some(Doubt::Excerpt | Doubt::Pace)) || remark.time_to_win_ns() < CONSIDERED_NS {
        return false;
    }
    if remark.is_about_waiting() {
        return remark.share_of_wall.is_some_and(|share| share >= CONSIDERED_WALL);
    }
    let later = remark.later.and_then(|later| later.share_of_cpu).unwrap_or(0.0);
    let of_cpu = remark.share_of_cpu.unwrap_or(0.0) + later;
    let around = remark.expected_gain.filter(|gain| gain.with_work).map_or(0, |gain| gain.around_ns) as f64;
    let works = own_ns > 0 && around >= CONSIDERED_CALLS * own_ns as f64;
    let many = remark.share_of_calls >= CONSIDERED_CALLS && of_cpu >= CONSIDERED_OF_MANY;
    of_cpu >= CONSIDERED_OF_OTHERS || remark.is_for_reader() && (of_cpu >= CONSIDERED_CPU || many || works)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::finding::{Advice, ExpectedGain, Kind};

    /// Returns a remark about calls that cost 40 ms of a program that took a second.
    fn remark(change: fn(&mut Finding)) -> Finding {
        let cures = vec![Advice::general("keep it")];
        let costs = Finding { needless_toll_ns: 40_000_000, share_of_cpu: Some(0.04), ..Finding::default() };
        let mut remark = Finding { cures, doubt: Some(Doubt::Unsure), ..costs };
        change(&mut remark);
        remark
    }

    #[test]
    fn a_remark_is_considered_if_it_costs_much_and_the_reader_can_act() {
        let considered = |change: fn(&mut Finding)| is_considered(&remark(change), 1_000_000_000);
        let others = |remark: &mut Finding| remark.cures = vec![Advice::to_others("keep it".into())];
        assert!(considered(|_| {}));
        assert!(!considered(|r| r.share_of_cpu = Some(0.01)));
        assert!(considered(|r| (r.share_of_cpu, r.share_of_calls) = (Some(0.01), 0.3)));
        assert!(!considered(|r| (r.share_of_cpu, r.share_of_calls) = (Some(0.004), 0.3)));
        assert!(considered(|r| {
            let work = ExpectedGain { around_ns: 200_000_000, with_work: true, ..ExpectedGain::default() };
            (r.share_of_cpu, r.expected_gain) = (Some(0.002), Some(work));
        }));
        // The work around a question stays without it.
        assert!(!considered(|r| {
            let work = ExpectedGain { around_ns: 200_000_000, ..ExpectedGain::default() };
            (r.share_of_cpu, r.expected_gain) = (Some(0.002), Some(work));
        }));
        assert!(!considered(|r| r.needless_toll_ns = 900_000));
        assert!(!considered(|r| r.doubt = Some(Doubt::Excerpt)));
        assert!(!considered(others));
        assert!(considered(|r| {
            r.cures = vec![Advice::to_others("keep it".into())];
            r.share_of_cpu = Some(0.3);
        }));
        assert!(!considered(|r| (r.kind, r.waited_ns, r.share_of_cpu) = (Kind::Blocking, Some(40_000_000), None)));
    }

    #[test]
    fn what_wins_most_is_considered_first() {
        let also = vec![remark(|_| {}), remark(|r| r.needless_toll_ns = 90_000_000)];
        let judgement = Judgement { also, ..Judgement::default() };
        let won: Vec<u64> = judgement.considered(&Recording::default()).iter().map(|r| r.needless_toll_ns).collect();
        assert_eq!(won, [90_000_000, 40_000_000]);
    }
}
