//! The parts of a trace's report besides findings: the waits of its calls, and the rows of its
//! tables that are worth a closer look.

use super::screen::{CLOSING_TEXT, Report};
use crate::sentences::OBJECT;
use crate::style::{Line, Role};
use crate::text::{clean, sentence, shell_lines, shorten};

/// Number of waits that are shown without `all`.
const WAITS: usize = 4;

/// Number of table rows that are shown without `all`.
const ROWS: usize = 4;

impl Report<'_> {
    /// Returns the waits of a trace's calls.
    pub(super) fn waits(&self) -> Vec<Line> {
        let waits = &self.judgement.waits;
        let limit = if self.options.all { usize::MAX } else { WAITS };
        let mut lines = vec![];
        for (i, wait) in waits.iter().take(limit).enumerate() {
            let mut first = Line::of(Role::Plain, "  ");
            first.push(Role::Faint, if i == 0 { "waits" } else { "" });
            first.pad_to(CLOSING_TEXT);
            let mut what = Line::default();
            what.push_name(Role::Name, wait.syscall.to_string());
            if !wait.about.is_empty() {
                what.push_name(Role::Plain, format!(" {}", shorten(&clean(&wait.about), OBJECT)));
            }
            let mut segments = vec![what, Line::of(Role::Plain, self.sentences().wait(wait))];
            segments.extend(self.sentences().waits_in(wait).map(|row| self.caller(row)));
            lines.extend(crate::style::flow(first, segments, 3, CLOSING_TEXT, self.style.columns()));
        }
        lines
    }

    /// Returns the rows of a table that are worth a closer look, and the commands for it.
    pub(super) fn tables(&self) -> Vec<Line> {
        let mut lines = vec![];
        for (i, text) in self.sentences().two_tables().into_iter().flatten().enumerate() {
            lines.extend(self.closing_line(if i == 0 { "two tables" } else { "" }, Role::Plain, &text));
        }
        let limit = if self.options.all { usize::MAX } else { ROWS };
        for (i, counted) in self.judgement.counted.iter().take(limit).enumerate() {
            let names: Vec<String> = counted.syscalls.iter().take(1).map(ToString::to_string).collect();
            let of =
                self.sentences().table_name(counted).map_or_else(String::new, |name| format!(" ({})", clean(name)));
            let text = format!("{}{of}: {}", names.join(", "), sentence(&self.sentences().counted(counted)));
            lines.extend(self.closing_line(if i == 0 { "look at" } else { "" }, Role::Plain, &text));
            let command =
                shell_lines(&self.sentences().find_out(counted), self.style.columns().saturating_sub(CLOSING_TEXT));
            let command = command.into_iter().map(|line| Line::of(Role::Good, line)).collect();
            lines.extend(self.beside(2, "", CLOSING_TEXT, command));
        }
        lines
    }
}
