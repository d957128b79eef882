//! Choice of the rounds that the report shows: those that take much of the run and of which findings claim little.

use super::kinds::waited;
use super::round::{Round, RoundClaimed};
use crate::collections::hash::Map;
use std::cmp::Reverse;
use systoll_model::{Recording, RowId};

/// Largest number of rounds shown.
const SHOWN: usize = 3;
/// Share of the processor time that calls take, or of wall time that they wait, from which on it is much, 0 to 1.
const MUCH: f64 = 0.1;
/// Share of that cost that findings must claim to report enough of it, 0 to 1.
const CLAIMED: f64 = 0.5;
/// Share of a round's own cost, 0 to 1, from which on findings tell all of it, so that it is no rest.
const TOLD: f64 = 0.9;
/// Least share of the run that a round takes beyond its claimed calls to be shown, 0 to 1.
const WORTH: f64 = 0.05;
/// Least number of rounds in a process, on average: a few in each of many processes belong to starting it.
const OFTEN: u64 = 100;

/// Marks the rounds that the report shows. `wall_ns` is `None` if waiting is no measure of the run.
pub(super) fn mark(
    rounds: &mut [Round],
    recording: &Recording,
    claimed: &Map<RowId, RoundClaimed>,
    wall_ns: Option<f64>,
) {
    let claimed = claimed.values().fold(RoundClaimed::default(), |sum, one| RoundClaimed {
        calls: sum.calls.saturating_add(one.calls),
        toll_ns: sum.toll_ns.saturating_add(one.toll_ns),
        waited_ns: sum.waited_ns.saturating_add(one.waited_ns),
    });
    let total = recording.total();
    let own = recording.own_cpu_ns().map_or(0.0, |own| own as f64);
    let toll = total.toll_ns.unwrap_or(0);
    let waited = recording.rows.iter().filter_map(waited).fold(0, u64::saturating_add);
    let cpu = is_untold(toll, claimed.toll_ns, own).then_some(own);
    let wall = wall_ns.filter(|wall| is_untold(waited, claimed.waited_ns, *wall));
    let part = |ns: u64, claimed: u64, of: Option<f64>| of.map_or(0.0, |of| ns.saturating_sub(claimed) as f64 / of);
    let worth = |round: &Round| {
        let of_cpu = part(round.toll_ns, round.claimed.toll_ns, cpu);
        of_cpu.max(part(round.waited_ns.unwrap_or(0), round.claimed.waited_ns, wall))
    };
    let mut shown: Vec<(f64, usize)> = rounds
        .iter()
        .enumerate()
        .map(|(at, round)| (worth(round), at))
        .filter(|(worth, at)| {
            *worth >= WORTH && rounds.get(*at).is_some_and(|round| is_habit(round, recording) && !is_told(round))
        })
        .collect();
    shown.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(Reverse(*y).cmp(&Reverse(*x))));
    for (_, at) in shown.into_iter().take(SHOWN) {
        if let Some(round) = rounds.get_mut(at) {
            round.is_of_rest = true;
        }
    }
}

/// Returns true if a process makes the round often.
fn is_habit(round: &Round, recording: &Recording) -> bool {
    round.count.low / round.processes(recording).max(1) >= OFTEN
}

/// Returns true if findings tell nearly all of what the round costs.
fn is_told(round: &Round) -> bool {
    round.toll_ns > 0 && round.claimed.toll_ns as f64 >= TOLD * round.toll_ns as f64
}

/// Returns true if calls cost much of the run and findings claim less than half of that cost.
fn is_untold(ns: u64, claimed: u64, of: f64) -> bool {
    of > 0.0 && ns as f64 > MUCH * of && (claimed as f64) < CLAIMED * ns as f64
}
