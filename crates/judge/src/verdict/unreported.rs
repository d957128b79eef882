//! Calls that findings and remarks do not report: needless calls that cost too little, and calls that can't be
//! judged.

use crate::causes::catalogue::{Catalogue, Suspect};
use crate::collections::hash::Map;
use crate::evidence::phases::toll;
use crate::evidence::survey::RowView;
use crate::groups::group::{Group, Patterns, cause_of};
use crate::groups::judged_view::JudgedView;
use crate::groups::subject::subject;
use crate::results::finding::{Beneath, Finding, Kind, Unjudged, Untold};
use crate::words::phrasing;
use std::cmp::Reverse;
use std::sync::Arc;
use systoll_model::{FrameClass, FrameId, RowId, Sysno};

/// Largest number of places that have a cure in words.
const CURED: usize = 20;

/// Returns the needless calls that no finding and no remark reports, except those whose price would
/// be waiting, and the places where they are made, costliest first.
pub(crate) fn untold<'f>(
    shown: JudgedView<'_>,
    told: impl Iterator<Item = &'f Finding>,
    catalogue: &Catalogue,
) -> (Untold, Vec<Beneath>) {
    let mut told_calls: Map<RowId, f64> = Map::default();
    for finding in told {
        for (row, needless) in finding.strands.iter().zip(&finding.by_row) {
            *told_calls.entry(*row).or_default() += needless.calls as f64;
        }
    }
    let (mut sure, mut unsure) = ((0.0, 0.0), (0.0, 0.0));
    let mut places = Places::default();
    let mut patterns = Patterns::of(catalogue, shown.views);
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
        // Half a call of each of many rows may be some calls in the sum, and is none in any place.
        if strong + weak >= 0.5 {
            let suspect = cause_of(shown.recording, row, view.claimed.iter(), &mut patterns);
            let cause = suspect.map(|cause| cause.id.into());
            let key =
                UnreportedKey { syscall: row.syscall, user: row.user, api: row.api.clone(), cause, kind: kind(view) };
            places.add(id, suspect, key, (strong, weak, price));
        }
    }
    let untold = Untold {
        calls: whole(sure.0),
        toll_ns: whole(sure.1),
        unsure_calls: whole(unsure.0),
        unsure_toll_ns: whole(unsure.1),
    };
    (untold, places.beneath(shown))
}

fn whole(n: f64) -> u64 {
    n.round() as u64
}

/// Returns the kind of most of a row's claims.
fn kind(view: &RowView<'_>) -> Kind {
    let of = |kind: &Kind| view.claimed.iter().filter(|claimed| claimed.claim.kind == *kind).count();
    Kind::ALL.into_iter().max_by_key(of).unwrap_or(Kind::Repeat)
}

/// Returns the best cure of a cause for the calls of a row.
fn first_cure(suspect: Suspect<'_>, row: RowId, kind: Kind, shown: JudgedView<'_>) -> Option<String> {
    suspect.cause()?;
    let row_of = shown.recording.row(row);
    let innermost = shown.recording.row_frames(row_of).next();
    if row_of.user.is_none() && innermost.is_some_and(|frame| frame.class == FrameClass::Runtime) {
        // A thread of the language's run-time, as Go's monitor, makes the calls: nobody's code asks for them.
        return None;
    }
    let calls = row_of.counts.calls;
    let what = subject(&[row], shown.recording, shown.views);
    let syscalls = vec![row_of.syscall];
    let mut finding =
        Finding { kind, calls, rows: vec![row], strands: vec![row], syscalls, what, ..Finding::default() };
    let group = Group { cause: Some(suspect), rows: vec![row], kind, claim: None, ..Group::default() };
    phrasing::put(&mut finding, &group, shown, row_of.api.as_deref());
    finding.cures.into_iter().next().map(|cure| cure.how)
}

/// Key of a place: rows that share these properties are reported together.
#[derive(Clone, PartialEq, Eq, Hash)]
struct UnreportedKey {
    syscall: Sysno,
    user: Option<FrameId>,
    api: Option<Arc<str>>,
    cause: Option<Arc<str>>,
    kind: Kind,
}

/// Needless calls of a place, and their price in ns.
struct OfPlace<'a> {
    row: RowId,
    suspect: Option<Suspect<'a>>,
    sure: (f64, f64),
    unsure: (f64, f64),
}

#[derive(Default)]
struct Places<'a> {
    at: Map<UnreportedKey, usize>,
    all: Vec<(UnreportedKey, OfPlace<'a>)>,
}

impl<'a> Places<'a> {
    /// Adds calls of a row: the number of needless ones, that of those which may be, and the price of one, ns.
    fn add(
        &mut self,
        row: RowId,
        suspect: Option<Suspect<'a>>,
        place: UnreportedKey,
        (strong, weak, price): (f64, f64, f64),
    ) {
        let at = *self.at.entry(place.clone()).or_insert(self.all.len());
        if at == self.all.len() {
            self.all.push((place, OfPlace { row, suspect, sure: (0.0, 0.0), unsure: (0.0, 0.0) }));
        }
        if let Some((_, of)) = self.all.get_mut(at) {
            of.sure = (of.sure.0 + strong, of.sure.1 + strong * price);
            of.unsure = (of.unsure.0 + weak, of.unsure.1 + weak * price);
        }
    }

    fn beneath(self, shown: JudgedView<'_>) -> Vec<Beneath> {
        let of = |(place, of): (UnreportedKey, OfPlace<'a>)| {
            let beneath = Beneath {
                row: of.row,
                cause: place.cause,
                kind: place.kind,
                calls: whole(of.sure.0 + of.unsure.0),
                sure_calls: whole(of.sure.0),
                toll_ns: whole(of.sure.1 + of.unsure.1),
                cure: None,
            };
            (beneath, of.suspect)
        };
        let mut all: Vec<_> = self.all.into_iter().map(of).filter(|(beneath, _)| beneath.calls > 0).collect();
        all.sort_by_key(|(beneath, _)| (Reverse((beneath.toll_ns, beneath.calls)), beneath.row));
        for (beneath, suspect) in all.iter_mut().take(CURED) {
            beneath.cure = suspect.and_then(|suspect| first_cure(suspect, beneath.row, beneath.kind, shown));
        }
        all.into_iter().map(|(beneath, _)| beneath).collect()
    }
}

/// Returns the calls without a window, a ledger or a like row, and the calls for which no table has a line.
pub(crate) fn unjudged(shown: JudgedView<'_>) -> Unjudged {
    let mut unjudged = Unjudged::default();
    for (row, view) in shown.recording.rows.iter().zip(shown.views) {
        let looked_at = view.seen() > 0 || view.like.is_some() || view.ledger.told.is_some();
        if looked_at && shown.semantics.lines_of(row.syscall).say_anything() {
            continue;
        }
        unjudged.calls = unjudged.calls.saturating_add(row.counts.calls);
        unjudged.toll_ns = unjudged.toll_ns.saturating_add(toll(shown.recording, row).round() as u64);
    }
    unjudged
}
