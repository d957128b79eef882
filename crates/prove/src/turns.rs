//! Turns of two sides: their order, and what the figures of both show.

use crate::measure::change_of;
use crate::stats::Cuts;
use crate::{Change, ProveError, Verdict};
use systoll_model::Random;

/// Returns the ranks of the values that bound an interval over `turns` turns a side.
///
/// # Errors
/// So few turns can't show anything at this confidence.
pub(crate) fn cuts(turns: u32, confidence: f64) -> Result<Cuts, ProveError> {
    let too_few = || ProveError::Options(format!("{turns} turns can't show anything at {} %", confidence * 100.0));
    Cuts::new(turns as usize, 1.0 - confidence).ok_or_else(too_few)
}

/// Draws the order of `turns` turns a side, A B B A or B A A B again and again: true for turns of the second side.
pub(crate) fn order(turns: u32, seed: u64) -> Vec<bool> {
    let (mut random, mut order) = (Random::new(seed), Vec::new());
    while order.len() < 2 * turns as usize {
        let first = random.draw().is_multiple_of(2);
        order.extend([first, !first, !first, first]);
    }
    order.truncate(2 * turns as usize);
    order
}

/// Returns the change from one side's figures to the other's, turn by turn. `more` is true if more is better.
///
/// # Errors
/// There are too few turns.
pub(crate) fn change(a: &[f64], b: &[f64], cuts: Cuts, negligible: f64, more: bool) -> Result<Change, ProveError> {
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b.max(1e-9) / a.max(1e-9)).ln()).collect();
    change_of(&ratios, cuts, negligible, more)
}

/// Returns true if one of the changes is an improvement and none is for the worse.
pub(crate) fn is_won(changes: [Option<&Change>; 3]) -> bool {
    let any = |v: Verdict| changes.iter().flatten().any(|c| c.verdict == v);
    any(Verdict::Faster) && !any(Verdict::Slower)
}
