//! The order in which a finding names its rows.

use crate::evidence::survey::RowView;
use crate::groups::group::Group;
use crate::groups::judged_view::JudgedView;
use crate::semantics::{Effect, Semantics};
use std::cmp::Reverse;
use systoll_model::{Recording, Row, RowId};

/// Returns the group's rows in the order in which a finding names them: the first one is told as the caller.
pub(crate) fn ordered_rows(group: &Group<'_>, shown: JudgedView<'_>) -> Vec<RowId> {
    let recording = shown.recording;
    let mut rows = costliest_first(group, shown);
    if !group.by_wait {
        open_before_close(&mut rows, recording, shown.semantics);
    }
    let forks = |id: &RowId| {
        shown.semantics.lines_of(recording.row(*id).syscall).does(|effect| matches!(effect, Effect::Forks))
    };
    match &group.children {
        // The line that forks is the one to change; a program may wait somewhere else.
        Some(children) => {
            let line = children.lines.iter().flatten().next().map(|line| line.frame);
            let has_line =
                |id: &RowId| line.is_some_and(|line| recording.row(*id).lines.iter().any(|of| of.frame == line));
            rows.sort_by_key(|id| (!forks(id), !has_line(id), Reverse(children.served.get(id).copied())));
        }
        // A line that makes a thread comes first for the same reason: calls at the thread's beginning have no line of
        // the program.
        None => rows.sort_by_key(|id| !(forks(id) && recording.row(*id).user.is_some())),
    }
    // The call to change comes before the calls that it saves.
    let leads = |id: &RowId| shown.views.get(id.0 as usize).is_some_and(RowView::leads);
    rows.sort_by_cached_key(|id| !leads(id));
    // Rows without a user's frame come last: a fork that shares its parent's stack often shows no caller, and of a row that
    // several lines share no sample may show the line of the finding's object. Any other call shows it.
    rows.sort_by_key(|id| recording.row(*id).user.is_none());
    rows
}

/// Ratio of a row's cost to the costliest row's from which on both count as equally costly: which of them a run
/// measures as costlier is chance, and must not decide whose function a finding names. The same ratio of their exact
/// counts may decide it.
const AS_DEAR: f64 = 0.5;

/// If the first row closes, puts a row that opens about as often before it: the opening decides that there is
/// something to close, and the cost of a close varies.
fn open_before_close(rows: &mut [RowId], recording: &Recording, semantics: &Semantics) {
    let row = |id: &RowId| recording.row(*id);
    let closes = |row: &&Row| semantics.lines_of(row.syscall).always_does(|effect| matches!(effect, Effect::Closes(_)));
    let opens = |effect| matches!(effect, Effect::Opens | Effect::OpensPath { .. } | Effect::Shares);
    let Some(first) = rows.first().map(row).filter(closes) else { return };
    let opens_as_often = |id: &RowId| {
        let row = row(id);
        semantics.lines_of(row.syscall).always_does(opens)
            && row.counts.calls as f64 >= AS_DEAR * first.counts.calls as f64
            && row.user.is_some() == first.user.is_some()
    };
    if let Some(at) = rows.iter().position(opens_as_often) {
        rows.get_mut(..=at).unwrap_or_default().rotate_right(1);
    }
}

/// Returns the group's rows by the cost of their needless calls. Among rows about as costly as the first, those with a
/// name come first, then those with a script's line, those with at least half of the most needless calls, then by system
/// call and name.
fn costliest_first(group: &Group<'_>, shown: JudgedView<'_>) -> Vec<RowId> {
    let recording = shown.recording;
    // Waits are priced by their time. Where windows claim no call, as of a start, all calls are meant.
    let all = group.by_wait || group.rows.iter().all(|id| shown.needless_calls(*id) == 0.0);
    let calls = |id: &RowId| if all { recording.row(*id).counts.calls as f64 } else { shown.needless_calls(*id) };
    let price = |id: &RowId| {
        let counts = &recording.row(*id).counts;
        if group.by_wait {
            return counts.waited_ns.unwrap_or(counts.elapsed_ns);
        }
        (counts.toll_ns.unwrap_or(0) as f64 / counts.calls.max(1) as f64 * calls(id)) as u64
    };
    let cost = |id: &RowId| {
        let counts = &recording.row(*id).counts;
        (price(id), counts.toll_ns.unwrap_or(0), counts.calls)
    };
    let mut rows = group.rows.clone();
    rows.sort_by_cached_key(|id| (Reverse(cost(id)), *id));
    let least = rows.first().map_or(0.0, |first| AS_DEAR * price(first) as f64);
    let as_dear = rows.partition_point(|id| price(id) as f64 >= least);
    if least > 0.0 {
        let alike = rows.get(..as_dear).unwrap_or_default();
        let most = alike.iter().map(calls).fold(0.0, f64::max);
        let named = |id: &RowId| {
            let row = recording.row(*id);
            let place = row.user.and_then(|user| recording.frame(user).location());
            let fewer = (calls(id) < AS_DEAR * most).then_some(Reverse(calls(id) as u64));
            let place = place.map(|at| (at.function.clone(), at.line));
            // A line of the script is where its reader can do something; the run-time's own functions are not.
            (place.is_none(), row.lines.is_empty(), fewer, row.syscall, place, row.api.clone(), *id)
        };
        rows.get_mut(..as_dear).unwrap_or_default().sort_by_cached_key(named);
    }
    rows
}
