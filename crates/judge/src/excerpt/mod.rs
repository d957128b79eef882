//! Findings on an excerpt: lines copied out of the trace of a run.
//!
//! An excerpt has few calls because the user copied few lines, so neither their number nor their price tells if they
//! matter. It does show how consistently calls repeat, their share of the lines shown, and, where lines have times,
//! their rate.

mod counted;
mod waits;

pub(crate) use counted::counted;
pub(crate) use waits::waits;

use crate::options::Options;
use crate::results::finding::Confidence;
use systoll_model::{ProblemKind, Recording};

/// Least number of needless calls for a remark on an excerpt.
const CALLS: u64 = 2;
/// Least share of the calls shown, 0 to 1, for a remark on an excerpt.
const SHARE: f64 = 0.03;
/// Least number of needless calls in windows for a finding on an excerpt.
const LOOKS: u64 = 8;
/// Least needless share of the rows' calls, 0 to 1, for a finding on an excerpt.
const ROW_SHARE: f64 = 0.6;
/// Least share of the calls shown, 0 to 1, for a finding on an excerpt.
const LARGE_SHARE: f64 = 0.1;
/// Number of needless calls a second from which on they matter although a tracer's stops slow the
/// program down.
const RATE: f64 = 500.0;
/// Least share of the time shown, 0 to 1, that the waits of a finding or remark take.
const WAIT_SHARE: f64 = 0.05;
/// Number of a group's calls from which on the bounds of a whole run decide.
const SHORT: u64 = 2_000;

/// Sizes of an excerpt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Excerpt {
    /// Number of calls that the excerpt shows.
    calls: u64,
    /// Time shown, ns; 0 where lines have no times.
    shown_ns: u64,
}

/// Figures of a group's calls in an excerpt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InExcerpt {
    /// Number of calls of the group's rows.
    pub calls: u64,
    /// Number of sampled calls that are surely needless.
    pub sure: u64,
    /// Share of the rows' calls that is surely needless, 0 to 1.
    pub share: f64,
    /// Number of calls that are needless or may be needless.
    pub any: f64,
    /// Toll of the surely needless calls by this box's prices, ns.
    pub toll_ns: f64,
    /// Share of `toll_ns`, 0 to 1, in the program's processor time, which is estimated from the times between calls.
    pub of_cpu: f64,
    /// Time waited, ns, if the group's price is waiting.
    pub waited_ns: Option<f64>,
    /// True if the calls write to standard output or error and nothing shows who reads that: it may be a person.
    pub for_somebody: bool,
}

impl Excerpt {
    /// Returns the size of the excerpt that the recording was made from; `None` if it was made from a whole run.
    pub(crate) fn of(recording: &Recording) -> Option<Self> {
        let is_cut = recording.problems.iter().any(|problem| problem.kind == ProblemKind::CutShort);
        let is_one = recording.header.backend.is_trace() && is_cut && !recording.windows.is_empty();
        is_one.then(|| Self { calls: recording.calls(), shown_ns: recording.header.wall_ns })
    }

    /// Returns the confidence that the excerpt gives a group; `None` if the group is not worth a remark.
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
        // A group with many calls is judged by the bounds of a whole run.
        let few = group.calls < SHORT;
        Some(if consistent && much && few { Confidence::Medium } else { Confidence::Low })
    }

    /// Returns true if the times shown make the calls worth a cure, or if lines have no times.
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
    use systoll_model::{BackendKind, Header, Problem, ProcessId, RowId, Window};

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
        // Forty calls among nine thousand are too small a share.
        assert_eq!(excerpt(9_000, 0).confidence(GROUP, &options), None);
    }

    #[test]
    fn a_clock_that_shows_a_small_cost_makes_a_remark() {
        let options = Options::default();
        assert_eq!(excerpt(40, 39_000_000_000).confidence(GROUP, &options), Some(Confidence::Low));
        assert_eq!(excerpt(40, 2_000_000).confidence(GROUP, &options), Some(Confidence::Medium));
    }
}
