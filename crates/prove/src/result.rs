//! Holds the result of a comparison, as plain data.

use crate::{Answered, Sameness};
use std::time::Duration;
use systoll_cure::Usage;
use systoll_model::Exit;

/// The comparison of two variants of a program: `a` unchanged, `b` changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The verdict on whether both variants do the same.
    pub outcome: Outcome,
    /// The first difference of the outputs, if they differ and it was seen.
    pub differs_at: Option<DiffersAt>,
    /// The measurements; `None` if both do not do the same, or if too few calls were answered in
    /// place to claim anything.
    pub measured: Option<Measured>,
    /// True if runs were watched, on both sides alike: the times include the cost of watching.
    pub watched: bool,
    /// Counts of the calls that were to be answered in place, if there were any. If too few were
    /// answered, nothing is claimed: [`Comparison::measured`] is `None`.
    pub answered: Option<Answered>,
}

impl Comparison {
    /// Returns the counts of the calls that were to be answered in place, if both sides do the
    /// same.
    pub fn answered_of_same(&self) -> Option<&Answered> {
        self.answered.as_ref().filter(|_| matches!(self.outcome, Outcome::Same(_)))
    }

    /// Returns true if too few calls were answered in place to claim anything.
    pub fn is_part(&self) -> bool {
        self.answered.as_ref().is_some_and(|a| !a.is_enough())
    }
}

/// A line that differs between the outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffersAt {
    /// Number of the line, from 1.
    pub line: u64,
    /// The line of `a`; `None` if its output had ended.
    pub a: Option<String>,
    /// The line of `b`; `None` if its output had ended.
    pub b: Option<String>,
}

/// The verdict on whether two programs do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The programs do the same, in everything that was compared.
    Same(Agreement),
    /// The programs do not do the same.
    Differs(Difference),
}

/// The parts that were compared and are the same; `None` and `false` for parts that were not
/// compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The exit of every run.
    pub exit: Option<Exit>,
    /// The degree to which standard output was compared: parts that vary in `a` itself are ignored.
    pub stdout: Option<Sameness>,
    /// The degree to which standard error was compared.
    pub stderr: Option<Sameness>,
    /// True if the comparing command's results are the same.
    pub by: bool,
}

impl Agreement {
    /// Returns the lower degree of the compared streams.
    pub fn output(&self) -> Option<Sameness> {
        self.stdout.into_iter().chain(self.stderr).min()
    }
}

/// A difference between two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The exits differ.
    Exit {
        /// Exit of `a`.
        a: Exit,
        /// Exit of `b`.
        b: Exit,
    },
    /// The standard outputs differ.
    Stdout,
    /// The standard errors differ.
    Stderr,
    /// The results of the comparing command differ.
    By,
    /// `b` was still running after this time, many times that of `a`, and was killed.
    Hangs(Duration),
    /// `a` does not do the same twice: nothing can be told.
    Itself,
}

/// The reason why no more pairs were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The requested number of pairs was run.
    Asked,
    /// Wall and processor time are both decided: they differ, or surely by less than 1 %.
    Decided,
    /// The last look was reached.
    LastLook,
    /// The time was up.
    Time,
    /// A signal ended the comparison.
    Interrupted,
}

/// The measurements of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Number of pairs of runs.
    pub pairs: u32,
    /// The reason why no more pairs were run.
    pub stopped: Stopped,
    /// Confidence of all intervals over all looks, e.g. 0.99.
    pub confidence: f64,
    /// Percentage below which a change is not called a difference.
    pub negligible_percent: f64,
    /// The unchanged side.
    pub a: Side,
    /// The changed side.
    pub b: Side,
    /// Change of wall time.
    pub wall: Change,
    /// Change of processor time, user and system together.
    pub cpu: Change,
    /// Change of user time.
    pub user: Change,
    /// Change of system time.
    pub sys: Change,
    /// Change of the largest resident set.
    pub max_rss: Change,
}

/// The conclusion from wall and processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Neither time is shown to differ.
    NothingShown,
    /// At least one of the times is less.
    Less,
    /// At least one of the times is more, and none is less.
    More,
}

