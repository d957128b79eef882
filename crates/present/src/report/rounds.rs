//! Repeated patterns in a report, i.e. sequences of calls that threads repeat: those that take most of the remaining time,
//! or all.

use super::screen::{DETAIL, Report};
use crate::sentences::NOTICED_NS;
use crate::style::{Line, Role, flow};
use crate::text::wrap;
use crate::units::grouped;
use systoll_judge::Round;

/// Column at which the details of a round begin.
const BENEATH: usize = DETAIL + 2;

impl Report<'_> {
    /// Returns the lines about the patterns that no finding explains and that take much time; about all if requested.
    pub(super) fn rounds(&self) -> Vec<Line> {
        let all = self.options.rounds;
        let shown = self.shown_rounds();
        if shown.is_empty() {
            let none = "none: nothing expensive is done repeatedly, or samples do not show it";
            return if all { self.closing_line("patterns", Role::Plain, none) } else { vec![] };
        }
        let label = match (all, self.judgement.findings.is_empty()) {
            (true, _) => "repeated patterns",
            (false, true) => "most of the time",
            (false, false) => "most of the rest",
        };
        let mut lines = vec![Line::of(Role::Plain, "  ").with(Role::Faint, label)];
        lines.extend(shown.into_iter().flat_map(|round| self.round(round)));
        lines
    }

    /// Returns the patterns that are shown: all, or those that take much of the run and a time that somebody notices.
    pub(super) fn shown_rounds(&self) -> Vec<&Round> {
        let is_noticed = |round: &Round| round.toll_ns.max(round.waited_ns.unwrap_or(0)) >= NOTICED_NS;
        let shown = |round: &&Round| self.options.rounds || round.is_of_rest && (self.options.all || is_noticed(round));
        self.judgement.rounds.iter().filter(shown).collect()
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
            let seen = format!("{} of {} sampled have all of it", grouped(round.agree), grouped(round.looked_at));
            about.push(Line::of(Role::Faint, seen));
        }
        let first = Line::of(Role::Plain, " ".repeat(BENEATH));
        lines.extend(flow(first, about, 3, BENEATH, width));
        if !told.seen.is_empty() && (self.options.rounds || self.options.all) {
            lines.extend(indented(Role::Faint, &told.seen.join("; "), BENEATH));
        }
        lines
    }
}
