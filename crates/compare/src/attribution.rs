//! Calls whose caller was seen in one run and not in another: no change, though two rows differ.
//!
//! A backend follows a stack as far as it can; where it can't, the row has no caller. The calls are counted all the
//! same, so what one row lacks another has.

use crate::diff::{Change, Verdict};
use crate::key::Key;
use crate::vary::Chance;
use std::collections::BTreeMap;

/// Marks rows that differ by no more than what has no caller.
pub(crate) fn set_apart(changes: &mut [Change]) {
    // Calls without a caller that came (or went) of each group of rows.
    let mut unknown: BTreeMap<Key, i128> = BTreeMap::new();
    for change in changes.iter().filter(|c| is_unknown(&c.key)) {
        *unknown.entry(group(&change.key)).or_default() += more(change);
    }
    let mut explained: BTreeMap<Key, i128> = BTreeMap::new();
    for change in changes.iter_mut().filter(|c| !is_unknown(&c.key)) {
        let Some(moved) = unknown.get(&group(&change.key)) else { continue };
        let rest = explained.entry(group(&change.key)).or_insert(-moved);
        let by = more(change);
        if by != 0 && by.signum() == rest.signum() && by.abs() <= rest.abs() {
            *rest -= by;
            change.verdict = Verdict::ByChance(Chance::Attribution);
        }
    }
    for change in changes.iter_mut().filter(|c| is_unknown(&c.key)) {
        if explained.get(&group(&change.key)) == Some(&0) {
            change.verdict = Verdict::ByChance(Chance::Attribution);
        }
    }
}

fn is_unknown(key: &Key) -> bool {
    key.api.is_none()
        && key.function.is_none()
        && key.library.is_none()
        && (key.program.is_none() || key.syscall.is_some())
}

/// Rows among which a call may have changed its place.
fn group(key: &Key) -> Key {
    Key { syscall: key.syscall, program: key.program.clone(), ..Key::default() }
}

fn more(change: &Change) -> i128 {
    i128::from(change.new.calls.median) - i128::from(change.old.calls.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Figures;
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

    #[test]
    fn calls_without_a_caller_are_those_that_another_row_lacks() {
        let apart = |mut changes: Vec<Change>| {
            set_apart(&mut changes);
            changes.iter().map(|c| c.verdict != Verdict::Changed).collect::<Vec<_>>()
        };
        assert_eq!(apart(vec![change(None, 0, 2), change(Some("f"), 5, 3)]), [true, true]);
        // More came than went: what came is a change.
        assert_eq!(apart(vec![change(None, 0, 2), change(Some("f"), 5, 4)]), [false, true]);
        assert_eq!(apart(vec![change(None, 0, 2), change(Some("f"), 5, 7)]), [false, false]);
        assert_eq!(apart(vec![change(Some("f"), 5, 3), change(Some("g"), 0, 2)]), [false, false]);
    }
}
