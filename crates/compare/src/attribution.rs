//! Finds calls whose caller was seen in one run and not in another: two rows differ, but nothing
//! changed.
//!
//! A backend unwinds a stack as far as it can. If it can't, the row has no caller, or no public
//! function. The calls are counted all the same: the calls that a row with a known caller lacks are
//! in a vague row.

use crate::change::{Change, Verdict};
use crate::key::{By, Key};
use crate::vary::Chance;
use std::collections::BTreeMap;
use std::sync::Arc;
use systoll_model::Sysno;

/// Largest number of pairs of rows that are compared. If more rows differ, nothing can be told
/// about them; and a hostile recording may have any number of rows.
const MOST_PAIRS: usize = 1 << 25;

/// Marks vague rows whose difference is explained by rows with a known caller.
pub(crate) fn set_apart(changes: &mut [Change]) {
    let mut moves = Moves::of(changes);
    // The vague row about which most is known has the fewest candidates.
    let mut vague: Vec<usize> = (0..changes.len()).filter(|at| is_vague(&changes[*at].key)).collect();
    vague.sort_by_key(|at| std::cmp::Reverse(known(&changes[*at].key)));
    let groups = groups(changes);
    let mut pairs = 0usize;
    for at in vague.into_iter().filter(|at| more(&changes[*at]) != 0) {
        let group = groups.get(&group_of(&changes[at].key)).map_or(&[][..], Vec::as_slice);
        pairs = pairs.saturating_add(group.len());
        if pairs > MOST_PAIRS {
            break;
        }
        let others: Vec<usize> =
            group.iter().copied().filter(|o| is_part(&changes[at].key, &changes[*o].key)).collect();
        moves.through(changes, at, &others);
        moves.greedily(at, &others);
    }
    for ((change, left), met) in changes.iter_mut().zip(moves.left).zip(moves.met) {
        if met && left == 0 {
            change.verdict = Verdict::ByChance(Chance::Attribution);
        }
    }
}

/// The system call and the program: calls may only have moved between rows that have both in
/// common.
type Group = (Option<Sysno>, Option<Arc<str>>);

fn group_of(key: &Key) -> Group {
    (key.syscall, key.program.clone())
}

/// Returns the indices of the changes of each group whose number of calls changed.
fn groups(changes: &[Change]) -> BTreeMap<Group, Vec<usize>> {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate().filter(|(_, change)| more(change) != 0) {
        groups.entry(group_of(&change.key)).or_default().push(at);
    }
    groups
}

struct Moves {
    /// Number of calls, for each change, that came (or went) and are not explained yet.
    left: Vec<i128>,
    /// True, for each change, if some of its calls were explained.
    met: Vec<bool>,
}

impl Moves {
    fn of(changes: &[Change]) -> Self {
        Self { left: changes.iter().map(more).collect(), met: vec![false; changes.len()] }
    }

    /// Explains the vague row at `at` as a passage: it gave calls to some of the `others` and got
    /// the calls of the rest. This holds if it had as many calls before as the former gained, has
    /// as many now as the latter lost, and its own change is exactly the difference.
    fn through(&mut self, changes: &[Change], at: usize, others: &[usize]) {
        let (got, lost) = others.iter().fold((0i128, 0i128), |(got, lost), o| {
            let by = self.left[*o];
            (got.saturating_add(by.max(0)), lost.saturating_sub(by.min(0)))
        });
        let vague = &changes[at];
        let had = i128::from(vague.old.calls.median) >= got && i128::from(vague.new.calls.median) >= lost;
        if had && self.left[at] != 0 && self.left[at] == lost - got {
            for at in others.iter().copied().filter(|o| self.left[*o] != 0).chain([at]).collect::<Vec<_>>() {
                (self.left[at], self.met[at]) = (0, true);
            }
        }
    }

    /// Explains the vague row at `at` by the `others` that differ in the opposite direction, one
    /// after the other.
    fn greedily(&mut self, at: usize, others: &[usize]) {
        for &other in others {
            if self.left[at].signum() * self.left[other].signum() < 0 {
                let both = self.left[at].abs().min(self.left[other].abs());
                self.left[at] -= both * self.left[at].signum();
                self.left[other] -= both * self.left[other].signum();
                (self.met[at], self.met[other]) = (true, true);
            }
        }
    }
}

/// Marks changes of another granularity whose whole difference comes from the marked `rows`.
pub(crate) fn set_apart_as_rows(changes: &mut [Change], rows: &[Change], by: By) {
    let told_by = |key: &Key| match by {
        By::Api => Some(Key { api: key.api.clone(), ..Key::default() }),
        By::Caller => Some(Key { syscall: None, api: None, program: None, ..key.clone() }),
        By::Library => Some(Key { library: key.library.clone(), ..Key::default() }),
        By::Syscall | By::Row | By::Line | By::Process => None,
    };
    let mut moved: BTreeMap<Key, i128> = BTreeMap::new();
    for row in rows.iter().filter(|r| r.verdict == Verdict::ByChance(Chance::Attribution)) {
        if let Some(key) = told_by(&row.key) {
            *moved.entry(key).or_default() += more(row);
        }
    }
    for change in changes.iter_mut().filter(|c| c.verdict == Verdict::Changed) {
        if moved.get(&change.key).is_some_and(|by| *by != 0 && *by == more(change)) {
            change.verdict = Verdict::ByChance(Chance::Attribution);
        }
    }
}

