//! Groups of waits that were longer than they had to be, and their words.

use crate::causes::catalogue::Catalogue;
use crate::evidence::claim::Claim;
use crate::evidence::survey::RowView;
use crate::groups::group::{Group, explain, symptoms};
use crate::groups::strands::stack;
use crate::results::finding::{Advice, Finding, Kind};
use crate::time::{NeedlessKind, NeedlessWaits};
use std::cmp::Reverse;
use systoll_model::{Recording, RowId, RowLine};

/// Names of programs that start one job after another unless `-j` says otherwise.
const MAKES: [&str; 3] = ["make", "gmake", "bmake"];

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

/// Gives a finding about the jobs of make the advice for who runs it: nothing in its code has to change.
pub(crate) fn advise_users(finding: &mut Finding, late: &NeedlessWaits, recording: &Recording) {
    let process = finding.rows.first().map(|id| recording.row(*id).process.0 as usize);
    let process = process.and_then(|process| recording.processes.get(process));
    if late.kind == NeedlessKind::ChildrenInTurn && process.is_some_and(|process| MAKES.contains(&process.name())) {
        finding.cures = vec![Advice::general("make -j: several jobs at the same time")];
    }
}

/// Returns the lines that made such waits, the most first; the known ones stand for all.
pub(crate) fn lines(late: &NeedlessWaits) -> Vec<RowLine> {
    let known = late.lines.values().fold(0u64, |sum, n| sum.saturating_add(*n)).max(1);
    let weight = |looks: u64| (late.calls as f64 * looks as f64 / known as f64).round() as u64;
    let of = |(frame, looks): (&_, &u64)| RowLine { frame: *frame, looks: *looks, weight: weight(*looks) };
    let mut lines: Vec<RowLine> = late.lines.iter().map(of).collect();
    lines.sort_by_key(|line| (Reverse(line.looks), line.frame));
    lines
}

/// Returns true if the first of a finding's lines makes none of its waits: it sent the requests that they are for.
fn is_asked_elsewhere(finding: &Finding, recording: &Recording) -> bool {
    let line = finding.at_lines.iter().flatten().next().map(|line| line.frame);
    let Some((lead, line)) = finding.rows.first().zip(line) else { return false };
    let row = recording.row(*lead);
    let waits = || recording.wait_spans.spans.iter().any(|span| span.row == *lead && span.line == Some(line));
    row.user != Some(line) && row.lines.iter().all(|of| of.frame != line) && !waits()
}

/// Returns true if a finding is about waits or starts of a row that several lines share, or whose known line is that of other
/// calls.
pub(crate) fn needs_lines(finding: &Finding, recording: &Recording) -> bool {
    let (Some(lead), Some(lines)) = (finding.rows.first(), &finding.at_lines) else { return false };
    let is_others = || recording.wait_spans.spans.iter().any(|span| span.row == *lead && span.line.is_some());
    let shared = recording.row(*lead).lines.len() > 1;
    shared || lines.is_empty() && is_others() || is_asked_elsewhere(finding, recording)
}

/// Gives a finding about waits or starts a strand whose lines are those of them, since other lines may make most of the row's
/// calls: no line if none is known.
pub(crate) fn narrow(finding: &mut Finding, strands: &mut Recording) {
    let is_asked_elsewhere = is_asked_elsewhere(finding, strands);
    let (Some(lead), Some(lines)) = (finding.strands.first_mut(), &finding.at_lines) else { return };
    let Some(mut row) = strands.rows.get(lead.0 as usize).cloned() else { return };
    if is_asked_elsewhere {
        row.api = None;
    }
    row.user = lines.first().map(|line| line.frame);
    // The frames above are those of the line with most calls.
    let same = row.lines.first().map(|line| line.frame) == row.user;
    if !same {
        row.outer = stack(strands, row.user.into_iter().collect());
    }
    row.lines.clone_from(lines);
    finding.user = row.user;
    strands.rows.push(row);
    *lead = RowId(strands.rows.len() as u32 - 1);
    // What starts and awaits one program serves the others of its maker as well.
    for strand in finding.strands.iter_mut().skip(1).filter(|_| finding.starts) {
        let Some(row) = strands.rows.get(strand.0 as usize).filter(|row| !row.lines.is_empty()) else { continue };
        let mut row = row.clone();
        row.lines.retain(|line| lines.iter().any(|of| of.frame == line.frame));
        row.user = row.lines.first().map(|line| line.frame);
        row.outer = stack(strands, row.user.into_iter().collect());
        strands.rows.push(row);
        *strand = RowId(strands.rows.len() as u32 - 1);
    }
}
