//! Calls that findings and remarks do not report: needless calls that cost too little, and calls that can't be
//! judged.

use crate::finding::{Finding, Unjudged, Untold};
use crate::hash::Map;
use crate::phases::toll;
use crate::survey::JudgedView;
use systoll_model::RowId;

/// Returns the needless calls that no finding or remark reports, without those whose price would be waiting.
pub(crate) fn unreported<'f>(shown: JudgedView<'_>, told: impl Iterator<Item = &'f Finding>) -> Untold {
    let mut told_calls: Map<RowId, f64> = Map::default();
    for finding in told {
        for (row, needless) in finding.rows.iter().zip(&finding.by_row) {
            *told_calls.entry(*row).or_default() += needless.calls as f64;
        }
    }
    let (mut sure, mut unsure) = ((0.0, 0.0), (0.0, 0.0));
    for ((id, row), view) in (0..).map(RowId).zip(&shown.recording.rows).zip(shown.views) {
        if 2 * view.claimed.iter().filter(|claimed| claimed.claim.by_wait).count() > view.claimed.len() {
            continue;
        }
        let calls = row.counts.calls;
        let (needless, told) = (view.needless(calls), told_calls.get(&id).copied().unwrap_or(0.0));
        let price = toll(shown.recording, row) / calls.max(1) as f64;
        let strong = (needless.strong - told).max(0.0);
        let weak = (needless.any - told.max(needless.strong)).max(0.0);
        (sure.0, sure.1) = (sure.0 + strong, sure.1 + strong * price);
        (unsure.0, unsure.1) = (unsure.0 + weak, unsure.1 + weak * price);
    }
    let whole = |n: f64| n.round() as u64;
    Untold {
        calls: whole(sure.0),
        toll_ns: whole(sure.1),
        unsure_calls: whole(unsure.0),
        unsure_toll_ns: whole(unsure.1),
    }
}

/// Returns the calls without a window, a ledger or a like row, and the calls for which no table has a line.
pub(crate) fn unjudged(shown: JudgedView<'_>) -> Unjudged {
    let mut unjudged = Unjudged::default();
    for (row, view) in shown.recording.rows.iter().zip(shown.views) {
        let looked_at = view.seen() > 0 || view.like.is_some() || view.ledger.told.is_some();
        if looked_at && shown.semantics.of(row.syscall).say_anything() {
            continue;
        }
        unjudged.calls = unjudged.calls.saturating_add(row.counts.calls);
        unjudged.toll_ns = unjudged.toll_ns.saturating_add(toll(shown.recording, row).round() as u64);
    }
    unjudged
}
