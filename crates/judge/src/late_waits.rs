//! Groups of waits that were longer than they had to be, and their words.

use crate::catalogue::Catalogue;
use crate::detect::Claim;
use crate::finding::{Finding, Kind};
use crate::group::{Group, explain, symptoms};
use crate::survey::RowView;
use crate::time::{NeedlessKind, NeedlessWaits};
use systoll_model::Recording;

/// Returns the group of waits that were longer than they had to be.
pub(crate) fn group<'a>(
    late: &NeedlessWaits,
    recording: &Recording,
    views: &[RowView<'_>],
    catalogue: &'a Catalogue,
) -> Group<'a> {
    let first = late.rows.first().copied().unwrap_or_default();
    let row = recording.row(first);
    let call = views.get(first.0 as usize).and_then(|view| view.sample);
    let waits = symptoms(recording, row, Kind::Blocking, None, call).spoken(recording, row, true);
    let claim = Claim { by_wait: true, ..Claim::of(Kind::Blocking, late.kind.about(), late.kind.instead()) };
    Group {
        cause: explain(catalogue, &waits).filter(|_| late.kind == NeedlessKind::HeldBack),
        rows: late.rows.clone(),
        kind: Kind::Blocking,
        claim: Some(claim),
        by_wait: true,
        late: Some(late.clone()),
        ..Group::default()
    }
}

/// Returns the mechanism of a group of such waits.
pub(crate) fn why(finding: &Finding, group: &Group<'_>) -> String {
    let about = group.claim.as_ref().map_or("waits longer than it has to", |claim| claim.about);
    format!("{about}: {} of {} waits", finding.needless.estimate, finding.calls)
}
