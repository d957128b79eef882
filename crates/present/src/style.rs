//! Colour and width of the output, and lines made of coloured parts.
//!
//! Invariant: without `color`, no escape sequence is written.

use crate::text::{columns, shorten, wrap};
use anstyle::{AnsiColor, Effects};

/// Columns to which even a whole name is shortened: templates have names of some hundred
/// characters, hostile programs of millions.
pub(crate) const LONGEST_NAME: usize = 1000;

/// The properties of the reader's terminal or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// True if colours may be written. The caller decides (terminal, `NO_COLOR`, `--color`).
    pub color: bool,
    /// Width in columns that the output should fit into.
    pub width: usize,
    /// True if names are written whole even if they exceed the width, as in a file, which has no
    /// width to keep.
    pub whole_names: bool,
}

impl Default for Style {
    /// Returns the style for a file or a pipe: no colour, 100 columns, whole names.
    fn default() -> Self {
        Self { color: false, width: 100, whole_names: true }
    }
}

/// The role of a piece of text, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading, or an important figure.
    Strong,
    /// A label, or text that can be skipped.
    Faint,
    /// A name: a system call, a function.
    Name,
    /// Helpful text: a cure, a command to type.
    Good,
    /// Doubtful text: a problem, an inexact figure.
    Warn,
    /// Bad news: waste, failure.
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
    /// Returns a name shortened to `max` columns, or whole if the style says so.
    pub(crate) fn name(&self, name: &str, max: usize) -> String {
        shorten(name, if self.whole_names { LONGEST_NAME } else { max })
    }

    /// Returns `text` in the colour of `role`.
    pub fn paint(&self, role: Role, text: &str) -> String {
        if self.color && role != Role::Plain && !text.is_empty() {
            let ansi = role.ansi();
            format!("{ansi}{text}{ansi:#}")
        } else {
            text.to_owned()
        }
    }

    /// Returns the width that the output should fit into, but at least 40 columns.
    pub(crate) fn columns(&self) -> usize {
        self.width.max(40)
    }
}

/// Columns to which a part of a line is shortened, at least.
const SHORTEST: usize = 8;

/// A line, or a part of one, that knows its width.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    parts: Vec<Part>,
    width: usize,
}

#[derive(Clone, Debug)]
struct Part {
    role: Role,
    text: String,
    /// True if the part's middle may be left out to save room, as in a name, unlike a figure.
    elastic: bool,
}

impl Line {
    /// Creates a line of one part.
    pub(crate) fn of(role: Role, text: impl Into<String>) -> Self {
        Self::default().with(role, text)
    }

    /// Appends a part to the line.
    pub(crate) fn push(&mut self, role: Role, text: impl Into<String>) {
        self.add(role, text.into(), false);
    }

    /// Appends a name, whose middle may be left out to save room.
    pub(crate) fn push_name(&mut self, role: Role, name: impl Into<String>) {
        self.add(role, name.into(), true);
    }

    fn add(&mut self, role: Role, text: String, elastic: bool) {
        if !text.is_empty() {
            self.width += columns(&text);
            self.parts.push(Part { role, text, elastic });
        }
    }

    /// Appends a part that ends at column `end`, or as soon after it as possible.
    pub(crate) fn right(&mut self, end: usize, role: Role, text: &str) {
        self.pad_to(end.saturating_sub(columns(text)));
        self.push(role, text);
    }

    /// Returns the line with a part appended.
    pub(crate) fn with(mut self, role: Role, text: impl Into<String>) -> Self {
        self.push(role, text);
        self
    }

    /// Appends spaces up to column `column`, at least one after text.
    pub(crate) fn pad_to(&mut self, column: usize) {
        let after_text = self.parts.last().is_some_and(|p| !p.text.ends_with(' '));
        let missing = column.saturating_sub(self.width).max(usize::from(after_text));
        if missing > 0 {
            self.push(Role::Plain, " ".repeat(missing));
        }
    }

    /// Returns the line with its names shortened until it fits into `max` columns, as far as that
    /// is possible.
    pub(crate) fn fit(mut self, max: usize) -> Self {
        while self.width > max {
            let names = self.parts.iter_mut().filter(|p| p.elastic);
            let Some(longest) = names.max_by_key(|p| columns(&p.text)) else { return self };
            let before = columns(&longest.text);
            longest.text = shorten(&longest.text, before.saturating_sub(self.width - max).max(SHORTEST));
            let saved = before.saturating_sub(columns(&longest.text));
            if saved == 0 {
                return self;
            }
            self.width -= saved;
        }
        self
    }

    /// Appends all parts of `other`.
    pub(crate) fn append(&mut self, other: Line) {
        self.width += other.width;
        self.parts.extend(other.parts);
    }

    /// Returns the line with all parts of `other` appended.
    pub(crate) fn joined(mut self, other: Line) -> Self {
        self.append(other);
        self
    }

