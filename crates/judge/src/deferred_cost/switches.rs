//! Context switches: needless calls in which the thread gave its processor up, or lost it, and was
//! given it back.
//!
//! What was measured is, in windows, whether the thread was scheduled out inside the call. What that
//! costs is in no toll: the waiting of a call can't be told from the switching.

use crate::survey::{Shown, windows};
use systoll_model::RowId;

/// Needless calls that were seen to switch, and windows they must lie in.
const ENOUGH: u64 = 8;
const SEVERAL: usize = 4;
/// Share of the needless calls that switch, at least: a thread loses its processor now and then.
const LEAST: f64 = 0.05;

/// What one window shows of the needless calls.
#[derive(Clone, Copy, Default)]
struct SwitchTally {
    /// Those of which it is known whether they switched.
    calls: u64,
    /// Those that did.
    switched: u64,
}

/// Switches of the needless calls: at least, probably, at most.
pub(super) fn switches(rows: &[RowId], needless: [f64; 3], shown: Shown<'_>) -> Option<[f64; 3]> {
    let waits = |id: &&RowId| shown.recording.row(**id).counts.waited_ns.is_some_and(|ns| ns > 0);
    if !rows.iter().any(|id| waits(&id)) {
        return None;
    }
    let seen: Vec<SwitchTally> =
        windows(rows, shown.views).map(|at| look(at, rows, shown)).filter(|s| s.calls > 0).collect();
    let (calls, switched) = seen.iter().fold((0, 0), |(c, s), w| (c + w.calls, s + w.switched));
    let share = switched as f64 / calls.max(1) as f64;
    if seen.len() < SEVERAL || switched < ENOUGH || share < LEAST {
        return None;
    }
    let square = |w: &SwitchTally| (w.switched as f64 - share * w.calls as f64).powi(2);
    let scatter = 2.0 * seen.iter().map(square).sum::<f64>().sqrt() / calls as f64;
    let [low, best, high] = needless;
    Some([low * (share - scatter).max(0.0), best * share, high * (share + scatter).min(1.0)])
}

fn look(at: usize, rows: &[RowId], shown: Shown<'_>) -> SwitchTally {
    let calls = shown.recording.windows.get(at).into_iter().flat_map(|w| w.calls.iter().enumerate());
    // Whose row is among many is looked for last.
    let claimed = |index: usize| shown.claims.at(at, index).is_some_and(|c| !c.weak);
    calls.fold(SwitchTally::default(), |seen, (index, call)| match call.waited_ns {
        Some(ns) if claimed(index) && rows.contains(&call.row) => {
            SwitchTally { calls: seen.calls + 1, switched: seen.switched + u64::from(ns > 0) }
        }
        _ => seen,
    })
}
