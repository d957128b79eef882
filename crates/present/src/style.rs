//! Colour and width of the output, and lines made of coloured parts.
//!
//! Invariant: with `color` off not one escape sequence is written.

use crate::text::{columns, shorten, wrap};
use anstyle::{AnsiColor, Effects};
use std::fmt::Write as _;

/// How to write to the reader's terminal or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether colours may be written. The caller decides (terminal, `NO_COLOR`, `--color`).
    pub color: bool,
    /// Columns to fit into.
    pub width: usize,
}

impl Default for Style {
    /// No colour and 100 columns: what a file or a pipe gets.
    fn default() -> Self {
        Self { color: false, width: 100 }
    }
}

/// What a piece of text is, which decides how it is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading, or the figure that matters.
    Strong,
    /// Labels and what can be skipped.
    Faint,
    /// A name: a system call, a function.
    Name,
    /// What helps: a cure, a command to type.
    Good,
    /// Doubt: a problem, a figure not exact.
    Warn,
    /// Waste, failure.
    Bad,
}

impl Role {
    fn ansi(self) -> anstyle::Style {
        let plain = anstyle::Style::new();
        match self {
            Self::Plain => plain,
            Self::Strong => plain.effects(Effects::BOLD),
            Self::Faint => plain.effects(Effects::DIMMED),
            Self::Name => plain.fg_color(Some(AnsiColor::Cyan.into())),
            Self::Good => plain.fg_color(Some(AnsiColor::Green.into())),
            Self::Warn => plain.fg_color(Some(AnsiColor::Yellow.into())),
            Self::Bad => plain.fg_color(Some(AnsiColor::Red.into())).effects(Effects::BOLD),
        }
    }
}

impl Style {
    /// `text` in the colour of `role`.
    pub fn paint(&self, role: Role, text: &str) -> String {
        if self.color && role != Role::Plain && !text.is_empty() {
            let ansi = role.ansi();
            format!("{ansi}{text}{ansi:#}")
        } else {
            text.to_owned()
        }
    }

    /// Columns to fit into, never so few that nothing fits.
    pub(crate) fn columns(&self) -> usize {
        self.width.max(40)
    }
}

/// What a part is not shortened below, in columns.
const SHORTEST: usize = 8;

/// A line, or a piece of one, that knows its width.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    parts: Vec<(Role, String)>,
    width: usize,
}

impl Line {
    /// A line of one part.
    pub(crate) fn of(role: Role, text: impl Into<String>) -> Self {
        Self::default().with(role, text)
    }

    /// Appends a part.
    pub(crate) fn push(&mut self, role: Role, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        self.width += columns(&text);
        self.parts.push((role, text));
    }

    /// The line with a part appended.
    pub(crate) fn with(mut self, role: Role, text: impl Into<String>) -> Self {
        self.push(role, text);
        self
    }

    /// Appends spaces up to column `column`, at least one after text.
    pub(crate) fn pad_to(&mut self, column: usize) {
        let after_text = self.parts.last().is_some_and(|(_, text)| !text.ends_with(' '));
        let missing = column.saturating_sub(self.width).max(usize::from(after_text));
        if missing > 0 {
            self.push(Role::Plain, " ".repeat(missing));
        }
    }

    /// The line in at most `max` columns: its longest parts lose their middles.
    pub(crate) fn fit(mut self, max: usize) -> Self {
        while self.width > max {
            let longest = self.parts.iter_mut().max_by_key(|(_, text)| columns(text));
            let Some((_, text)) = longest else { return self };
            let before = columns(text);
            let room = before.saturating_sub(self.width - max).max(SHORTEST);
            *text = shorten(text, room);
            let after = columns(text);
            if after >= before {
                return self;
            }
            self.width -= before - after;
        }
        self
    }

    /// Appends all of `other`.
    pub(crate) fn append(&mut self, other: Line) {
        self.width += other.width;
        self.parts.extend(other.parts);
    }

    /// The line with all of `other` appended.
    pub(crate) fn joined(mut self, other: Line) -> Self {
        self.append(other);
        self
    }

    /// The line as lines of at most `max` columns: prose (one part) breaks between words,
    /// anything else is shortened.
    fn broken(self, max: usize) -> Vec<Self> {
        match self.parts.as_slice() {
            [(role, text)] if self.width > max && text.contains(' ') => {
                let lines = wrap(text, max).into_iter();
                lines.map(|text| Self::of(*role, text).fit(max)).collect()
            }
            _ => vec![self.fit(max)],
        }
    }

    /// Columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0
    }

    /// The line as it is written, without trailing spaces and newline.
    pub(crate) fn render(&self, style: &Style) -> String {
        let mut out = String::new();
        let last = self.parts.iter().rposition(|(_, text)| !text.trim_end().is_empty());
        for (i, (role, text)) in self.parts.iter().take(last.map_or(0, |l| l + 1)).enumerate() {
            let text = if Some(i) == last { text.trim_end() } else { text };
            // Writing to a String does not fail.
            let _ = write!(out, "{}", style.paint(*role, text));
        }
        out
    }
}

/// Lays `segments` out from left to right with `gap` columns between them, going on at `indent`
/// on a new line where the next would not fit into `width`. The first line starts as `first`.
/// A segment too long for a line of its own is broken where it is prose, else shortened.
pub(crate) fn flow(first: Line, segments: Vec<Line>, gap: usize, indent: usize, width: usize) -> Vec<Line> {
    let mut lines = vec![];
    let mut line = first;
    let mut fresh = true;
    for segment in segments.into_iter().filter(|s| !s.is_empty()) {
        let room = width.saturating_sub(if fresh { line.width().max(indent) } else { indent });
        for (i, piece) in segment.broken(room).into_iter().enumerate() {
            if !fresh && (i > 0 || line.width() + gap + piece.width() > width) {
                lines.push(std::mem::replace(&mut line, Line::of(Role::Plain, " ".repeat(indent))));
            } else if !fresh {
                line.push(Role::Plain, " ".repeat(gap));
            }
            line.append(piece);
            fresh = false;
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_colour_means_no_escape_sequence() {
        for role in [Role::Plain, Role::Strong, Role::Faint, Role::Name, Role::Good, Role::Warn, Role::Bad] {
            assert_eq!(Style { color: false, width: 80 }.paint(role, "x"), "x");
        }
        assert_eq!(Style { color: true, width: 80 }.paint(Role::Good, "x"), "\x1b[32mx\x1b[0m");
    }

    #[test]
    fn a_flow_breaks_between_segments() {
        let segments = ["one", "two", "three"].map(|s| Line::of(Role::Plain, s)).to_vec();
        let style = Style { color: false, width: 12 };
        let lines: Vec<_> =
            flow(Line::of(Role::Plain, "> "), segments, 2, 4, 12).iter().map(|l| l.render(&style)).collect();
        assert_eq!(lines, ["> one  two", "    three"]);

        let segments = vec![
            Line::of(Role::Plain, "it was 97 ns"),
            Line::of(Role::Plain, "x").with(Role::Name, "unbreakable_name"),
        ];
        let lines: Vec<_> = flow(Line::default(), segments, 2, 2, 12).iter().map(|l| l.render(&style)).collect();
        assert_eq!(lines, ["it was", "  97 ns", "  xunbr…name"]);
    }

    #[test]
    fn trailing_spaces_are_not_written() {
        let mut line = Line::of(Role::Plain, "x");
        line.pad_to(9);
        assert_eq!((line.width(), line.render(&Style::default()).as_str()), (9, "x"));
    }
}
