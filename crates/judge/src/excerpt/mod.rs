//! An excerpt of a trace: lines out of a run that is not seen whole.
//!
//! Its calls are few because somebody copied few, so that neither their number nor their price says whether they are
//! worth anybody's time. What it does show is how consistently they repeat, how much of what is shown they are, and,
//! where lines have times, how often they come.

mod counted;
mod waits;

pub(crate) use counted::counted;
pub(crate) use waits::waits;

use crate::finding::Confidence;
use crate::options::Options;
use systoll_model::{BackendKind, ProblemKind, Recording};

/// Needless calls that a remark on an excerpt has at least.
const CALLS: u64 = 2;
/// Least share of the calls shown that a remark on an excerpt is about.
const SHARE: f64 = 0.03;
/// Needless calls looked at that a finding on an excerpt has at least.
const LOOKS: u64 = 8;
/// Least share of its rows' calls that is needless in a finding on an excerpt.
const ROW_SHARE: f64 = 0.6;
/// Least share of the calls shown that a finding on an excerpt is about.
const LARGE_SHARE: f64 = 0.1;
/// Needless calls a second that are many beside the stops of a tracer.
const RATE: f64 = 500.0;
/// Least share of the time shown that waiting in an excerpt takes, to be told.
const WAIT_SHARE: f64 = 0.05;
/// Rows of so many calls and more are judged as in a whole run.
const SHORT: u64 = 2_000;

/// A recording made of an excerpt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Excerpt {
    /// Calls shown.
    calls: u64,
    /// Time shown, ns; 0 where lines have no times.
    shown_ns: u64,
}

/// What an excerpt shows of a group's calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InExcerpt {
    /// All calls of the group's rows.
    pub calls: u64,
    /// Calls that are surely needless, among those that were looked at.
    pub sure: u64,
    /// The share of the rows' calls that is surely needless, 0 to 1.
    pub share: f64,
    /// Calls that are needless, be it that each may have a reason.
    pub any: f64,
    /// What the surely needless ones cost by this box's prices, ns.
    pub toll_ns: f64,
    /// The same as a share of the processor time that the times between calls leave the program, 0 to 1.
    pub of_cpu: f64,
    /// Waited, ns, where that is the price.
    pub waited_ns: Option<f64>,
    /// Whether the calls go to standard output or error and nothing shows who reads that: it may be a person.
    pub for_somebody: bool,
}

impl Excerpt {
    /// Returns what a recording is made of, where that is an excerpt.
    pub(crate) fn of(recording: &Recording) -> Option<Self> {
        let is_cut = recording.problems.iter().any(|problem| problem.kind == ProblemKind::CutShort);
        let is_one = recording.header.backend == BackendKind::Import && is_cut && !recording.windows.is_empty();
        is_one.then(|| Self { calls: recording.calls(), shown_ns: recording.header.wall_ns })
    }

    /// Returns how sure an excerpt makes us that a group is worth telling; `None` where it does not.
    pub(crate) fn confidence(self, group: InExcerpt, options: &Options) -> Option<Confidence> {
        let of_shown = group.any / self.calls.max(1) as f64;
        if let Some(waited) = group.waited_ns {
            let costs = waited >= WAIT_SHARE * self.shown_ns as f64 && waited > 0.0;
            let long = waited >= (options.long_wait_ns.saturating_mul(group.calls)) as f64;
            return match group.sure {
                1.. if costs && long => Some(Confidence::Medium),
                sure if costs && sure >= CALLS => Some(Confidence::Low),
                _ => None,
            };
        }
        if group.any < CALLS as f64 || of_shown < SHARE {
            return None;
        }
        let consistent = !group.for_somebody && group.share >= ROW_SHARE && group.sure >= LOOKS;
        let much = of_shown >= LARGE_SHARE && self.costs(group, options);
        // Of many calls the usual bounds tell.
        let few = group.calls < SHORT;
        Some(if consistent && much && few { Confidence::Medium } else { Confidence::Low })
    }

    /// Returns whether what the clock shows makes the calls worth anybody's time; without times nothing speaks against it.
    fn costs(self, group: InExcerpt, options: &Options) -> bool {
        if self.shown_ns == 0 {
            return true;
        }
        let per_second = group.sure as f64 / (self.shown_ns as f64 / 1e9);
        let of_shown = group.toll_ns / self.shown_ns as f64;
        of_shown >= options.min_price || per_second >= RATE && group.of_cpu >= options.min_price
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Header, Problem, ProcessId, RowId, Window};

    const GROUP: InExcerpt = InExcerpt {
        calls: 40,
        sure: 39,
        share: 0.97,
        any: 39.0,
        toll_ns: 40_000.0,
        of_cpu: 1.0,
        waited_ns: None,
        for_somebody: false,
    };

    fn excerpt(calls: u64, shown_ns: u64) -> Excerpt {
        Excerpt { calls, shown_ns }
    }

    #[test]
    fn only_a_cut_trace_is_one() {
        let window = Window { process: ProcessId(0), thread: 0, row: RowId(0), octave: 0, calls: vec![] };
        let mut recording = Recording { windows: vec![window], ..Recording::default() };
        recording.problems.push(Problem::new(ProblemKind::CutShort, "cut"));
        assert_eq!(Excerpt::of(&recording), None);
        recording.header = Header { backend: BackendKind::Import, ..Header::default() };
        assert!(Excerpt::of(&recording).is_some());
        recording.problems.clear();
        assert_eq!(Excerpt::of(&recording), None);
    }

    #[test]
    fn three_lines_are_three_lines() {
        let options = Options::default();
        let three = InExcerpt { calls: 3, sure: 2, share: 0.67, any: 2.0, ..GROUP };
        assert_eq!(excerpt(3, 0).confidence(three, &options), Some(Confidence::Low));
        assert_eq!(excerpt(40, 0).confidence(GROUP, &options), Some(Confidence::Medium));
        let one = InExcerpt { calls: 2, sure: 1, share: 0.5, any: 1.0, ..GROUP };
        assert_eq!(excerpt(2, 0).confidence(one, &options), None);
        // Among thousands of others forty are nothing.
        assert_eq!(excerpt(9_000, 0).confidence(GROUP, &options), None);
    }

    #[test]
    fn a_clock_that_shows_a_small_cost_makes_a_remark() {
        let options = Options::default();
        assert_eq!(excerpt(40, 39_000_000_000).confidence(GROUP, &options), Some(Confidence::Low));
        assert_eq!(excerpt(40, 2_000_000).confidence(GROUP, &options), Some(Confidence::Medium));
    }
}
