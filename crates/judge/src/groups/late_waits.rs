//! Groups of waits that were longer than they had to be, and their words.

use crate::causes::catalogue::Catalogue;
use crate::evidence::claim::Claim;
use crate::evidence::standing_for;
use crate::evidence::survey::RowView;
use crate::groups::group::{Group, explain, symptoms};
use crate::groups::strands::{lines as lines_of, stack};
use crate::results::finding::{Advice, Finding, Kind};
use crate::time::{NeedlessKind, NeedlessWaits, Senders};
use systoll_model::{ObjectSample, Recording, Row, RowId, RowLine};

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

/// Returns the calls that sent what was held back until a finding's waits ended; `None` if that is not known.
pub(crate) fn senders<'a>(finding: &Finding, all: &'a [NeedlessWaits]) -> Option<&'a Senders> {
    let of_finding = all.iter().find(|late| late.rows == finding.rows && !late.senders.is_empty());
    // A row may have both ends' calls.
    of_finding.map(|late| &late.senders).filter(|senders| !senders.keys().any(|id| finding.rows.contains(id)))
}

/// Names the calls that sent what was held back before the waits for it, with the lines that sent it: what has to change is
/// there.
pub(crate) fn lead_with(senders: &Senders, finding: &mut Finding, recording: &Recording, strands: &mut Recording) {
    let mut leading = Vec::new();
    for (id, streams) in senders {
        let of_streams = |sample: &&ObjectSample| sample.object.as_ref().is_some_and(|object| streams.contains(object));
        let lines = lines_of(&recording.object_samples_of(*id).iter().filter(of_streams).collect::<Vec<_>>());
        let row = strands.rows.get(id.0 as usize).filter(|_| !lines.is_empty()).cloned();
        leading.push(row.map_or(*id, |row| put_with_lines(row, lines, strands)));
    }
    let first = leading.first().and_then(|id| strands.rows.get(id.0 as usize));
    finding.user = first.and_then(|row| row.user).or(finding.user);
    finding.strands.splice(0..0, leading);
}

/// Returns the lines that made such waits, the most first; the known ones stand for all.
pub(crate) fn lines(late: &NeedlessWaits) -> Vec<RowLine> {
    standing_for(late.calls, &late.lines)
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
    // One of several rows that start programs may be that of few of the starts.
    let of_few = finding.starts && lines.first().is_some_and(|line| recording.row(*lead).user != Some(line.frame));
    shared || of_few || lines.is_empty() && is_others() || is_asked_elsewhere(finding, recording)
}

/// Gives a finding about waits or starts a strand with the lines that made these calls, since other lines may make most of the
/// row's calls: no line if none is known.
pub(crate) fn narrow(finding: &mut Finding, strands: &mut Recording) {
    let is_asked_elsewhere = is_asked_elsewhere(finding, strands);
    let (Some((lead, others)), Some(lines)) = (finding.strands.split_first_mut(), &finding.at_lines) else { return };
    let Some(mut row) = strands.rows.get(lead.0 as usize).cloned() else { return };
    if is_asked_elsewhere {
        row.api = None;
    }
    finding.user = lines.first().map(|line| line.frame);
    *lead = put_with_lines(row, lines.clone(), strands);
    // What starts and awaits one program serves the others of its maker as well.
    for strand in others.iter_mut().filter(|_| finding.starts) {
        let Some(row) = strands.rows.get(strand.0 as usize).filter(|row| !row.lines.is_empty()).cloned() else {
            continue;
        };
        let of_these = |line: &&RowLine| lines.iter().any(|of| of.frame == line.frame);
        let lines = row.lines.iter().filter(of_these).copied().collect();
        *strand = put_with_lines(row, lines, strands);
    }
}

/// Adds a row to the strands with these lines in place of its own, and returns its id.
fn put_with_lines(mut row: Row, lines: Vec<RowLine>, strands: &mut Recording) -> RowId {
    row.user = lines.first().map(|line| line.frame);
    // The frames above are those of the line with most calls.
    if row.lines.first().map(|line| line.frame) != row.user {
        row.outer = stack(strands, row.user.into_iter().collect());
    }
    row.lines = lines;
    strands.rows.push(row);
    RowId(strands.rows.len() as u32 - 1)
}
