//! Joins groups that have one cause and the same cures into one finding.
//!
//! Groups are made by cause and object, since two objects may have different cures. If their cures are the same, the reader
//! has one thing to do, and gets one finding.

use crate::collections::hash::{Map, Set};
use crate::evidence::phases::{Phases, toll};
use crate::groups::group::Group;
use crate::groups::judged_view::JudgedView;
use crate::options::Options;
use crate::results::finding::{Confidence, Finding};
use crate::semantics::connection;
use crate::verdict::of_group::verdict;
use systoll_model::{FrameId, Recording, RowId};

/// Returns the verdicts of groups; groups with one cause and the same cures have one verdict.
pub(crate) fn verdicts(
    groups: &[Group<'_>],
    shown: JudgedView<'_>,
    phases: &Phases,
    options: &Options,
) -> Vec<Finding> {
    let told = |group: &Group<'_>| verdict(group, shown, phases, options);
    let mut each: Vec<Option<Finding>> = groups.iter().map(told).collect();
    tell_by_line(groups, &mut each, shown, phases, options);
    let mut findings = Vec::new();
    for at in 0..groups.len() {
        let Some((group, finding)) = groups.get(at).zip(each.get_mut(at).and_then(Option::take)) else { continue };
        let alike = |other: &usize| {
            let of_other = groups.get(*other).zip(each.get(*other).and_then(Option::as_ref));
            of_other.is_some_and(|other| are_one((group, &finding), other, shown.recording))
        };
        let others: Vec<usize> = (at + 1..groups.len()).filter(alike).collect();
        let of_others = others.iter().filter_map(|other| groups.get(*other)).flat_map(|group| &group.rows);
        let mut rows: Vec<_> = group.rows.iter().chain(of_others).copied().collect();
        rows.sort_unstable();
        rows.dedup();
        let as_sure = |all: &Finding| all.confidence >= finding.confidence && all.cures == finding.cures;
        let all = if others.is_empty() { None } else { told(&group.with_rows(rows)).filter(as_sure) };
        match all {
            Some(all) => {
                for other in others {
                    each.get_mut(other).map(Option::take);
                }
                findings.push(all);
            }
            None => findings.push(finding),
        }
    }
    findings
}

/// Removes remarks on long waits of calls that a finding explains.
pub(crate) fn leave_explained_waits(all: &mut Vec<Finding>) {
    let explains = |finding: &&Finding| finding.confidence != Confidence::Low && finding.is_about_waiting();
    let explained: Set<RowId> = all.iter().filter(explains).flat_map(|finding| finding.rows.iter().copied()).collect();
    let is_remark =
        |finding: &Finding| finding.confidence == Confidence::Low && !finding.starts && finding.at_lines.is_some();
    all.retain(|finding| !is_remark(finding) || finding.rows.iter().all(|row| !explained.contains(row)));
}

/// Leaves one of two findings that show the same waits at the two ends of a connection: the one whose line is known, or else
/// the one that wins more. `all` begins with those that win most.
pub(crate) fn leave_one_end(all: &mut Vec<Finding>, recording: &Recording) {
    // A script's caller is its interpreter, which has lines of its own only where it was built with them.
    let is_line = |id: FrameId| recording.frame(id).locations.iter().any(|at| at.line.is_some());
    let of_row = |id: &RowId| !recording.row(*id).lines.is_empty();
    let has_line = |finding: &Finding| match &finding.at_lines {
        Some(lines) => !lines.is_empty(),
        None => finding.rows.first().is_some_and(of_row) || finding.user.is_some_and(is_line),
    };
    let mut first: Map<_, usize> = Map::default();
    let mut is_gone = vec![false; all.len()];
    for (at, finding) in all.iter().enumerate() {
        let end = finding.cause.as_ref().zip(finding.what.as_deref().and_then(connection));
        let Some((cause, (kind, from, to))) = end else { continue };
        let of = |from, to| (cause, finding.is_about_waiting(), kind, from, to);
        let gone = match first.get(&of(to, from)).copied() {
            Some(other) if has_line(finding) && all.get(other).is_some_and(|other| !has_line(other)) => {
                first.remove(&of(to, from));
                Some(other)
            }
            Some(_) => Some(at),
            None => None,
        };
        if gone != Some(at) {
            first.entry(of(from, to)).or_insert(at);
        }
        if let Some(gone) = gone.and_then(|gone| is_gone.get_mut(gone)) {
            *gone = true;
        }
    }
    let mut is_gone = is_gone.into_iter();
    all.retain(|_| is_gone.next() != Some(true));
}

/// Least share of a row's calls, 0 to 1, of the line that is taken to make them.
const MOST: f64 = 0.8;

/// Needless calls that one line of the program makes, in groups that are too cheap for a verdict of their own.
#[derive(Default)]
struct OfLine {
    groups: Vec<CheapGroup>,
    /// Price of the needless calls, ns.
    toll_ns: f64,
}

/// A group that is too cheap for a verdict of its own.
struct CheapGroup {
    /// The group's index.
    at: usize,
    /// Price of the group's needless calls, ns.
    toll_ns: f64,
}

/// Judges groups without a verdict once more if one line of the program makes the calls of several (Node's `mkdirSync`
/// makes a directory and asks for its status): the line's needless calls together must then cost as much as a
/// finding's.
fn tell_by_line(
    groups: &[Group<'_>],
    each: &mut [Option<Finding>],
    shown: JudgedView<'_>,
    phases: &Phases,
    options: &Options,
) {
    let mut lines: Map<CodeLine<'_>, OfLine> = Map::default();
    for (at, group) in groups.iter().enumerate().filter(|(at, _)| each.get(*at).is_some_and(Option::is_none)) {
        let plain = !group.by_wait && group.startup.is_none() && group.children.is_none();
        let Some(line) = group.rows.first().filter(|_| plain).and_then(|id| line_of(*id, shown.recording)) else {
            continue;
        };
        let of_line = lines.entry(line).or_default();
        let toll_ns = group.rows.iter().map(|id| needless_toll(*id, shown)).sum::<f64>();
        of_line.groups.push(CheapGroup { at, toll_ns });
        of_line.toll_ns += toll_ns;
    }
    for of_line in lines.into_values().filter(|of_line| of_line.groups.len() > 1 && of_line.toll_ns > 0.0) {
        for CheapGroup { at, toll_ns } in of_line.groups {
            let (Some(group), Some(finding)) = (groups.get(at), each.get_mut(at)) else { continue };
            // Lower the least price to the group's part of it, so that all groups of the line pass if the line does.
            let options = Options { min_price: options.min_price * toll_ns / of_line.toll_ns, ..options.clone() };
            *finding = verdict(group, shown, phases, &options);
        }
    }
}

/// A line of the program: its process, file and number.
type CodeLine<'a> = (u32, &'a str, u32);

/// Returns the line of the program that makes a row's calls; of a script, the one that makes most of them.
fn line_of(id: RowId, recording: &Recording) -> Option<CodeLine<'_>> {
    let row = recording.row(id);
    let frame = match &*row.lines {
        [] => row.user?,
        lines => lines.iter().find(|line| row.share(line) >= MOST)?.frame,
    };
    let place = recording.frame(frame).location()?;
    Some((row.process.0, place.file.as_deref()?, place.line?))
}

/// Returns the price of a row's needless calls, ns.
fn needless_toll(id: RowId, shown: JudgedView<'_>) -> f64 {
    let row = shown.recording.row(id);
    toll(shown.recording, row) / row.counts.calls.max(1) as f64 * shown.needless_calls(id)
}

/// Returns true if two groups of a program have one cause and one way to end it.
fn are_one(one: (&Group<'_>, &Finding), other: (&Group<'_>, &Finding), recording: &Recording) -> bool {
    type Of<'a> = (&'a Group<'a>, &'a Finding);
    fn cause<'a>((_, finding): Of<'a>) -> Option<&'a str> {
        finding.cause.as_deref()
    }
    let plain = |(group, _): Of<'_>| group.startup.is_none() && group.children.is_none();
    let alike = |(group, finding): Of<'_>| (group.by_wait, finding.kind, finding.confidence, finding.phase);
    let exe = |(_, finding): Of<'_>| {
        let lead = finding.rows.first()?;
        Some(&recording.process(recording.row(*lead).process).exe)
    };
    cause(one).is_some()
        && cause(one) == cause(other)
        && plain(one)
        && plain(other)
        && alike(one) == alike(other)
        && one.1.cures == other.1.cures
        && exe(one) == exe(other)
}
