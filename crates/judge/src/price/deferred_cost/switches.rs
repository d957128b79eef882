//! Context switches in needless calls: the thread gave up its processor, or lost it, and got it back.
//!
//! Windows measure whether the thread was scheduled out inside the call. The cost of a switch is in no toll, since
//! the time of a call does not tell its wait from its switch.
//!
//! The sign of a switch is that the kernel wrote the thread's rseq area anew. It also does so when it has work to do on
//! the way back to the program, as when a call gave up the last descriptor of an open file: 20,000 `dup2` that did so
//! showed 18,512 switches, and the kernel counted 44. So only calls that may wait or hand the processor over, and that
//! give no descriptor up, are looked at.

use crate::evidence::survey::windows;
use crate::groups::judged_view::JudgedView;
use crate::semantics::Effect;
use crate::world::bounds::OFTEN;
use systoll_model::RowId;

/// Least share of the needless calls that switch, 0 to 1: any thread loses its processor now and then.
const LEAST: f64 = 0.05;

/// The needless calls in one window.
#[derive(Clone, Copy, Default)]
struct SwitchTally {
    /// Number of calls for which the window tells whether they switched.
    calls: u64,
    /// Number of calls that switched.
    switched: u64,
}

/// Returns the number of switches in the needless calls: lower bound, estimate, upper bound.
pub(super) fn switches(rows: &[RowId], needless: [f64; 3], surely: bool, shown: JudgedView<'_>) -> Option<[f64; 3]> {
    let waits = |id: &RowId| shown.recording.row(*id).counts.waited_ns.is_some_and(|ns| ns > 0);
    if !rows.iter().any(|id| waits(id) && may_switch(*id, shown)) {
        return None;
    }
    let seen: Vec<SwitchTally> =
        windows(rows, shown.views).map(|at| tally(at, rows, surely, shown)).filter(|s| s.calls > 0).collect();
    let (calls, switched) = seen.iter().fold((0, 0), |(c, s), w| (c + w.calls, s + w.switched));
    let share = switched as f64 / calls.max(1) as f64;
    if seen.len() < OFTEN || switched < OFTEN as u64 || share < LEAST {
        return None;
    }
    let square = |w: &SwitchTally| (w.switched as f64 - share * w.calls as f64).powi(2);
    let scatter = 2.0 * seen.iter().map(square).sum::<f64>().sqrt() / calls as f64;
    let [low, best, high] = needless;
    Some([low * (share - scatter).max(0.0), best * share, high * (share + scatter).min(1.0)])
}

fn tally(at: usize, rows: &[RowId], surely: bool, shown: JudgedView<'_>) -> SwitchTally {
    let calls = shown.recording.windows.get(at).into_iter().flat_map(|w| w.calls.iter().enumerate());
    // The search among the rows, which may be many, comes last.
    let claimed = |index: usize| shown.claims.at(at, index).is_some_and(|c| !(surely && c.weak));
    calls.fold(SwitchTally::default(), |seen, (index, call)| match call.waited_ns {
        Some(ns) if claimed(index) && rows.contains(&call.row) => {
            let switched = ns > 0 && may_switch(call.row, shown);
            SwitchTally { calls: seen.calls + 1, switched: seen.switched + u64::from(switched) }
        }
        _ => seen,
    })
}

/// Returns true if a call of the row may wait or hand the processor over, and gives no descriptor up.
fn may_switch(row: RowId, shown: JudgedView<'_>) -> bool {
    let syscall = shown.recording.row(row).syscall;
    let may_wait = syscall.signature().is_none_or(|call| call.may_block || call.waits);
    let gives_up = |effect| matches!(effect, Effect::Closes(_) | Effect::Redirects(_) | Effect::Descriptors);
    let lines = shown.semantics.lines_of(syscall);
    (may_wait || lines.hands_over()) && !lines.does(gives_up)
}
