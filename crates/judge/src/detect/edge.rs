//! Leaves out calls of which no window shows whether they are needless, since what they repeat may lie before the
//! window's first call.
//!
//! A question, or a set of state, is claimed if the window shows an earlier call about the same thing. Of the first
//! call about a thing in a window nothing is known but that no such call is among the calls before it in the window.
//! If a program goes through several things in turn, most calls about them are firsts. How far apart the calls about
//! one thing are, is told by the claimed ones: a first call that stands nearer to the window's beginning than that
//! counts neither as needless nor as useful. The estimate is that of Kaplan and Meier ("Nonparametric estimation from
//! incomplete observations", 1958): a claimed call is an event at its distance, a first call is censored at its place.

use super::rearm;
use super::timers::Timer;
use crate::collections::hash::Map;
use crate::evidence::claim::Claims;
use crate::results::finding::Kind;
use crate::semantics::Key;
use crate::semantics::signs::Signs;
use crate::world::replay::Step;
use systoll_model::RowId;

/// Least number of a row's claimed calls whose distance is known, for an estimate.
const ENOUGH: usize = 4;
/// Chance, 0 to 1, that a first call repeats one before the window, from which on the call is left out.
const LIKELY: f64 = 0.5;

/// The state or the timer that a call asks about or sets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum StateOrTimer {
    State(Key),
    Timer(Timer),
}

/// A call that is the first about its thing in a window.
struct FirstCall {
    window: usize,
    index: usize,
    /// Number of calls before it in the window.
    before: usize,
}

/// The calls of a row that the windows show, as far as a thing is known of them.
#[derive(Default)]
struct RowGaps {
    /// Distances of claimed calls from the call before about the same thing, in calls.
    gaps: Vec<usize>,
    /// The unclaimed calls that are the first about their thing.
    firsts: Vec<FirstCall>,
}

/// The first calls of all windows, and the distances of claimed ones.
#[derive(Default)]
pub(super) struct Edge {
    rows: Map<RowId, RowGaps>,
}

impl Edge {
    /// Reads a window, given with its number, after all claims on it are made.
    pub(super) fn window(&mut self, window: usize, steps: &[Step<'_>], shown: Signs, claims: &Claims) {
        if !shown.any(Signs::FROM_BEFORE.and(Signs::ARMS)) {
            return;
        }
        // For each thing the index of the newest call about it.
        let mut newest: Map<StateOrTimer, usize> = Map::default();
        for (at, step) in steps.iter().enumerate() {
            let Some(thing) = thing(step) else { continue };
            let before = newest.insert(thing, at);
            let call = step.observed.call;
            let rests_on_earlier = |kind| matches!(kind, Kind::Repeat | Kind::NoOp | Kind::Failing | Kind::Toggle);
            match (claims.get(step.index), before) {
                (Some(claim), Some(before)) if rests_on_earlier(claim.kind) => {
                    self.rows.entry(call.row).or_default().gaps.push(at - before);
                }
                (None, None) if call.nth > 1 && is_hidden(thing, step, steps.get(..at).unwrap_or_default()) => {
                    let first = FirstCall { window, index: step.index, before: at };
                    self.rows.entry(call.row).or_default().firsts.push(first);
                }
                _ => {}
            }
        }
    }

    /// Leaves out the first calls that are likely to repeat one before their window.
    pub(super) fn finish(self, claims: &mut Claims) {
        for row in self.rows.into_values().filter(|row| row.gaps.len() >= ENOUGH) {
            let within = Within::of(&row);
            let hidden = row.firsts.iter().filter(|first| within.beyond(first.before) >= LIKELY);
            hidden.for_each(|first| claims.leave_out_at(first.window, first.index));
        }
    }
}

/// Returns the thing that a call is about, if what was known of it before the window is unknown.
fn thing(step: &Step<'_>) -> Option<StateOrTimer> {
    let timer = rearm::timer(step).map(StateOrTimer::Timer);
    timer.or_else(|| step.meaning.as_ref().filter(|m| m.from_before).map(|m| StateOrTimer::State(m.key)))
}

/// Returns true if the calls `before` the first one about a thing don't tell how the thing was.
fn is_hidden(thing: StateOrTimer, step: &Step<'_>, before: &[Step<'_>]) -> bool {
    match thing {
        StateOrTimer::State(_) => step.meaning.as_ref().is_some_and(|m| m.known.is_none()),
        StateOrTimer::Timer(timer) => rearm::is_hidden(timer, step, before),
    }
}

/// The estimated share of a row's calls that repeat one within so many calls.
struct Within {
    /// Distances in ascending order, each with the share of calls, 0 to 1, that repeat none within it.
    left: Vec<(usize, f64)>,
}

impl Within {
    fn of(row: &RowGaps) -> Self {
        let mut gaps = row.gaps.clone();
        gaps.sort_unstable();
        let mut censored: Vec<usize> = row.firsts.iter().map(|first| first.before).collect();
        censored.sort_unstable();
        let (mut left, mut share) = (Vec::new(), 1.0);
        let mut at = 0;
        for same in gaps.chunk_by(|a, b| a == b) {
            let gap = same.first().copied().unwrap_or_default();
            // A call is at risk at this distance if it neither repeats a nearer one nor is hidden by the edge sooner:
            // the call at that distance would be in the window.
            let at_risk = gaps.len() - at + censored.len() - censored.partition_point(|before| *before < gap);
            share *= 1.0 - same.len() as f64 / at_risk.max(1) as f64;
            at += same.len();
            left.push((gap, share));
        }
        Self { left }
    }

    /// Returns the chance, 0 to 1, that a call repeats one farther away than the `before` calls that the window shows,
    /// but no farther than any claimed call, given that it repeats none of those.
    fn beyond(&self, before: usize) -> f64 {
        let known = self.left.partition_point(|(gap, _)| *gap <= before);
        let so_far = known.checked_sub(1).and_then(|at| self.left.get(at)).map_or(1.0, |(_, share)| *share);
        let last = self.left.last().map_or(1.0, |(_, share)| *share);
        if so_far > 0.0 { (so_far - last) / so_far } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gaps: &[usize], firsts: &[usize]) -> RowGaps {
        let first = |before: &usize| FirstCall { window: 0, index: 0, before: *before };
        RowGaps { gaps: gaps.into(), firsts: firsts.iter().map(first).collect() }
    }

    #[test]
    fn things_in_turn_are_firsts_up_to_one_turn_from_the_beginning() {
        let of = Within::of(&row(&[32; 32], &Vec::from_iter(0..32)));
        assert!(of.beyond(0) > 0.99 && of.beyond(31) > 0.99 && of.beyond(32) < 0.01);
    }

    #[test]
    fn of_each_thing_asked_about_twice_the_first_call_is_useful() {
        // Things one after the other, each asked about by two calls next to each other.
        let of = Within::of(&row(&[1; 32], &Vec::from_iter((0..64).step_by(2))));
        assert!((0.4..0.6).contains(&of.beyond(0)), "{}", of.beyond(0));
        assert!(of.beyond(2) < 0.01 && of.beyond(60) < 0.01);
    }

    #[test]
    fn without_a_distance_nothing_is_left_out() {
        assert!(Within::of(&row(&[], &[0, 1, 2])).beyond(0) < 0.01);
    }
}
