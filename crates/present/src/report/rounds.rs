//! Rounds in a report, i.e. sequences of calls that threads repeat: those that take most of the
//! remaining time, or all.

use super::screen::{DETAIL, Report};
use crate::style::{Line, Role, flow};
use crate::text::wrap;
use crate::units::grouped;
use systoll_judge::Round;

/// Column at which the details of a round begin.
const BENEATH: usize = DETAIL + 2;

impl Report<'_> {
    /// Returns the rounds that no finding explains and that take much time; all rounds if
    /// requested.
    pub(super) fn rounds(&self) -> Vec<Line> {
        let all = self.options.rounds;
        let shown: Vec<&Round> = self.judgement.rounds.iter().filter(|round| all || round.is_of_rest).collect();
        if shown.is_empty() {
            let none = "none: nothing dear is done again and again, or windows do not show it";
            return if all { self.closing_line("rounds", Role::Plain, none) } else { vec![] };
        }
        let label = match (all, self.judgement.findings.is_empty()) {
            (true, _) => "rounds",
            (false, true) => "most of it",
            (false, false) => "most of the rest",
        };
        let mut lines = vec![Line::of(Role::Plain, "  ").with(Role::Faint, label)];
        lines.extend(shown.into_iter().flat_map(|round| self.round(round)));
        lines
    }

    pub(super) fn round(&self, round: &Round) -> Vec<Line> {
        let told = self.sentences().round(round);
        let width = self.style.columns();
        let indented = |role, text: &str, indent: usize| {
            let of_line = move |line| Line::of(Role::Plain, " ".repeat(indent)).with(role, line);
            wrap(text, width.saturating_sub(indent)).into_iter().map(of_line).collect::<Vec<_>>()
        };
        let mut lines = indented(Role::Strong, &told.motif, DETAIL);
        let mut about = vec![Line::of(Role::Bad, told.cost)];
        about.extend(told.place.map(|place| {
            let mut line = Line::default();
            line.push_name(Role::Plain, place);
            line
        }));
        about.extend(told.notes.into_iter().map(|note| Line::of(Role::Plain, note)));
        if self.options.rounds && round.looked_at > 0 {
            let seen = format!("{} of {} looked at have all of it", grouped(round.agree), grouped(round.looked_at));
            about.push(Line::of(Role::Faint, seen));
        }
        let first = Line::of(Role::Plain, " ".repeat(BENEATH));
        lines.extend(flow(first, about, 3, BENEATH, width));
        if !told.seen.is_empty() {
            lines.extend(indented(Role::Faint, &told.seen.join("; "), BENEATH));
        }
        lines
    }
}