impl Measured {
    /// Returns the conclusion from wall and processor time.
    pub fn conclusion(&self) -> Conclusion {
        let verdicts = [self.wall.verdict, self.cpu.verdict];
        match (verdicts.contains(&Verdict::Faster), verdicts.contains(&Verdict::Slower)) {
            (true, _) => Conclusion::Less,
            (false, true) => Conclusion::More,
            (false, false) => Conclusion::NothingShown,
        }
    }

    /// Returns the time of a pair of runs, ns.
    pub fn pair_ns(&self) -> f64 {
        self.a.wall_ns.median + self.b.wall_ns.median
    }

    /// Returns true if neither wall nor processor time is shown to differ.
    pub fn shows_nothing(&self) -> bool {
        self.conclusion() == Conclusion::NothingShown
    }

    /// Returns true if the change improved wall or processor time and worsened neither.
    pub fn is_won(&self) -> bool {
        let verdicts = [self.wall.verdict, self.cpu.verdict];
        verdicts.contains(&Verdict::Faster) && !verdicts.contains(&Verdict::Slower)
    }
}

/// One side's figures over its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Wall time, ns.
    pub wall_ns: Estimate,
    /// User and system time, ns.
    pub cpu_ns: Estimate,
    /// User time, ns.
    pub user_ns: Estimate,
    /// System time, ns.
    pub sys_ns: Estimate,
    /// Largest resident set, bytes.
    pub max_rss: Estimate,
    /// Number of context switches, the program's own and those forced on it.
    pub switches: Estimate,
    /// Number of page faults, with and without reading from disk.
    pub faults: Estimate,
    /// The side's timed runs, in the order in which they were made.
    pub runs: Vec<Usage>,
}

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// Lower end of the median's interval.
    pub low: f64,
    /// Upper end of the median's interval.
    pub high: f64,
}

/// The change of a measure from `a` to `b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The change in percent of `a`: -97.4 is 38 times less.
    pub percent: f64,
    /// Lower end of the change's interval, in percent.
    pub low: f64,
    /// Upper end of the change's interval, in percent.
    pub high: f64,
    /// The conclusion from the interval.
    pub verdict: Verdict,
    /// Number of pairs after which a change of 1 % would show, with the same noise.
    pub pairs_for_one_percent: u32,
}

impl Change {
    /// Returns how many times less `b` takes than `a`: 38 for -97.4 %; below 1 if it takes more.
    pub fn times_less(&self) -> f64 {
        1.0 / (1.0 + self.percent / 100.0)
    }

    /// Returns true if more pairs would not tell more of interest: there is a difference, or surely
    /// none of 1 %.
    pub fn is_decided(&self) -> bool {
        self.verdict != Verdict::NoDifference || (self.low > -1.0 && self.high < 1.0)
    }
}

/// The conclusion from a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// `b` takes less.
    Faster,
    /// `b` takes more.
    Slower,
    /// The interval includes no change at all.
    NoDifference,
}

impl Verdict {
    /// Returns the verdict's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no-difference",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_gain_of_both_times_counts() {
        let change = |verdict| Change { percent: 0.0, low: 0.0, high: 0.0, verdict, pairs_for_one_percent: 0 };
        let zero = Estimate { median: 0.0, low: 0.0, high: 0.0 };
        let side = || Side {
            wall_ns: zero,
            cpu_ns: zero,
            user_ns: zero,
            sys_ns: zero,
            max_rss: zero,
            switches: zero,
            faults: zero,
            runs: Vec::new(),
        };
        let of = |wall, cpu| {
            let (wall, cpu, same) = (change(wall), change(cpu), change(Verdict::NoDifference));
            let (user, sys, max_rss) = (same, same, same);
            let (a, b, stopped) = (side(), side(), Stopped::Asked);
            let (confidence, negligible_percent) = (0.99, 0.5);
            Measured { pairs: 9, stopped, confidence, negligible_percent, a, b, wall, cpu, user, sys, max_rss }
        };
        use Verdict::{Faster, NoDifference, Slower};
        assert_eq!(of(NoDifference, NoDifference).conclusion(), Conclusion::NothingShown);
        assert_eq!(of(NoDifference, Slower).conclusion(), Conclusion::More);
        assert_eq!(of(NoDifference, Faster).conclusion(), Conclusion::Less);
        assert_eq!(of(Slower, Faster).conclusion(), Conclusion::Less);
        assert!(of(NoDifference, NoDifference).shows_nothing() && !of(Slower, Faster).is_won());
    }
}
