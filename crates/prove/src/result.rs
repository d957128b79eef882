//! What a comparison says, as plain data.

use crate::{Answered, Sameness};
use std::time::Duration;
use systoll_cure::Usage;
use systoll_model::Exit;

/// Two forms of a program compared: `a` as it is, `b` changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Whether both do the same.
    pub outcome: Outcome,
    /// Where their outputs differ first, if that is the difference and it was seen.
    pub differs_at: Option<DiffersAt>,
    /// What was measured; `None` where they do not do the same, or where only a part of what was to be
    /// answered in place was, so that nothing can be claimed.
    pub measured: Option<Measured>,
    /// Whether runs were watched, both sides' alike: their times hold what watching costs.
    pub watched: bool,
    /// What became of calls that were to be answered in place of the kernel, where any were. Where too
    /// few were answered nothing is claimed: [`Comparison::measured`] is `None`.
    pub answered: Option<Answered>,
}

impl Comparison {
    /// What became of calls that were to be answered in place, where both do the same.
    pub fn answered_of_same(&self) -> Option<&Answered> {
        self.answered.as_ref().filter(|_| matches!(self.outcome, Outcome::Same(_)))
    }

    /// Whether too few calls were answered in place to claim anything.
    pub fn is_part(&self) -> bool {
        self.answered.as_ref().is_some_and(|a| !a.is_enough())
    }
}

/// A line of one output that the other has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffersAt {
    /// Which, from 1.
    pub line: u64,
    /// What `a` wrote there; `None` where it had ended.
    pub a: Option<String>,
    /// What `b` wrote there.
    pub b: Option<String>,
}

/// Whether two programs do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// They do in all that was compared.
    Same(Agreement),
    /// They do not.
    Differs(Difference),
}

/// What was compared of two programs, and is the same; `None` and `false` where it was not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// How both ended, every time.
    pub exit: Option<Exit>,
    /// How far standard output was compared: what `a` varies by itself was left aside.
    pub stdout: Option<Sameness>,
    /// How far standard error was, likewise.
    pub stderr: Option<Sameness>,
    /// The comparing command says the same of both.
    pub by: bool,
}

impl Agreement {
    /// How far output was compared: the lesser degree of the streams that were.
    pub fn output(&self) -> Option<Sameness> {
        self.stdout.into_iter().chain(self.stderr).min()
    }
}

/// What is not the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// One ends otherwise than the other.
    Exit {
        /// How `a` ended.
        a: Exit,
        /// How `b` ended.
        b: Exit,
    },
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// What the command given to compare by says.
    By,
    /// `b` was still running after this long, many times what `a` takes, and was killed.
    Hangs(Duration),
    /// `a` itself does not do the same twice, so it cannot be told.
    Itself,
}

/// Why no more pairs were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// As many as were asked for.
    Asked,
    /// Wall and processor time are both decided: they differ, or surely by less than 1 %.
    Decided,
    /// The last look has been had.
    LastLook,
    /// The time limit.
    Time,
    /// We were told to end.
    Interrupted,
}

/// Both sides measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Pairs of runs.
    pub pairs: u32,
    /// Why no more.
    pub stopped: Stopped,
    /// Confidence of all intervals together with the looks before, e.g. 0.99.
    pub confidence: f64,
    /// Changes of less than this many percent are called none.
    pub negligible_percent: f64,
    /// As it is.
    pub a: Side,
    /// Changed.
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

/// What a comparison comes to, of wall and processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Neither is shown to differ.
    NothingShown,
    /// One of them at least became less.
    Less,
    /// What differs became more.
    More,
}

impl Measured {
    /// What it comes to.
    pub fn conclusion(&self) -> Conclusion {
        let verdicts = [self.wall.verdict, self.cpu.verdict];
        match (verdicts.contains(&Verdict::Faster), verdicts.contains(&Verdict::Slower)) {
            (true, _) => Conclusion::Less,
            (false, true) => Conclusion::More,
            (false, false) => Conclusion::NothingShown,
        }
    }

    /// What a pair of runs takes, ns.
    pub fn pair_ns(&self) -> f64 {
        self.a.wall_ns.median + self.b.wall_ns.median
    }

    /// Whether neither wall nor processor time is shown to differ.
    pub fn shows_nothing(&self) -> bool {
        self.conclusion() == Conclusion::NothingShown
    }

    /// Whether the change made something better and nothing worse, of wall and processor time.
    pub fn is_won(&self) -> bool {
        let verdicts = [self.wall.verdict, self.cpu.verdict];
        verdicts.contains(&Verdict::Faster) && !verdicts.contains(&Verdict::Slower)
    }
}

/// One side's figures over its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Wall time in ns.
    pub wall_ns: Estimate,
    /// User and system time in ns.
    pub cpu_ns: Estimate,
    /// User time in ns.
    pub user_ns: Estimate,
    /// System time in ns.
    pub sys_ns: Estimate,
    /// Largest resident set in bytes.
    pub max_rss: Estimate,
    /// Context switches, the program's own and those forced on it.
    pub switches: Estimate,
    /// Page faults, with and without reading from disk.
    pub faults: Estimate,
    /// Its timed runs, in the order they were made.
    pub runs: Vec<Usage>,
}

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median run.
    pub median: f64,
    /// The median is at least this.
    pub low: f64,
    /// The median is at most this.
    pub high: f64,
}

/// How a measure changed from `a` to `b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// In percent of `a`: -97.4 is 38 times less.
    pub percent: f64,
    /// The change is at least this.
    pub low: f64,
    /// The change is at most this.
    pub high: f64,
    /// What can be said.
    pub verdict: Verdict,
    /// Pairs after which a change of 1 % would be told from none, noise being what it was.
    pub pairs_for_one_percent: u32,
}

impl Change {
    /// How many times less `b` takes than `a`: 38 for -97.4 %; below 1 where it takes more.
    pub fn times_less(&self) -> f64 {
        1.0 / (1.0 + self.percent / 100.0)
    }

    /// Whether more pairs could tell nothing more of interest: there is a difference, or surely
    /// none of 1 %.
    pub fn is_decided(&self) -> bool {
        self.verdict != Verdict::NoDifference || (self.low > -1.0 && self.high < 1.0)
    }
}

/// What a measurement shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// `b` takes less.
    Faster,
    /// `b` takes more.
    Slower,
    /// The interval includes no change.
    NoDifference,
}

impl Verdict {
    /// As JSON says it.
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
    fn what_became_less_of_either_time_is_what_counts() {
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
