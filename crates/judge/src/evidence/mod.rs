//! Claimed calls, and the share of a row that they stand for.

pub(crate) mod claim;
pub(crate) mod extrapolate;
pub(crate) mod ledger;
pub(crate) mod phases;
pub(crate) mod survey;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use systoll_model::{FrameId, RowLine};

/// Returns the lines that are known to have made so many calls, the most first; together they stand for all `calls`.
pub(crate) fn standing_for(calls: u64, known: &BTreeMap<FrameId, u64>) -> Vec<RowLine> {
    let all = known.values().fold(0u64, |sum, looks| sum.saturating_add(*looks)).max(1);
    let weight = |looks: u64| (calls as f64 * looks as f64 / all as f64).round() as u64;
    let of = |(frame, looks): (&_, &u64)| RowLine { frame: *frame, looks: *looks, weight: weight(*looks) };
    let mut lines: Vec<RowLine> = known.iter().map(of).collect();
    lines.sort_by_key(|line| (Reverse(line.looks), line.frame));
    lines
}