    /// Splits the line into lines of at most `max` columns: shortens names first, then breaks
    /// between words. No line starts with a comma or a source line's number.
    pub(crate) fn broken(self, max: usize) -> Vec<Self> {
        let fitted = self.fit(max);
        if fitted.width <= max {
            return vec![fitted];
        }
        let mut lines = vec![];
        let mut line = Self::default();
        for (gap, word) in fitted.words(max) {
            if line.is_empty() {
                line = word;
            } else if line.width + gap + word.width <= max {
                line.push(Role::Plain, " ".repeat(gap));
                line.append(word);
            } else {
                lines.push(std::mem::replace(&mut line, word));
            }
        }
        lines.push(line);
        lines.retain(|l| !l.is_empty());
        lines
    }

    /// Returns the words, each with the number of spaces before it; a number and its unit are one
    /// word. A word of more than `max` columns is split into its parts.
    fn words(self, max: usize) -> Vec<(usize, Self)> {
        let mut words: Vec<(usize, Self)> = vec![];
        let mut gap = 0;
        for part in self.parts {
            gap += part.text.len() - part.text.trim_start_matches(' ').len();
            for text in wrap(&part.text, 0) {
                match words.last_mut() {
                    Some((_, word)) if gap == 0 && word.width + columns(&text) <= max => {
                        word.add(part.role, text, part.elastic);
                    }
                    _ => words.push((gap, Self::of(part.role, text))),
                }
                gap = 1;
            }
            gap = part.text.len() - part.text.trim_end_matches(' ').len();
        }
        words
    }

    /// Returns the width of the line, in columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Returns true if the line has no text.
    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0
    }

    /// Returns the parts of the line, each with its role.
    pub(crate) fn into_parts(self) -> Vec<(Role, String)> {
        self.parts.into_iter().map(|part| (part.role, part.text)).collect()
    }

    /// Returns the line as text, without trailing spaces and newline.
    pub(crate) fn render(&self, style: &Style) -> String {
        let mut runs: Vec<(Role, String)> = vec![];
        for part in &self.parts {
            match runs.last_mut() {
                Some((role, text)) if *role == part.role => text.push_str(&part.text),
                _ => runs.push((part.role, part.text.clone())),
            }
        }
        while let Some((_, text)) = runs.last_mut() {
            text.truncate(text.trim_end().len());
            if !text.is_empty() {
                break;
            }
            runs.pop();
        }
        runs.iter().map(|(role, text)| style.paint(*role, text)).collect()
    }
}

/// Lays out `segments` from left to right, `gap` columns apart, starting after `first`. A segment
/// that does not fit into `width` goes to a new line, indented by `indent`. A segment that is too
/// long for a line is shortened if it has names, otherwise broken.
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
            assert_eq!(Style { color: false, width: 80, whole_names: false }.paint(role, "x"), "x");
        }
        assert_eq!(Style { color: true, width: 80, whole_names: false }.paint(Role::Good, "x"), "\x1b[32mx\x1b[0m");
    }

    #[test]
    fn a_flow_breaks_between_segments() {
        let segments = ["one", "two", "three"].map(|s| Line::of(Role::Plain, s)).to_vec();
        let style = Style { color: false, width: 12, whole_names: false };
        let lines: Vec<_> =
            flow(Line::of(Role::Plain, "> "), segments, 2, 4, 12).iter().map(|l| l.render(&style)).collect();
        assert_eq!(lines, ["> one  two", "    three"]);

        let mut name = Line::of(Role::Plain, "x");
        name.push_name(Role::Name, "unbreakable_name");
        let segments = vec![Line::of(Role::Plain, "it was 97 ns"), name];
        let lines: Vec<_> = flow(Line::default(), segments, 2, 2, 12).iter().map(|l| l.render(&style)).collect();
        assert_eq!(lines, ["it was", "  97 ns", "  xunbr…name"]);
    }

    #[test]
    fn a_line_begins_with_no_comma_and_no_number_of_a_line() {
        let style = Style { color: false, width: 12, whole_names: false };
        let mut line = Line::default();
        line.push_name(Role::Plain, "parse");
        line.push_name(Role::Faint, " application.c");
        line.push(Role::Faint, ":40");
        line.push(Role::Plain, ", 20,000 calls 7.1 ms");
        let lines: Vec<_> = line.broken(12).iter().map(|l| l.render(&style)).collect();
        assert_eq!(lines, ["parse", "app…n.c:40,", "20,000 calls", "7.1 ms"]);
    }

    #[test]
    fn trailing_spaces_are_not_written() {
        let mut line = Line::of(Role::Plain, "x");
        line.pad_to(9);
        assert_eq!((line.width(), line.render(&Style::default()).as_str()), (9, "x"));
    }
}
