//! Page faults: pages that were given back come back by one each.
//!
//! Faults are the kernel's own count of the thread, read in windows before each call that maps memory
//! or gives it back. Only as many count as pages were given back: what else faults is not theirs.

use crate::semantics::{Amount, ObservedCall, Semantics};
use crate::survey::{self, Shown};
use systoll_model::{Recording, RowId, Window};

/// A page of memory.
const PAGE: u64 = 4096;
/// Times that memory was seen to be given back and to come back, at least.
const ENOUGH: u64 = 4;
/// Faults each time, at least: single ones are everywhere. Less than one, as a window's first is not
/// seen to come back.
const LEAST: f64 = 0.75;

/// What one window shows.
#[derive(Clone, Copy, Default)]
struct FaultTally {
    /// Times from one giving back to the next.
    rounds: u64,
    /// Faults in these, at most one for a page given back.
    faults: u64,
}

/// Page faults that follow from the needless calls of `rows`, of which `share` is needless: at least,
/// probably, at most.
pub(super) fn faults(rows: &[RowId], share: [f64; 3], shown: Shown<'_>) -> Option<[f64; 3]> {
    let Shown { recording, views, semantics, .. } = shown;
    let gives = |id: &&RowId| semantics.of(recording.row(**id).syscall).frees();
    let givers: Vec<RowId> = rows.iter().filter(gives).copied().collect();
    let windows: Vec<&Window> = survey::windows(&givers, views).filter_map(|at| recording.windows.get(at)).collect();
    let seen: Vec<FaultTally> = windows.iter().map(|w| rounds(w, &givers, recording, semantics)).collect();
    let (n, faults) = seen.iter().fold((0, 0), |(n, f), s| (n + s.rounds, f + s.faults));
    let each = faults as f64 / n.max(1) as f64;
    if n < ENOUGH || each < LEAST {
        return None;
    }
    let square = |s: &FaultTally| (s.faults as f64 - each * s.rounds as f64).powi(2);
    let scatter = 2.0 * seen.iter().map(square).sum::<f64>().sqrt() / n as f64;
    let times: f64 = givers.iter().map(|id| times(*id, &windows, recording, semantics)).sum();
    let faults = |share: f64, each: f64| times * share * each;
    let [least, best, most] = share;
    Some([faults(least, (each - scatter).max(0.0)), faults(best, each), faults(most, each + scatter)])
}

/// How often the row gave memory back: its calls, by the share of those seen that did.
fn times(id: RowId, windows: &[&Window], recording: &Recording, semantics: &Semantics) -> f64 {
    let (mut all, mut gave) = (0u64, 0u64);
    for window in windows {
        each_freed(window, recording, semantics, |row, pages| {
            all += u64::from(row == id && pages.is_some());
            gave += u64::from(row == id && pages.is_some_and(|p| p > 0));
        });
    }
    recording.row(id).counts.calls as f64 * gave as f64 / all.max(1) as f64
}

/// Goes through a window's calls that may give memory back: their rows, and the pages they gave.
fn each_freed(window: &Window, recording: &Recording, semantics: &Semantics, mut each: impl FnMut(RowId, Option<u64>)) {
    let mut end = None;
    for call in &window.calls {
        let syscall = recording.row(call.row).syscall;
        let observed = ObservedCall { window, call, syscall };
        let lines = semantics.of(syscall);
        if lines.frees() {
            each(call.row, lines.freed(&observed).map_or(Some(0), |amount| pages(amount, &observed, &mut end)));
        }
    }
}

/// Pages a call gave back; `None` where what was before would have to be known. `end` is where the
/// heap ended after the last call that told.
fn pages(amount: Amount, observed: &ObservedCall<'_>, end: &mut Option<u64>) -> Option<u64> {
    if observed.call.errno().is_some() {
        return Some(0);
    }
    match amount {
        Amount::Length(arg) => Some(observed.arg(arg).div_ceil(PAGE)),
        Amount::Less(old, new) => {
            Some(observed.arg(old).div_ceil(PAGE).saturating_sub(observed.arg(new).div_ceil(PAGE)))
        }
        Amount::DownTo => {
            let now = observed.call.result? as u64;
            end.replace(now).map(|before| before.saturating_sub(now) / PAGE)
        }
    }
}

fn rounds(window: &Window, givers: &[RowId], recording: &Recording, semantics: &Semantics) -> FaultTally {
    let mut seen = FaultTally::default();
    let (mut last, mut end): (Option<u64>, Option<u64>) = (None, None);
    // Pages given back that have not come back, faults since then, and whether any were given.
    let (mut owed, mut came, mut given) = (0u64, 0u64, false);
    for call in &window.calls {
        let syscall = recording.row(call.row).syscall;
        let observed = ObservedCall { window, call, syscall };
        if let Some(now) = call.faults {
            let back = last.map_or(0, |last| now.saturating_sub(last)).min(owed);
            (owed, came, last) = (owed - back, came.saturating_add(back), Some(now));
        }
        let freed = semantics.of(syscall).freed(&observed).and_then(|amount| pages(amount, &observed, &mut end));
        let freed = freed.unwrap_or(0);
        if freed == 0 || call.faults.is_none() || !givers.contains(&call.row) {
            continue;
        }
        if given {
            seen.rounds += 1;
            seen.faults = seen.faults.saturating_add(came);
        }
        // What was not touched since it was given back is still owed; else only this round's is.
        owed = if came == 0 { owed.saturating_add(freed) } else { freed };
        (came, given) = (0, true);
    }
    seen
}
