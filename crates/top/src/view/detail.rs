//! Draws one line of the table in detail: figures, callers, its finding and rounds, stacks, a
//! window.

use super::findings::pieces;
use crate::figures::{each, percent, rate};
use crate::history::{Judged, Point};
use crate::state::State;
use crate::table::{Group, TableLine};
use std::collections::HashSet;
use systoll_model::{RowId, Window};
use systoll_present::{Parts, Pieces, Role, call_text, clean, units};

/// Largest number of rows whose callers and stacks are shown.
const ROWS: usize = 3;
/// Blocks of one to eight eighths of a sign's height.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the lines about a line of the table.
pub(super) fn lines(state: &State, group: &Group, width: usize) -> Vec<Parts> {
    let mut lines: Vec<Parts> = vec![vec![]];
    let names = group.names();
    let mut title = vec![(Role::Plain, " ".to_owned())];
    for (at, name) in names.iter().enumerate() {
        title.push((Role::Faint, if at == 0 { "" } else { " < " }.into()));
        title.push((if at == 0 { Role::Name } else { Role::Strong }, name.clone()));
    }
    lines.push(title);
    let choice = crate::table::Choice { filter: String::new(), ..state.choice.clone() };
    let Some(line) = crate::table::lines(state.shown(), &choice).into_iter().find(|line| line.group == *group) else {
        lines.push(vec![(Role::Faint, " it is not among the lines of this table any more".into())]);
        return lines;
    };
    lines.extend(figures(state, &line));
    lines.extend(graph(&state.history().points_of(&line.keys), width));
    let judged = &state.shown().judged;
    let mut rows: Vec<RowId> = line.keys.iter().filter_map(|key| judged.members.get(key)).flatten().copied().collect();
    let cost = |id: &RowId| judged.recording.rows.get(id.0 as usize).map(|r| (r.counts.toll_ns, r.counts.calls));
    rows.sort_by_key(|id| (std::cmp::Reverse(cost(id)), *id));
    rows.dedup();
    if rows.is_empty() {
        lines.push(vec![]);
        lines.push(vec![(Role::Faint, " callers and stacks come with the next sample".into())]);
        return lines;
    }
    lines.extend(claims(judged, &pieces(state, width), &rows));
    lines.extend(callers(&pieces(state, width), &rows));
    lines.extend(window(judged, &rows));
    lines
}

/// Returns the figures of the interval, and since watching began.
fn figures(state: &State, line: &TableLine) -> Vec<Parts> {
    let span = state.shown().span_ns;
    let of = |ns: u64| percent(ns as f64 / span.max(1) as f64);
    let about = if line.is_sampled { "about " } else { "" };
    let one = |n: &crate::tally::Figures| {
        let each = each(n.toll_ns, n.calls);
        let each = if each.is_empty() { each } else { format!(", {each} each") };
        let failed = if n.failed > 0 { format!(", {} failed", units::grouped(n.failed)) } else { String::new() };
        format!("{each}{failed}")
    };
    let (now, all) = (&line.now, &line.all);
    let now = format!(
        " now     {about}{} calls/s, {} of a CPU{}, waited {}",
        rate(now.calls, span),
        of(now.toll_ns),
        one(now),
        of(now.waited_ns)
    );
    let all = format!(
        " in all  {about}{}, {}{}, waited {}",
        units::counted(all.calls, "call", "calls"),
        units::time(all.toll_ns),
        one(all),
        units::time(all.waited_ns)
    );
    vec![vec![(Role::Plain, now)], vec![(Role::Plain, all)]]
}

/// Returns a graph of one line.
fn graph(points: &[Point], width: usize) -> Vec<Parts> {
    let shown = points.get(points.len().saturating_sub(width.saturating_sub(2))..).unwrap_or_default();
    let share = |point: &Point| point.figures.toll_ns as f64 / point.span_ns.max(1) as f64;
    let most = shown.iter().map(share).fold(0.0, f64::max);
    if most <= 0.0 {
        return vec![];
    }
    let sign = |point: &Point| match share(point) {
        s if s <= 0.0 => ' ',
        s => EIGHTHS.get((s / most * 7.0).round() as usize).copied().unwrap_or('█'),
    };
    let text: String = shown.iter().map(sign).collect();
    vec![vec![(Role::Plain, " ".into()), (Role::Name, text)]]
}

/// Returns the findings, remarks to consider and rounds that have calls of these rows.
fn claims(judged: &Judged, pieces: &Pieces<'_>, rows: &[RowId]) -> Vec<Parts> {
    let rows: HashSet<&RowId> = rows.iter().collect();
    let mut lines = Vec::new();
    for (number, finding) in judged.reported() {
        if finding.rows.iter().any(|row| rows.contains(row)) {
            lines.push(vec![]);
            lines.extend(super::findings::of(pieces, number, finding));
        }
    }
    let has = |round: &&systoll_judge::Round| round.rows.iter().any(|row| rows.contains(&row.row));
    let rounds: Vec<_> = judged.judgement.rounds.iter().filter(has).collect();
    if !rounds.is_empty() {
        lines.extend([vec![], vec![(Role::Faint, " done again and again".into())]]);
        lines.extend(rounds.into_iter().flat_map(|round| pieces.round(round)));
    }
    lines
}

/// Returns the stacks of the costliest rows, and the files behind their descriptors.
fn callers(pieces: &Pieces<'_>, rows: &[RowId]) -> Vec<Parts> {
    let mut lines = Vec::new();
    for row in rows.iter().take(ROWS) {
        let Some(of_row) = pieces.recording.rows.get(row.0 as usize) else { continue };
        lines.push(vec![]);
        lines.push(vec![
            (Role::Name, format!(" {}", clean(&of_row.syscall.to_string()))),
            (Role::Faint, format!("   {}, called by", units::counted(of_row.counts.calls, "call", "calls"))),
        ]);
        let stacks = pieces.stacks(*row);
        let unknown = vec![vec![(Role::Faint, "     nobody that is known".to_owned())]];
        lines.extend(if stacks.is_empty() { unknown } else { stacks });
        lines.extend(pieces.descriptors(*row));
    }
    if let Some(more) = rows.len().checked_sub(ROWS).filter(|more| *more > 0) {
        let text = format!(" and {} that cost less", units::counted(more as u64, "caller", "callers"));
        lines.extend([vec![], vec![(Role::Faint, text)]]);
    }
    lines
}

/// Returns the last window with calls of these rows: consecutive calls of a thread.
fn window(judged: &Judged, rows: &[RowId]) -> Vec<Parts> {
    let rows: HashSet<&RowId> = rows.iter().collect();
    let recording = &judged.recording;
    let has = |window: &&Window| window.calls.iter().any(|call| rows.contains(&call.row));
    let Some(window) = recording.windows.iter().rev().find(has) else { return vec![] };
    let mut lines = vec![vec![], vec![(Role::Faint, " what a thread did, one call after the other".to_owned())]];
    for call in &window.calls {
        let Some(row) = recording.rows.get(call.row.0 as usize) else { continue };
        let is_it = rows.contains(&call.row);
        let took = units::time(call.elapsed_ns);
        let text = clean(&call_text(call, row.syscall));
        lines
            .push(vec![(Role::Faint, format!(" {took:>9}  ")), (if is_it { Role::Strong } else { Role::Plain }, text)]);
    }
    lines
}
