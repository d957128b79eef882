//! Leaves out calls at the margins of windows, where no call of their row is ever claimed.
//!
//! A detector needs to see some calls before a call, or after it, to claim it: the making of a thing before its end, the
//! answer before the same answer. Where the window begins or ends sooner, the call is censored: no window shows whether
//! it is needless. How much has to be seen, the claimed calls tell: of all claimed calls of a row, one stands nearest to
//! its window's beginning, and one nearest to its end. Unclaimed calls that stand still nearer count neither as needless
//! nor as useful, if chance alone would hardly leave all of them unclaimed. So do calls on a descriptor that the window
//! does not show to be made, if all claimed calls of the row are on descriptors made before their eyes: another thread
//! may have made it.

use super::claim::{Claims, Judged};
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::Effect;
use systoll_model::{Recording, RowId};

/// Largest chance, 0 to 1, of a margin without a claim in a row whose calls are claimed wherever they stand.
const CHANCE: f64 = 0.05;

/// Number of claimed calls for each one among them that may have an unseen descriptor, in a row whose claims are taken to
/// need descriptors made in the window.
const RARE: u64 = 16;

/// The calls of a row in windows, by their distance from the edges of their windows.
struct RowMargins {
    /// Number of claimed calls.
    claimed: u64,
    /// Smallest number of calls before a claimed call in its window.
    before: usize,
    /// Smallest number of calls after a claimed call in its window.
    after: usize,
    /// Number of unclaimed calls with as much before and after them as some claimed call has.
    unclaimed: u64,
    /// Number of windows with an unclaimed call nearer to the beginning than any claimed one.
    early: Windows,
    /// Number of windows with an unclaimed call nearer to the end than any claimed one.
    late: Windows,
    /// Number of claimed calls on a descriptor that their window does not show to be made.
    claimed_elsewhere: u64,
    /// Number of windows with an unclaimed call on such a descriptor.
    elsewhere: Windows,
}

/// A number of windows, counted as they come.
#[derive(Clone, Copy, Default)]
struct Windows {
    count: u64,
    /// The window counted last, by its number from 1; 0 before the first.
    last: usize,
}

impl Windows {
    fn add(&mut self, window: usize) {
        if self.last != window + 1 {
            (self.last, self.count) = (window + 1, self.count + 1);
        }
    }
}

impl RowMargins {
    fn new() -> Self {
        let none = Windows::default();
        Self {
            claimed: 0,
            before: usize::MAX,
            after: usize::MAX,
            unclaimed: 0,
            early: none,
            late: none,
            claimed_elsewhere: 0,
            elsewhere: none,
        }
    }

    fn add_claimed(&mut self, place: Place) {
        self.claimed += 1;
        self.before = self.before.min(place.before);
        self.after = self.after.min(place.after);
        self.claimed_elsewhere += u64::from(place.elsewhere);
    }

    /// Returns true if the call's descriptor was made out of sight, where calls of the row are hardly claimed.
    fn is_elsewhere(&self, place: Place) -> bool {
        place.elsewhere && RARE * self.claimed_elsewhere <= self.claimed
    }

    fn add_unclaimed(&mut self, place: Place) {
        let (early, late) = (place.before < self.before, place.after < self.after);
        if early {
            self.early.add(place.window);
        }
        if late {
            self.late.add(place.window);
        }
        let elsewhere = self.is_elsewhere(place);
        if elsewhere {
            self.elsewhere.add(place.window);
        }
        self.unclaimed += u64::from(!early && !late && !elsewhere);
    }

    /// Returns true if a margin is without a claim in so many windows that this is no chance.
    fn is_blind(&self, margin: Windows) -> bool {
        let others = (self.unclaimed + 1) as f64 / (self.claimed + self.unclaimed + 1) as f64;
        margin.count > 0 && others.powf(margin.count as f64) <= CHANCE
    }

    /// Returns true if the place of an unclaimed call hides whether the call is needless.
    fn hides(&self, place: Place) -> bool {
        place.before < self.before && self.is_blind(self.early)
            || place.after < self.after && self.is_blind(self.late)
            || self.is_elsewhere(place) && self.is_blind(self.elsewhere)
    }
}

/// The place of a call.
#[derive(Clone, Copy)]
struct Place {
    /// Index of its window in the recording.
    window: usize,
    /// Number of calls before it in the window.
    before: usize,
    /// Number of calls after it in the window.
    after: usize,
    /// True if it is on a descriptor that the window does not show to be made.
    elsewhere: bool,
}

/// The calls of all windows, in order, each with a mark: true if the call is on a descriptor that its window does not
/// show to be made.
#[derive(Default)]
pub(super) struct Elsewhere(Vec<bool>);

