//! Finds a predicted gain that is smaller than the runs can show.

use crate::gain_source::gone_ns;
use crate::result::Comparison;
use crate::{CallCounts, ExpectedWin, Options};
use std::time::Duration;

/// A gain that the runs can neither show nor rule out: the interval of processor time holds both it
/// and no change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Undecided {
    /// Lower bound of the predicted gain of processor time, ns.
    pub told_ns: f64,
    /// Processor time of the unchanged program, ns.
    pub cpu_ns: f64,
    /// The number of pairs that would show the gain; `None` if it is more than are ever run.
    pub shown_by: Option<Enough>,
}

/// A number of pairs that would show a gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enough {
    /// Number of pairs.
    pub pairs: u32,
    /// Time that the pairs take.
    pub time: Duration,
}

/// Factor on the number of pairs. A gain of half an interval's width shows in one of two
/// comparisons. It shows in nine of ten if the interval is narrower by (2.58 + 1.28) / 2.58, from
/// the normal distribution's quantiles of 99.5 and 90 %: that takes 2.25 times the pairs.
const SURELY: f64 = 2.25;

impl Comparison {
    /// Returns the undecided gain: `expected`, or the cost of the calls that are gone. Returns
    /// `None` if a difference is shown, if no gain was predicted, or if the predicted gain is ruled
    /// out.
    pub fn undecided(
        &self,
        counts: Option<(&CallCounts, &CallCounts)>,
        expected: Option<ExpectedWin>,
    ) -> Option<Undecided> {
        let m = self.measured.as_ref().filter(|m| m.shows_nothing())?;
        let (told_ns, cpu_ns) = (self.told_ns(counts, expected)?, m.a.cpu_ns.median);
        let percent = told_ns / cpu_ns.max(1.0) * 100.0;
        let held = m.cpu.low <= -percent;
        let beyond = percent - m.negligible_percent;
        let pairs = f64::from(m.cpu.pairs_for_one_percent) * SURELY / beyond.powi(2);
        let more = f64::from(m.pairs) + 1.0;
        let shown_by = (beyond > 0.0 && pairs <= f64::from(Options::MAX_PAIRS)).then(|| {
            let pairs = pairs.max(more).ceil();
            Enough { pairs: pairs as u32, time: Duration::from_nanos((pairs * m.pair_ns()) as u64) }
        });
        let shown_by = shown_by.filter(|enough| enough.pairs <= Options::MAX_PAIRS);
        held.then_some(Undecided { told_ns, cpu_ns, shown_by })
    }

    /// Returns the lower bound of the predicted gain of processor time, in ns; `None` if it is zero
    /// or not known.
    pub fn told_ns(&self, counts: Option<(&CallCounts, &CallCounts)>, expected: Option<ExpectedWin>) -> Option<f64> {
        let told = self.expected(expected).map(|beside| beside.told.low_ns);
        let gone = || counts.filter(|_| !self.watched).and_then(|(a, b)| gone_ns(a, b));
        told.or_else(gone).filter(|ns| *ns > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measure;
    use crate::{Agreement, Outcome, Stopped, Usage};
    use systoll_model::Exit;

    /// Returns a comparison over runs of some 87 ms whose processor time varies by `noise` ms; the
    /// second side takes `less` ms less.
    fn compared(noise: u64, less: u64) -> Comparison {
        let usage = |ms: u64| Usage {
            exit: Exit::Code(0),
            wall_ns: ms * 1_000_000,
            user_ns: ms * 1_000_000,
            sys_ns: 0,
            max_rss: 0,
            switches: 0,
            faults: 0,
        };
        let of = |nth: u64, step: u64, less: u64| usage(87 - less + if noise == 0 { 0 } else { nth * step % noise });
        let a: Vec<Usage> = (0..20).map(|nth| of(nth, 7, 0)).collect();
        let b: Vec<Usage> = (0..20).map(|nth| of(nth, 5, less)).collect();
        Comparison {
            outcome: Outcome::Same(Agreement::default()),
            differs_at: None,
            measured: Some(measure(&a, &b, Stopped::Asked, &Options::default()).unwrap()),
            watched: false,
            answered: None,
        }
    }

    fn told(ns: f64) -> Option<ExpectedWin> {
        Some(ExpectedWin { low_ns: ns, high_ns: ns, is_at_least: false, own_cpu_ns: None })
    }

    #[test]
    fn a_gain_within_the_noise_is_not_decided() {
        let noisy = compared(23, 0);
        let undecided = noisy.undecided(None, told(4e6)).expect("4 of 87 ms is within the interval");
        assert_eq!(undecided.told_ns, 4e6);
        let enough = undecided.shown_by.expect("some hundred pairs show it");
        assert!((21..=500).contains(&enough.pairs) && enough.time > Duration::from_secs(2), "{enough:?}");
        // A gain outside the interval is ruled out, and without a prediction there is nothing to
        // decide.
        assert_eq!(noisy.undecided(None, told(60e6)), None);
        assert_eq!(noisy.undecided(None, None), None);
        assert_eq!(noisy.undecided(None, told(0.0)), None);
        // A gain too small to be called a difference can't be shown by any number of pairs.
        assert_eq!(noisy.undecided(None, told(0.2e6)).unwrap().shown_by, None);
    }

    #[test]
    fn clear_gains_and_clear_zeros_are_decided() {
        assert_eq!(compared(0, 4).undecided(None, told(4e6)), None);
        assert_eq!(compared(0, 0).undecided(None, told(4e6)), None);
    }
}
