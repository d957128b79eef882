//! Page faults of memory that was given back: each of its pages faults once when it is used again.
//!
//! The kernel counts each thread's faults; windows read its count before each call that maps memory or frees it. Of
//! the faults between two such calls, no more are charged to the calls than pages were given back: the others have
//! another reason.

use crate::evidence::survey;
use crate::groups::judged_view::JudgedView;
use crate::semantics::{Amount, Frees, ObservedCall, Semantics};
use crate::world::bounds::OFTEN;
use systoll_model::{Recording, RowId, Window};

/// Least mean number of faults between two calls that give memory back: single faults are
/// everywhere. The bound is below one, since a window does not show the first pages that it gives
/// back fault again.
const LEAST: f64 = 0.75;

/// The faults in one window.
#[derive(Clone, Copy, Default)]
struct FaultTally {
    /// Number of intervals from one call that gives memory back to the next.
    rounds: u64,
    /// Number of faults in the intervals, at most one for each page given back.
    faults: u64,
}

/// Returns the number of page faults that follow from the needless calls of `rows`: lower bound, estimate, upper
/// bound. `share` is the needless share of those calls, in the same order.
pub(super) fn faults(rows: &[RowId], share: [f64; 3], shown: JudgedView<'_>) -> Option<[f64; 3]> {
    let JudgedView { recording, views, semantics, .. } = shown;
    let gives = |id: &&RowId| semantics.lines_of(recording.row(**id).syscall).has::<Frees>();
    let givers: Vec<RowId> = rows.iter().filter(gives).copied().collect();
    let windows: Vec<&Window> = survey::windows(&givers, views).filter_map(|at| recording.windows.get(at)).collect();
    let seen: Vec<FaultTally> = windows.iter().map(|w| rounds(w, &givers, recording, semantics)).collect();
    let (n, faults) = seen.iter().fold((0, 0), |(n, f), s| (n + s.rounds, f + s.faults));
    let each = faults as f64 / n.max(1) as f64;
    if n < OFTEN as u64 || each < LEAST {
        return None;
    }
    let square = |s: &FaultTally| (s.faults as f64 - each * s.rounds as f64).powi(2);
    let scatter = 2.0 * seen.iter().map(square).sum::<f64>().sqrt() / n as f64;
    let times: f64 = givers.iter().map(|id| times(*id, &windows, recording, semantics)).sum();
    let faults = |share: f64, each: f64| times * share * each;
    let [least, best, most] = share;
    Some([faults(least, (each - scatter).max(0.0)), faults(best, each), faults(most, each + scatter)])
}

/// Returns how often the row gave memory back: its calls, multiplied by the share of its sampled calls that did.
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

/// Calls `each` for every call of a window that may give memory back, with its row and the pages that it gave back.
fn each_freed(window: &Window, recording: &Recording, semantics: &Semantics, mut each: impl FnMut(RowId, Option<u64>)) {
    let (mut end, page) = (None, recording.header.host.page_bytes());
    for call in &window.calls {
        let syscall = recording.row(call.row).syscall;
        let observed = ObservedCall { window, call, syscall };
        let lines = semantics.lines_of(syscall);
        if lines.has::<Frees>() {
            each(call.row, lines.freed(&observed).map_or(Some(0), |amount| pages(amount, &observed, page, &mut end)));
        }
    }
}

/// Returns the number of pages that a call gave back; `None` if that depends on an earlier call that the window does
/// not show. A page has `page` bytes. `end` is the end of the heap after the last call that told it.
fn pages(amount: Amount, observed: &ObservedCall<'_>, page: u64, end: &mut Option<u64>) -> Option<u64> {
    if observed.call.errno().is_some() {
        return Some(0);
    }
    match amount {
        Amount::Length(arg) => Some(observed.arg(arg).div_ceil(page)),
        Amount::Less(old, new) => {
            Some(observed.arg(old).div_ceil(page).saturating_sub(observed.arg(new).div_ceil(page)))
        }
        Amount::DownTo => {
            let now = observed.call.result? as u64;
            end.replace(now).map(|before| before.saturating_sub(now) / page)
        }
    }
}

fn rounds(window: &Window, givers: &[RowId], recording: &Recording, semantics: &Semantics) -> FaultTally {
    let mut seen = FaultTally::default();
    let (mut last, mut end): (Option<u64>, Option<u64>) = (None, None);
    let page = recording.header.host.page_bytes();
    // Pages given back that have not faulted since, faults since the last call that gave pages back, and true once
    // one did.
    let (mut owed, mut came, mut given) = (0u64, 0u64, false);
    for call in &window.calls {
        let syscall = recording.row(call.row).syscall;
        let observed = ObservedCall { window, call, syscall };
        if let Some(now) = call.faults {
            let back = last.map_or(0, |last| now.saturating_sub(last)).min(owed);
            (owed, came, last) = (owed - back, came.saturating_add(back), Some(now));
        }
        let freed =
            semantics.lines_of(syscall).freed(&observed).and_then(|amount| pages(amount, &observed, page, &mut end));
        let freed = freed.unwrap_or(0);
        if freed == 0 || call.faults.is_none() || !givers.contains(&call.row) {
            continue;
        }
        if given {
            seen.rounds += 1;
            seen.faults = seen.faults.saturating_add(came);
        }
        // If no page came back since the last time, pages given back then may still fault later: add them up.
        // Otherwise count this call's pages only.
        owed = if came == 0 { owed.saturating_add(freed) } else { freed };
        (came, given) = (0, true);
    }
    seen
}