impl Elsewhere {
    /// Reads one window.
    pub(super) fn window(&mut self, steps: &[Step<'_>]) {
        let mut made: Set<i32> = Set::default();
        for step in steps {
            self.0.push(step.descriptor().is_some_and(|fd| !made.contains(&fd)));
            let makes = |effect| matches!(effect, Effect::Opens | Effect::OpensPath { .. } | Effect::Shares);
            if step.effects.iter().any(makes) {
                made.extend(step.observed.call.result.and_then(|fd| i32::try_from(fd).ok()));
            }
        }
    }
}

/// Leaves out the unclaimed calls at the margins of windows that hide whether they are needless. All claims have been
/// made.
pub(super) fn leave_out(recording: &Recording, elsewhere: &Elsewhere, claims: &mut Claims) {
    let mut rows: Map<RowId, RowMargins> = Map::default();
    for_each(recording, elsewhere, claims, |row, place, is_claimed, _| {
        if is_claimed {
            rows.entry(row).or_insert_with(RowMargins::new).add_claimed(place);
        }
    });
    if rows.is_empty() {
        return;
    }
    for_each(recording, elsewhere, claims, |row, place, is_claimed, is_first| {
        if let Some(margins) = rows.get_mut(&row).filter(|_| !is_claimed && !is_first) {
            margins.add_unclaimed(place);
        }
    });
    rows.retain(|_, row| [row.early, row.late, row.elsewhere].iter().any(|margin| row.is_blind(*margin)));
    let mut hidden: Vec<Place> = Vec::new();
    for_each(recording, elsewhere, claims, |row, place, is_claimed, is_first| {
        let hides = || rows.get(&row).is_some_and(|row| row.hides(place));
        // No call like a row's first came before it.
        if !is_claimed && !is_first && hides() {
            hidden.push(place);
        }
    });
    hidden.iter().for_each(|place| claims.leave_out_at(place.window, place.before));
}

/// Calls `told` for each call of the windows that is not left out, with its row, its place, and whether it is claimed
/// and the first of its row.
fn for_each(
    recording: &Recording,
    elsewhere: &Elsewhere,
    claims: &Claims,
    mut told: impl FnMut(RowId, Place, bool, bool),
) {
    let mut judged = claims.iter().zip(&elsewhere.0);
    for (at, window) in recording.windows.iter().enumerate() {
        for ((index, call), judged) in window.calls.iter().enumerate().zip(judged.by_ref()) {
            let (judged, elsewhere) = judged;
            let after = window.calls.len() - 1 - index;
            let place = Place { window: at, before: index, after, elsewhere: *elsewhere };
            match judged {
                Judged::LeftOut => {}
                Judged::Unclaimed => told(call.row, place, false, call.nth == 1),
                Judged::Claimed(_) => told(call.row, place, true, call.nth == 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the margins of a row with calls at these places, by the number of calls before and after them.
    fn margins(claimed: &[(usize, usize)], unclaimed: &[(usize, usize)]) -> RowMargins {
        let mut row = RowMargins::new();
        let place = |window: usize, (before, after): (usize, usize)| Place { window, before, after, elsewhere: false };
        claimed.iter().enumerate().for_each(|(window, at)| row.add_claimed(place(window, *at)));
        unclaimed.iter().enumerate().for_each(|(window, at)| row.add_unclaimed(place(window, *at)));
        row
    }

    const FIRST: Place = Place { window: 0, before: 0, after: 31, elsewhere: false };
    const MIDDLE: Place = Place { window: 0, before: 16, after: 15, elsewhere: false };
    const LAST: Place = Place { window: 0, before: 31, after: 0, elsewhere: false };

    #[test]
    fn a_call_nearer_to_the_edge_than_any_claimed_one_is_hidden() {
        let row = margins(&[(1, 30); 40], &[(0, 31); 8]);
        assert!(row.hides(FIRST) && !row.hides(MIDDLE) && !row.hides(LAST));
        let row = margins(&[(0, 1); 40], &[(31, 0); 8]);
        assert!(row.hides(LAST) && !row.hides(MIDDLE) && !row.hides(FIRST));
    }

    #[test]
    fn where_few_calls_are_claimed_a_margin_without_a_claim_is_chance() {
        // Every tenth call is claimed: eight calls at the edges without a claim prove nothing.
        let unclaimed: Vec<(usize, usize)> = [(0, 31); 8].into_iter().chain([(9, 22); 90]).collect();
        assert!(!margins(&[(9, 22); 10], &unclaimed).hides(FIRST));
    }

    #[test]
    fn a_descriptor_made_out_of_sight_hides_a_call_whose_like_are_claimed_by_their_making() {
        let seen = margins(&[(0, 31), (9, 22), (31, 0)], &[]);
        let elsewhere = Place { elsewhere: true, ..MIDDLE };
        let of = |mut row: RowMargins, of_claimed: u64| {
            (row.claimed, row.claimed_elsewhere) = (40, of_claimed);
            (0..4).for_each(|window| row.add_unclaimed(Place { window, ..elsewhere }));
            row.hides(elsewhere)
        };
        assert!(of(seen, 0));
        assert!(!of(margins(&[(0, 31), (9, 22), (31, 0)], &[]), 20));
    }

    #[test]
    fn calls_of_one_window_are_one_proof() {
        let mut row = margins(&[(4, 4); 3], &[]);
        (0..4).for_each(|before| row.add_unclaimed(Place { window: 7, before, after: 31 - before, elsewhere: false }));
        assert_eq!(row.early.count, 1);
        assert!(!row.hides(FIRST));
    }
}
