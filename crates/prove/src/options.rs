//! How a comparison is made.

use crate::ProveError;

/// How many pairs, and how sure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Pairs of runs.
    pub pairs: u32,
    /// Probability with which an interval holds the true value, below 1.
    pub confidence: f64,
    /// Changes of less than this many percent are never called a difference: where a program's
    /// code and stack happen to lie moves its time by as much.
    pub negligible_percent: f64,
    /// Seed of the order of runs.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { pairs: 20, confidence: 0.99, negligible_percent: 0.5, seed: 0 }
    }
}

impl Options {
    /// More pairs take longer than anybody waits for.
    pub const MAX_PAIRS: u32 = 500;

    /// The fewest pairs for which an interval of this confidence exists: with `n` pairs the
    /// surest statement of a signed-rank test errs in 2 of 2^n cases.
    pub fn min_pairs(&self) -> u32 {
        (1..=Self::MAX_PAIRS).find(|n| 2f64.powi(1 - *n as i32) <= self.alpha()).unwrap_or(Self::MAX_PAIRS)
    }

    pub(crate) fn alpha(&self) -> f64 {
        1.0 - self.confidence
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
        if !(least..=most).contains(&self.pairs) {
            let percent = self.confidence * 100.0;
            return refuse(format!("{} pairs can't show anything at {percent} %: {least} to {most}", self.pairs));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_pairs_are_the_least_for_99_percent() {
        let of = |pairs| Options { pairs, ..Options::default() };
        assert_eq!(of(20).min_pairs(), 8);
        assert!(of(8).check().is_ok() && of(500).check().is_ok());
        assert!(of(7).check().is_err() && of(501).check().is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for confidence in [0.0, 1.0, f64::NAN, -1.0] {
            assert!(Options { confidence, ..Options::default() }.check().is_err(), "{confidence}");
        }
        assert!(Options { negligible_percent: f64::NAN, ..Options::default() }.check().is_err());
    }
}
