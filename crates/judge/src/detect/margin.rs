//! Leaves out calls at the margins of windows, where no call of their row is ever claimed.
//!
//! A detector needs to see some calls before a call, or after it, to claim it: the making of a thing before its end, the
//! answer before the same answer. Where the window begins or ends sooner, the call is censored: no window shows whether
//! it is needless. How much has to be seen, the claimed calls tell: nearer to its window's beginning than some distance,
//! or to its end, there is hardly a claimed call of a row. Unclaimed calls that stand so near count neither as needless
//! nor as useful, if chance alone would hardly leave so many of them unclaimed. So do calls on a descriptor that the window
//! does not show to be made, if all claimed calls of the row are on descriptors made before their eyes: another thread
//! may have made it.

use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claims, Judged};
use crate::semantics::Effect;
use crate::world::replay::Step;
use systoll_model::{Recording, RowId};

/// Largest chance, 0 to 1, of a margin without a claim in a row whose calls are claimed wherever they stand.
const CHANCE: f64 = 0.05;

/// Number of claimed calls for each one among them that may have an unseen descriptor, in a row whose claims are taken to
/// need descriptors made in the window.
const RARE: u64 = 16;

/// Number of a row's claimed calls for each one among them that may stand in a margin: the first windows of a run know
/// more of what came before than later ones do.
const ASTRAY: u64 = 32;
/// Largest number of calls before and after a call that a claim is taken to need, together: half of a usual window, so that
/// the other half shows whether calls are claimed that have as many.
const NEEDED: usize = 16;
/// Distances from an edge of a window that are told apart, in calls.
const WIDE: usize = 64;

/// The calls of a row in windows, by their distance from the edges of their windows.
struct RowMargins {
    /// Number of claimed calls.
    claimed: u64,
    /// Number of unclaimed calls in no margin.
    unclaimed: u64,
    early: Margin,
    late: Margin,
    elsewhere: Margin,
    /// Number of claimed calls by the number of calls before them in the window, and by that after them.
    by_distance: Box<[[u32; WIDE]; 2]>,
}

/// A margin of windows.
#[derive(Clone, Copy, Default)]
struct Margin {
    /// Calls with fewer calls between them and the edge are in the margin.
    width: usize,
    /// Number of claimed calls in it.
    claimed: u64,
    /// Number of windows with an unclaimed call in it.
    windows: u64,
    /// The window counted last, by its number from 1; 0 before the first.
    last: usize,
    /// True if no window shows whether unclaimed calls in it are needless.
    is_blind: bool,
}

impl Margin {
    /// Returns the margin in which hardly any claimed call stands, given their numbers by distance from the edge.
    fn of(by_distance: &[u32; WIDE], claimed: u64) -> Self {
        let mut margin = Self::default();
        for n in by_distance {
            if ASTRAY * (margin.claimed + u64::from(*n)) > claimed {
                break;
            }
            margin.claimed += u64::from(*n);
            margin.width += 1;
        }
        margin
    }

    fn add(&mut self, window: usize) {
        if self.last != window + 1 {
            (self.last, self.windows) = (window + 1, self.windows + 1);
        }
    }

    /// Judges whether so few calls in the margin are claimed that this is no chance, if `share` of the others are.
    fn judge(&mut self, share: f64) {
        self.is_blind = self.windows > 0 && at_most(self.claimed, self.claimed + self.windows, share) <= CHANCE;
    }
}

/// Returns the chance, 0 to 1, of at most `k` successes in `n` trials that succeed with a chance of `share`.
fn at_most(k: u64, n: u64, share: f64) -> f64 {
    let odds = (share / (1.0 - share)).ln();
    let mut term = n as f64 * (1.0 - share).ln();
    let mut sum = 0.0;
    for i in 0..=k.min(n) {
        sum += term.exp();
        term += ((n - i) as f64 / (i + 1) as f64).ln() + odds;
    }
    sum
}

impl RowMargins {
    fn new() -> Self {
        let none = Margin::default();
        let by_distance = Box::new([[0; WIDE]; 2]);
        Self { claimed: 0, unclaimed: 0, early: none, late: none, elsewhere: none, by_distance }
    }

    fn add_claimed(&mut self, place: Place) {
        self.claimed += 1;
        self.elsewhere.claimed += u64::from(place.elsewhere);
        let [before, after] = &mut *self.by_distance;
        for (by_distance, distance) in [(before, place.before), (after, place.after)] {
            if let Some(n) = by_distance.get_mut(distance) {
                *n += 1;
            }
        }
    }

    /// Finds the margins, once all claimed calls are known.
    fn measure(&mut self) {
        let [before, after] = &*self.by_distance;
        let (early, late) = (Margin::of(before, self.claimed), Margin::of(after, self.claimed));
        if early.width + late.width <= NEEDED {
            (self.early, self.late) = (early, late);
        }
        // Any width would do: a call is in this margin, or it is not.
        self.elsewhere.width = usize::from(RARE * self.elsewhere.claimed <= self.claimed);
    }

    /// Returns true for each margin that the place is in: that at the window's beginning, that at its end, and that of
    /// descriptors made elsewhere.
    fn margins_of(&self, place: Place) -> [bool; 3] {
        let elsewhere = place.elsewhere && self.elsewhere.width > 0;
        [place.before < self.early.width, place.after < self.late.width, elsewhere]
    }

