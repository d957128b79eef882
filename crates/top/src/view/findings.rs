//! Draws findings with their cures, remarks to consider, and rounds.

use super::canvas::Canvas;
use crate::state::State;
use ratatui::layout::Rect;
use systoll_judge::Finding;
use systoll_present::{Parts, Pieces, Role};

/// Marks a cure that is cut here; `f` shows all of it.
const GOES_ON: &str = " …";
/// Number of columns in which a finding's lines have their labels, at least.
const LABELS: usize = 10;

/// Returns true if a line goes on with the sentence of the line before it.
fn continues(line: &Parts) -> bool {
    let text: String = line.iter().map(|(_, text)| text.as_str()).collect();
    text.chars().take(LABELS).all(char::is_whitespace) && !text.trim_start().starts_with("gives up: ")
}

/// Draws the first findings, each with its cure, below the table.
pub(super) fn draw_some(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    if area.height == 0 {
        return;
    }
    let judged = &state.shown().judged;
    let pieces = pieces(state, usize::from(area.width).saturating_sub(GOES_ON.len()));
    let mut y = area.y + 1;
    for (number, finding) in judged.reported() {
        let lines = of(&pieces, number, finding);
        let is_fix = |line: &&Parts| line.iter().any(|(_, text)| text == "fix" || text.trim().starts_with("fix: "));
        let fix = lines.iter().position(|line| is_fix(&line)).and_then(|at| {
            let goes_on = lines.get(at + 1).is_some_and(continues);
            let mark = goes_on.then(|| (Role::Faint, GOES_ON.to_owned()));
            Some(lines.get(at)?.iter().cloned().chain(mark).collect::<Parts>())
        });
        for line in lines.first().into_iter().chain(&fix) {
            if y >= area.bottom() {
                return;
            }
            canvas.parts(area.x, y, line, area.width);
            y += 1;
        }
    }
}

/// Returns the lines on a finding, or on a remark to consider.
pub(super) fn of(pieces: &Pieces<'_>, number: Option<usize>, finding: &Finding) -> Vec<Parts> {
    number.map_or_else(|| pieces.remark(finding), |number| pieces.finding(number, finding))
}

/// Returns all findings, the remarks to consider, then all rounds.
pub(super) fn lines(state: &State, width: usize) -> Vec<Parts> {
    let judged = &state.shown().judged;
    let pieces = pieces(state, width);
    let mut lines: Vec<Parts> = vec![vec![]];
    let head = |text: &str| vec![(Role::Strong, format!(" {text}"))];
    if judged.judgement.findings.is_empty() {
        lines.push(head("no finding so far"));
    }
    for (number, finding) in judged.reported() {
        lines.extend(of(&pieces, number, finding));
        lines.push(vec![]);
    }
    if !judged.judgement.rounds.is_empty() {
        lines.push(vec![]);
        lines.push(head("what is done again and again"));
        lines.extend(judged.judgement.rounds.iter().flat_map(|round| pieces.round(round)));
    }
    let problems = &state.shown().tally.problems;
    if !problems.is_empty() {
        lines.extend([vec![], head("problems")]);
        for problem in problems {
            let text = format!("   {}", systoll_present::clean(problem));
            lines.extend(systoll_present::wrapped(&text, width).into_iter().map(|line| vec![(Role::Warn, line)]));
        }
    }
    lines
}

/// Returns the parts of the report on the last judgement.
pub(super) fn pieces(state: &State, width: usize) -> Pieces<'_> {
    let judged = &state.shown().judged;
    Pieces { recording: &judged.recording, judgement: &judged.judgement, width }
}
