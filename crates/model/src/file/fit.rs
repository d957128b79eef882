//! Keeps our message within its bound. Windows are dropped first, counts never.

use super::encode::encode;
use crate::names::Stack;
use crate::problem::{Problem, ProblemKind};
use crate::recording::Recording;
use crate::row::RowId;
use prost::Message;
use std::collections::{BTreeMap, HashSet};

/// Size of our message at most, in bytes before compression, unless the exact table alone takes
/// more.
pub(super) const BOUND: usize = 1 << 20;

/// Room for windows if the exact table takes more than the rest of the bound, in parts of the bound.
const ROOM: usize = 4;

/// The steps of thinning, in order, until the message fits. What is left of the costliest rows tells more than a little of
/// each row.
const STEPS: [Step; 9] = [
    Step::WindowsPerRow(8),
    Step::WindowsPerRow(4),
    Step::WindowsPerRow(2),
    Step::CostliestRows(1 << 9),
    Step::CostliestRows(1 << 7),
    Step::CostliestRows(1 << 5),
    Step::ArgumentBytes,
    Step::Stacks,
    Step::WindowsPerRow(0),
];

#[derive(Clone, Copy)]
enum Step {
    /// Keeps at most this number of windows a row: the first, the latest, and some evenly between.
    WindowsPerRow(usize),
    /// Keeps the windows of at most this number of rows: of those that take most time.
    CostliestRows(usize),
    /// Drops the memory that arguments pointed to.
    ArgumentBytes,
    /// Drops the windows' stacks.
    Stacks,
}

/// Returns the encoded message of `rec`, thinned step by step until it takes at most `bound` bytes, or, if the exact table
/// leaves less room than that, until its windows take a fourth of `bound`.
pub(super) fn message(rec: &Recording, bound: usize) -> Vec<u8> {
    let whole = encode(rec).encode_to_vec();
    if whole.len() <= bound || rec.windows.is_empty() {
        return whole;
    }
    let mut thin = rec.clone();
    Gone::default().take(Step::WindowsPerRow(0), &mut thin);
    let bound = bound.max(encode(&thin).encoded_len() + bound / ROOM);
    if whole.len() <= bound {
        return whole;
    }
    let mut thin = rec.clone();
    let mut gone = Gone { bound, ..Gone::default() };
    for step in STEPS {
        gone.take(step, &mut thin);
        let mut told = thin.clone();
        told.problems.push(Problem::new(ProblemKind::Bounded, gone.text(rec.windows.len(), thin.windows.len())));
        let message = encode(&told).encode_to_vec();
        if message.len() <= bound {
            return message;
        }
        thin = told;
        thin.problems.pop();
    }
    thin.problems.push(Problem::new(ProblemKind::Bounded, gone.text(rec.windows.len(), thin.windows.len())));
    encode(&thin).encode_to_vec()
}

#[derive(Default)]
struct Gone {
    /// Size of the message at most, bytes.
    bound: usize,
    bytes: bool,
    stacks: bool,
}

impl Gone {
    fn take(&mut self, step: Step, rec: &mut Recording) {
        match step {
            Step::WindowsPerRow(most) => keep_windows(rec, most),
            Step::CostliestRows(most) => keep_costliest(rec, most),
            Step::ArgumentBytes => {
                self.bytes = true;
                rec.windows.iter_mut().flat_map(|w| &mut w.calls).for_each(|c| c.data.clear());
            }
            Step::Stacks => {
                self.stacks = true;
                rec.windows.iter_mut().flat_map(|w| &mut w.calls).for_each(|c| c.stack = None);
                rec.whole_stacks.clear();
                rec.object_samples.clear();
            }
        }
        empty_unused_stacks(rec);
    }

    fn text(&self, of: usize, kept: usize) -> String {
        let mut text = match kept == of {
            true => format!("the file keeps all {of} windows"),
            false => format!("the file keeps {kept} of {of} windows"),
        };
        if kept > 0 && self.bytes {
            text += if self.stacks { ", without argument bytes and stacks" } else { ", without argument bytes" };
        }
        text + &format!(" to stay within {} KiB", self.bound.div_ceil(1024))
    }
}

fn keep_windows(rec: &mut Recording, most: usize) {
    let mut of_row: BTreeMap<RowId, Vec<usize>> = BTreeMap::new();
    for (index, window) in rec.windows.iter().enumerate() {
        of_row.entry(window.row).or_default().push(index);
    }
    let keep: HashSet<usize> = of_row.values().flat_map(|all| spread(all, most)).collect();
    let mut index = 0;
    rec.windows.retain(|_| {
        index += 1;
        keep.contains(&(index - 1))
    });
}

/// Keeps the windows of the `most` rows that take most time.
fn keep_costliest(rec: &mut Recording, most: usize) {
    let cost = |row: RowId| {
        let counts = &rec.row(row).counts;
        counts.toll_ns.unwrap_or(counts.elapsed_ns).saturating_add(counts.waited_ns.unwrap_or(0))
    };
    let mut rows: Vec<RowId> = rec.windows.iter().map(|window| window.row).collect();
    rows.sort_unstable();
    rows.dedup();
    rows.sort_by_key(|row| std::cmp::Reverse(cost(*row)));
    let keep: HashSet<RowId> = rows.into_iter().take(most).collect();
    rec.windows.retain(|window| keep.contains(&window.row));
}

/// Returns at most `most` items of `all`, evenly spread, with the first and the last.
fn spread(all: &[usize], most: usize) -> Vec<usize> {
    if all.len() <= most {
        return all.to_vec();
    }
    (0..most).filter_map(|i| all.get(i * (all.len() - 1) / (most - 1).max(1)).copied()).collect()
}

/// Empties the stacks that only dropped windows used. The stacks stay in the table, which keeps all indices valid.
fn empty_unused_stacks(rec: &mut Recording) {
    let of_rows = rec.rows.iter().flat_map(|r| [r.context, r.outer]);
    let of_windows = rec.windows.iter().flat_map(|w| &w.calls).filter_map(|c| c.stack);
    let of_trunks = rec.trunks.iter().map(|t| t.stack).chain(rec.whole_stacks.iter().map(|w| w.stack));
    let of_samples = rec.object_samples.iter().flat_map(|s| [s.above, s.whole]);
    let used: HashSet<_> = of_rows.chain(of_windows).chain(of_trunks).chain(of_samples).map(|s| s.0 as usize).collect();
    for (index, stack) in rec.stacks.iter_mut().enumerate() {
        if !used.contains(&index) {
            *stack = Stack::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_latest_window_stay() {
        let all: Vec<usize> = (10..30).collect();
        assert_eq!(spread(&all, 2), [10, 29]);
        assert_eq!(spread(&all, 4), [10, 16, 22, 29]);
        assert_eq!(spread(&all, 0), [0usize; 0]);
        assert_eq!(spread(&[4, 5], 2), [4, 5]);
    }
}