/// Returns true if a property of the key is not known, but may be known of other rows.
fn is_vague(key: &Key) -> bool {
    (key.api.is_none() || key.function.is_none() || key.library.is_none())
        && (key.program.is_none() || key.syscall.is_some())
}

fn known(key: &Key) -> usize {
    let names = [&key.api, &key.function, &key.library, &key.file];
    names.iter().filter(|name| name.is_some()).count() + usize::from(key.line.is_some())
}

/// Returns true if `key` could be `whole` with some properties not known.
fn is_part(key: &Key, whole: &Key) -> bool {
    let agrees = |a: &Option<_>, b: &Option<_>| a.is_none() || a == b;
    key.syscall == whole.syscall
        && key.program == whole.program
        && agrees(&key.api, &whole.api)
        && agrees(&key.function, &whole.function)
        && agrees(&key.library, &whole.library)
        && agrees(&key.file, &whole.file)
        && (key.line.is_none() || key.line == whole.line)
        && known(key) < known(whole)
}

fn more(change: &Change) -> i128 {
    i128::from(change.new.calls.median) - i128::from(change.old.calls.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Figures;
    use crate::range::Range;

    fn change(function: Option<&str>, old: u64, new: u64) -> Change {
        let figures = |calls| Figures { calls: Range::exactly(calls), ..Figures::default() };
        Change {
            key: Key { function: function.map(Into::into), syscall: Some(systoll_model::Sysno(0)), ..Key::default() },
            old: figures(old),
            new: figures(new),
            verdict: Verdict::Changed,
            place: None,
            object: None,
            beneath: vec![],
        }
    }

    fn apart(mut changes: Vec<Change>) -> Vec<bool> {
        set_apart(&mut changes);
        changes.iter().map(|c| c.verdict != Verdict::Changed).collect()
    }

    #[test]
    fn calls_without_a_caller_are_those_that_another_row_lacks() {
        assert_eq!(apart(vec![change(None, 0, 2), change(Some("f"), 5, 3)]), [true, true]);
        // More calls came than went: the excess is a change.
        assert_eq!(apart(vec![change(None, 0, 2), change(Some("f"), 5, 4)]), [false, true]);
        assert_eq!(apart(vec![change(None, 0, 2), change(Some("f"), 5, 7)]), [false, false]);
        assert_eq!(apart(vec![change(Some("f"), 5, 3), change(Some("g"), 0, 2)]), [false, false]);
        // The loader's mmap has a dlopen above it, which was seen in one of the runs.
        let of = |api: Option<&str>, mut change: Change| {
            change.key.api = api.map(Into::into);
            change
        };
        let dlopen = |old, new| of(Some("dlopen"), change(Some("map"), old, new));
        assert_eq!(apart(vec![dlopen(0, 48), change(Some("map"), 64, 16)]), [true, true]);
        assert_eq!(apart(vec![dlopen(0, 48), change(Some("read"), 64, 16)]), [false, false], "another caller");
        assert_eq!(apart(vec![dlopen(0, 48), change(Some("map"), 16, 16)]), [false, false]);
        assert_eq!(apart(vec![dlopen(0, 4), change(Some("map"), 3, 1), change(None, 2, 0)]), [true, true, true]);
        // Two of f's calls are seen in the second run, four of g's are not.
        let through = |g| vec![change(None, 2, 4), change(Some("f"), 3, 5), change(Some("g"), g, 0)];
        assert_eq!(apart(through(4)), [true; 3]);
        assert_eq!(apart(through(5)), [true, false, false], "one is gone");
        let too_many = vec![change(None, 1, 3), change(Some("f"), 3, 5), change(Some("g"), 4, 0)];
        assert_eq!(apart(too_many), [true, false, false], "f has got two, and one was there");
        assert_eq!(apart(vec![dlopen(0, 5), change(Some("map"), 3, 1), change(None, 2, 0)]), [false, true, true]);
    }

    #[test]
    fn many_rows_are_compared_in_bounded_time() {
        // In one run, each function's calls have the public function; in the other, they lack it.
        let of = |n: usize, api: Option<&str>, old, new| {
            let mut change = change(Some(&format!("f{n}")), old, new);
            change.key.library = api.map(|_| "libc.so.6".into());
            change.key.api = api.map(Into::into);
            change
        };
        let rows = 30_000;
        let both = (0..rows).flat_map(|n| [of(n, None, 5, 0), of(n, Some("read"), 0, 5)]).collect();
        let told = apart(both);
        assert!(told.iter().take(200).all(|apart| *apart) && !told.iter().rev().take(200).any(|apart| *apart));
    }

    #[test]
    fn row_keys_move_with_their_rows() {
        let moved = |key: &str, old, new| {
            let mut row = change(None, old, new);
            row.key.api = Some(key.into());
            row.verdict = Verdict::ByChance(Chance::Attribution);
            row
        };
        let told = |old, new| {
            let mut change = moved("dlopen", old, new);
            change.key.syscall = None;
            change.verdict = Verdict::Changed;
            let mut all = vec![change];
            set_apart_as_rows(&mut all, &[moved("dlopen", 0, 5), moved("dlopen", 3, 0)], By::Api);
            all[0].verdict != Verdict::Changed
        };
        assert!(told(3, 5) && !told(3, 6), "one call more came");
    }
}
