//! Options of a comparison.

use crate::ProveError;
use std::ffi::OsString;
use std::time::Duration;

/// The number of pairs to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// This number of pairs, which are looked at once.
    Fixed(u32),
    /// Until both measures are decided at one of [`LOOKS`], or until this time has passed; the look
    /// in progress is finished then.
    Decisive(Duration),
    /// Like `Decisive`, but no pair begins after this time, and none at all if the smallest number
    /// of pairs that can show something would take longer.
    Within(Duration),
}

/// Numbers of pairs after which a decisive comparison is looked at. They are fixed beforehand, and
/// the error level is divided between them (Bonferroni): unlimited looks would find a difference in
/// any noise.
pub const LOOKS: [u32; 5] = [10, 20, 35, 60, 100];

/// The parts of the outcome that must be the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Same {
    /// True if standard output must be the same.
    pub stdout: bool,
    /// True if standard error must be the same.
    pub stderr: bool,
    /// True if the exit code or signal must be the same.
    pub exit: bool,
    /// A command that runs after the program and examines what it left behind. Its standard output
    /// and exit code must be the same.
    pub by: Option<OsString>,
}

impl Default for Same {
    fn default() -> Self {
        Self { stdout: true, stderr: true, exit: true, by: None }
    }
}

impl Same {
    /// Compares nothing.
    pub const NONE: Self = Self { stdout: false, stderr: false, exit: false, by: None };
}

/// Options of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The number of pairs.
    pub pairs: Pairs,
    /// Probability that an interval holds the true value, below 1.
    pub confidence: f64,
    /// Percentage below which a change is never called a difference: the addresses of a program's
    /// code and stack alone change its time by as much.
    pub negligible_percent: f64,
    /// Number of runs of either side before the first that counts.
    pub warmup: u32,
    /// The parts of the outcome that must be the same.
    pub same: Same,
    /// Seed of the order of runs.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pairs: Pairs::Fixed(20),
            confidence: 0.99,
            negligible_percent: 0.5,
            warmup: 0,
            same: Same::default(),
            seed: 0,
        }
    }
}

impl Options {
    /// Largest number of pairs; more take longer than users wait.
    pub const MAX_PAIRS: u32 = 500;

    /// Returns the fewest pairs for which an interval of this confidence exists. With `n` pairs,
    /// the smallest error level of a signed-rank test is 2 in 2^n.
    pub fn min_pairs(&self) -> u32 {
        (1..=Self::MAX_PAIRS).find(|n| 2f64.powi(1 - *n as i32) <= self.alpha()).unwrap_or(Self::MAX_PAIRS)
    }

    /// Returns the error level of one look.
    pub(crate) fn alpha(&self) -> f64 {
        let looks = if matches!(self.pairs, Pairs::Fixed(_)) { 1 } else { LOOKS.len() };
        (1.0 - self.confidence) / looks as f64
    }

    /// Returns the numbers of pairs after which the comparison is looked at, in order.
    pub(crate) fn looks(&self) -> Vec<u32> {
        match self.pairs {
            Pairs::Fixed(pairs) => vec![pairs],
            Pairs::Decisive(_) | Pairs::Within(_) => LOOKS.into_iter().filter(|n| *n >= self.min_pairs()).collect(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ProveError> {
        let refuse = |text: String| Err(ProveError::Options(text));
        if !(0.5..=0.9999).contains(&self.confidence) {
            return refuse(format!("a confidence of {} can't be had: 0.5 to 0.9999", self.confidence));
        }
        if !(0.0..100.0).contains(&self.negligible_percent) {
            return refuse(format!("{} is no percentage to neglect: 0 to 100", self.negligible_percent));
        }
        let (least, most) = (self.min_pairs(), Self::MAX_PAIRS);
        if let Pairs::Fixed(pairs) = self.pairs
            && !(least..=most).contains(&pairs)
        {
            let percent = self.confidence * 100.0;
            return refuse(format!("{pairs} pairs can't show anything at {percent} %: {least} to {most}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_pairs_are_the_least_for_99_percent() {
        let of = |pairs| Options { pairs: Pairs::Fixed(pairs), ..Options::default() };
        assert_eq!(of(20).min_pairs(), 8);
        assert!(of(8).check().is_ok() && of(500).check().is_ok());
        assert!(of(7).check().is_err() && of(501).check().is_err());
    }

    #[test]
    fn five_looks_share_the_error_level_and_the_first_can_show_something() {
        let options = Options { pairs: Pairs::Decisive(Duration::from_secs(1)), ..Options::default() };
        assert!((options.alpha() - 0.002).abs() < 1e-9);
        assert_eq!((options.min_pairs(), options.looks()), (10, LOOKS.to_vec()));
        assert!(options.check().is_ok());
        let surer = Options { confidence: 0.9999, ..options };
        assert!(surer.looks().first().is_some_and(|n| *n >= surer.min_pairs()));
    }

    #[test]
    fn nonsense_is_refused() {
        for confidence in [0.0, 1.0, f64::NAN, -1.0] {
            assert!(Options { confidence, ..Options::default() }.check().is_err(), "{confidence}");
        }
        assert!(Options { negligible_percent: f64::NAN, ..Options::default() }.check().is_err());
    }
}
