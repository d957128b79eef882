//! Parts of a round: kinds of calls, and how often each is made.

use super::kinds::KindId;

/// A part of a round: one kind, or a loop of several kinds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// The kinds, each with its number of calls in a row.
    pub(super) kinds: Vec<(KindId, Seen)>,
    /// Number of times that the whole sequence is made.
    pub(super) times: Seen,
}

/// Number of repetitions in a row, over all instances that show them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) least: u64,
    pub(super) most: u64,
    /// Sum of the numbers, weighted by instance.
    pub(super) sum: f64,
    pub(super) weight: f64,
}

impl Seen {
    /// Returns the number of repetitions in one instance.
    pub(super) fn once(times: u64) -> Self {
        Self { least: times, most: times, sum: times as f64, weight: 1.0 }
    }

    /// Returns both numbers joined; `other` counts with `weight`.
    pub(super) fn and(self, other: Self, weight: f64) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            sum: self.sum + weight * other.sum / other.weight,
            weight: self.weight + weight,
        }
    }

    /// Returns the mean number of repetitions.
    pub(super) fn mean(self) -> f64 {
        if self.weight > 0.0 { self.sum / self.weight } else { 0.0 }
    }
}
