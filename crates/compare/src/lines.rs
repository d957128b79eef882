//! Matches the lines of one function in two builds, although their numbers have moved.

use crate::key::Key;
use crate::range::Range;
use std::collections::{BTreeMap, BTreeSet};

/// Largest product of both sides' numbers of lines of a function; above it, lines are matched by
/// their numbers.
const MOST: usize = 40_000;
/// Scores of two lines for being the same: they are called equally often, they have the same
/// number, and they are in the same order.
const SAME_CALLS: u32 = 4;
const SAME_LINE: u32 = 2;
const ORDER: u32 = 1;

/// A line, and the number of calls it makes.
type Line = (Key, Range);

/// Returns, for each line of `new` that has another number in `old`, the old line.
pub(crate) fn moved(old: Vec<Line>, new: Vec<Line>) -> BTreeMap<Key, Key> {
    let by_function = |lines: Vec<Line>| {
        let mut functions: BTreeMap<Key, Vec<Line>> = BTreeMap::new();
        for (key, calls) in lines {
            functions.entry(Key { line: None, ..key.clone() }).or_default().push((key, calls));
        }
        functions
    };
    let old = by_function(old);
    let mut moved = BTreeMap::new();
    for (function, new) in by_function(new) {
        let Some(old) = old.get(&function).filter(|_| function.function.is_some()) else { continue };
        let mut here: BTreeMap<Key, Key> =
            aligned(old, &new).into_iter().map(|(a, b)| (b, a)).filter(|(b, a)| a != b).collect();
        while let Some(taken) = taken(&here, &new) {
            here.remove(&taken);
        }
        moved.extend(here);
    }
    moved
}

/// Returns a moved line whose old number belongs to another line of the new side: only one of them
/// can have it.
fn taken(moved: &BTreeMap<Key, Key>, new: &[Line]) -> Option<Key> {
    let stays: BTreeSet<&Key> = new.iter().map(|(key, _)| key).filter(|key| !moved.contains_key(key)).collect();
    moved.iter().find(|(_, old)| stays.contains(old)).map(|(line, _)| line.clone())
}

/// Returns the best alignment of the lines, in order (Needleman and Wunsch 1970); no pairs if there
/// are too many lines.
fn aligned(old: &[Line], new: &[Line]) -> Vec<(Key, Key)> {
    if old.len().saturating_mul(new.len()) > MOST {
        return Vec::new();
    }
    let width = new.len() + 1;
    let mut best = vec![0u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let pair = best[(i + 1) * width + j + 1] + alike(&old[i], &new[j]);
            best[i * width + j] = pair.max(best[(i + 1) * width + j]).max(best[i * width + j + 1]);
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < old.len() && j < new.len() {
        let here = best[i * width + j];
        if here == best[(i + 1) * width + j + 1] + alike(&old[i], &new[j]) {
            pairs.push((old[i].0.clone(), new[j].0.clone()));
            (i, j) = (i + 1, j + 1);
        } else if here == best[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

fn alike(old: &Line, new: &Line) -> u32 {
    let calls = if old.1.gap(new.1) == 0 { SAME_CALLS } else { 0 };
    let line = if old.0.line == new.0.line { SAME_LINE } else { 0 };
    ORDER + calls + line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(of: &[(u32, u64)]) -> Vec<Line> {
        let key = |line| Key { function: Some("f".into()), line: Some(line), ..Key::default() };
        of.iter().map(|(line, calls)| (key(*line), Range::exactly(*calls))).collect()
    }

    fn pairs(old: &[(u32, u64)], new: &[(u32, u64)]) -> Vec<(u32, u32)> {
        let number = |key: Key| key.line.unwrap_or(0);
        aligned(&lines(old), &lines(new)).into_iter().map(|(a, b)| (number(a), number(b))).collect()
    }

    #[test]
    fn no_two_lines_go_by_one_number() {
        // Line 1 calls as often as line 5 did, but line 5 still exists.
        let now = moved(lines(&[(5, 100)]), lines(&[(1, 100), (5, 1)]));
        assert!(now.is_empty(), "{now:?}");
        // A moved line makes room for another.
        let now = moved(lines(&[(5, 100), (6, 7)]), lines(&[(4, 100), (5, 7)]));
        assert_eq!(now.len(), 2);
    }

    #[test]
    fn lines_keep_their_order_and_their_counts() {
        // A line was added above: all numbers moved.
        assert_eq!(pairs(&[(10, 1), (11, 5)], &[(11, 1), (12, 5)]), [(10, 11), (11, 12)]);
        // A line was added in between.
        assert_eq!(pairs(&[(10, 1), (20, 1)], &[(10, 1), (15, 1000), (20, 1)]), [(10, 10), (20, 20)]);
        // A line makes more calls now.
        assert_eq!(pairs(&[(10, 3), (20, 7)], &[(12, 3), (22, 70)]), [(10, 12), (20, 22)]);
        assert_eq!(pairs(&[], &[(1, 1)]), []);
        assert_eq!(moved(lines(&[(10, 1)]), lines(&[(12, 1)])).len(), 1);
        let many: Vec<(u32, u64)> = (0..1000).map(|n| (n, 1)).collect();
        assert!(pairs(&many, &many).is_empty(), "bounded");
    }
}