    fn add_unclaimed(&mut self, place: Place) {
        let in_margins = self.margins_of(place);
        self.unclaimed += u64::from(in_margins == [false; 3]);
        let margins = [&mut self.early, &mut self.late, &mut self.elsewhere];
        margins
            .into_iter()
            .zip(in_margins)
            .filter(|(_, is_in)| *is_in)
            .for_each(|(margin, _)| margin.add(place.window));
    }

    /// Judges the margins, once all calls are known. Returns true if one of them is blind.
    fn judge(&mut self) -> bool {
        let share = self.claimed as f64 / (self.claimed + self.unclaimed + 1) as f64;
        let mut margins = [&mut self.early, &mut self.late, &mut self.elsewhere];
        margins.iter_mut().for_each(|margin| margin.judge(share));
        margins.iter().any(|margin| margin.is_blind)
    }

    /// Returns true if the place of an unclaimed call hides whether the call is needless.
    fn hides(&self, place: Place) -> bool {
        let margins = [&self.early, &self.late, &self.elsewhere];
        margins.into_iter().zip(self.margins_of(place)).any(|(margin, is_in)| is_in && margin.is_blind)
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
    rows.values_mut().for_each(RowMargins::measure);
    for_each(recording, elsewhere, claims, |row, place, is_claimed, is_first| {
        if let Some(margins) = rows.get_mut(&row).filter(|_| !is_claimed && !is_first) {
            margins.add_unclaimed(place);
        }
    });
    rows.retain(|_, row| row.judge());
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

    const FIRST: Place = Place { window: 0, before: 0, after: 31, elsewhere: false };
    const MIDDLE: Place = Place { window: 0, before: 4, after: 12, elsewhere: false };
    const LAST: Place = Place { window: 0, before: 31, after: 0, elsewhere: false };

    /// Returns the judged margins of a row with calls at these places, each with its number of windows.
    fn margins(claimed: &[(Place, usize)], unclaimed: &[(Place, usize)]) -> RowMargins {
        let mut row = RowMargins::new();
        let places = |of: &[(Place, usize)]| -> Vec<Place> {
            of.iter().flat_map(|(place, n)| (0..*n).map(|window| Place { window, ..*place })).collect()
        };
        places(claimed).into_iter().for_each(|place| row.add_claimed(place));
        row.measure();
        places(unclaimed).into_iter().for_each(|place| row.add_unclaimed(place));
        row.judge();
        row
    }

    #[test]
    fn a_call_nearer_to_the_edge_than_claimed_ones_is_hidden() {
        let row = margins(&[(MIDDLE, 40)], &[(FIRST, 8)]);
        assert!(row.hides(FIRST) && !row.hides(MIDDLE) && !row.hides(LAST));
        let row = margins(&[(MIDDLE, 40)], &[(LAST, 8)]);
        assert!(row.hides(LAST) && !row.hides(MIDDLE) && !row.hides(FIRST));
    }

    #[test]
    fn claims_in_the_middle_of_windows_alone_hide_nothing() {
        // Both margins together would be nearly all of a window.
        let claimed = [(Place { before: 14, after: 17, ..MIDDLE }, 8)];
        assert!(!margins(&claimed, &[(FIRST, 40), (LAST, 40)]).hides(FIRST));
    }

    #[test]
    fn one_claimed_call_in_forty_may_stand_in_the_margin() {
        assert!(margins(&[(FIRST, 1), (MIDDLE, 39)], &[(FIRST, 8)]).hides(FIRST));
        assert!(!margins(&[(FIRST, 4), (MIDDLE, 36)], &[(FIRST, 8)]).hides(FIRST));
    }

    #[test]
    fn where_few_calls_are_claimed_a_margin_without_a_claim_is_chance() {
        // Every tenth call is claimed: eight calls at the edges without a claim prove nothing.
        assert!(!margins(&[(MIDDLE, 10)], &[(FIRST, 8), (MIDDLE, 90)]).hides(FIRST));
    }

    #[test]
    fn a_descriptor_made_out_of_sight_hides_a_call_whose_like_are_claimed_by_their_making() {
        let elsewhere = Place { elsewhere: true, ..MIDDLE };
        assert!(margins(&[(MIDDLE, 40)], &[(elsewhere, 4)]).hides(elsewhere));
        assert!(!margins(&[(MIDDLE, 20), (elsewhere, 20)], &[(elsewhere, 4)]).hides(elsewhere));
    }

    #[test]
    fn calls_of_one_window_are_one_proof() {
        let row = margins(&[(MIDDLE, 3)], &[(FIRST, 1), (FIRST, 1), (FIRST, 1)]);
        assert_eq!(row.early.windows, 1);
        assert!(!row.hides(FIRST));
    }

    #[test]
    fn chances_are_those_of_the_binomial_distribution() {
        let rounded = |k, n, share| (1000.0 * at_most(k, n, share)).round();
        assert_eq!([rounded(0, 3, 0.5), rounded(1, 4, 0.5), rounded(5, 10, 0.5)], [125.0, 313.0, 623.0]);
        // The first terms are too small for a float.
        assert!(at_most(4_900, 5_000, 0.98) > 0.4);
    }
}
