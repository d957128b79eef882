//! What a comparison says, as plain data.

use crate::Sameness;
use systoll_model::Exit;

/// Two forms of a program compared: `a` as it is, `b` changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Whether both do the same.
    pub outcome: Outcome,
    /// What was measured; `None` where they do not do the same, so that nothing can be claimed.
    pub measured: Option<Measured>,
}

/// Whether two programs do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Same exit, and output the same to the degree `a`'s is from run to run.
    Same {
        /// How both ended, every time.
        exit: Exit,
        /// How far outputs were compared; what `a` varies by itself was left aside.
        output: Sameness,
    },
    /// They do not.
    Differs(Difference),
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
    /// `a` itself does not do the same twice, so nobody can tell.
    Itself,
}

/// Both sides measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Pairs of runs.
    pub pairs: u32,
    /// Confidence of all intervals, e.g. 0.99.
    pub confidence: f64,
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

/// One side's figures over its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}

impl Change {
    /// How many times less `b` takes than `a`: 38 for -97.4 %; below 1 where it takes more.
    pub fn times_less(&self) -> f64 {
        1.0 / (1.0 + self.percent / 100.0)
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
