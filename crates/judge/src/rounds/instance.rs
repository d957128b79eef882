//! Rounds that windows show, from one call of an anchor to the next, and how much of them is looked at.

use super::kinds::KindId;
use super::stretches::{Stretches, ThreadId};
use std::ops::Range;

/// Share of a kind's calls, 0 to 1, below which its remaining calls are ignored.
pub(super) const LITTLE: f64 = 0.02;
/// Largest number of calls of one round.
pub(super) const LONGEST: usize = 512;
/// Largest number of calls examined for one anchor.
pub(super) const MOST_CALLS: usize = 1 << 15;
/// Share of the rounds that have a call, 0 to 1, from which on the call is a member of the round.
pub(super) const OFTEN: f64 = 0.1;

/// A round in a window.
pub(super) struct Instance {
    /// The stretches with the ranges of the round's calls in them: one, or two pieces of a round that is longer than
    /// a window.
    pub(super) pieces: Vec<(u32, Range<usize>)>,
    /// The number of rounds that the instance represents.
    pub(super) weight: f64,
}

impl Instance {
    /// Returns the kinds of the round's calls, in order.
    pub(super) fn kinds<'a>(&'a self, stretches: &'a Stretches<'_>) -> impl Iterator<Item = KindId> + 'a {
        self.pieces.iter().flat_map(|(at, range)| {
            let kinds = stretches.get(*at).and_then(|stretch| stretch.kinds.get(range.clone()));
            kinds.unwrap_or_default().iter().copied()
        })
    }

    /// Returns the index of the stretch with the round's beginning, and its thread.
    pub(super) fn thread(&self, stretches: &Stretches<'_>) -> Option<(u32, ThreadId)> {
        let (at, _) = self.pieces.first()?;
        Some((*at, stretches.get(*at)?.thread))
    }
}
