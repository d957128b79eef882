//! Draws on a buffer. Text outside of it is not drawn.

use crate::state::Look;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use systoll_present::Role;

/// Signs of our own, with their substitutes in ASCII.
const ASCII: [(&str, &str); 22] = [
    ("µ", "u"),
    ("…", "~"),
    ("×", "x"),
    ("–", "-"),
    ("█", "#"),
    ("░", "."),
    ("▁", "_"),
    ("▂", "_"),
    ("▃", "-"),
    ("▄", "-"),
    ("▅", "="),
    ("▆", "="),
    ("▇", "#"),
    ("▏", " "),
    ("▎", " "),
    ("▍", " "),
    ("▌", "#"),
    ("▋", "#"),
    ("▊", "#"),
    ("▉", "#"),
    ("±", "~"),
    ("—", "-"),
];

/// A buffer, and how signs are drawn on it.
pub(super) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    look: Look,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, look: Look) -> Self {
        Self { buffer, look }
    }

    /// Draws a text from a column on. Returns the column behind it.
    pub(super) fn text(&mut self, x: u16, y: u16, role: Role, text: &str, end: u16) -> u16 {
        let area = self.buffer.area;
        let end = end.min(area.right());
        if y < area.y || y >= area.bottom() || x < area.x || x >= end {
            return x;
        }
        self.buffer.set_stringn(x, y, text, usize::from(end - x), self.style(role)).0
    }

    /// Draws parts of a line one behind the other, within `width` columns. Returns the column behind them.
    pub(super) fn parts(&mut self, x: u16, y: u16, parts: &[(Role, String)], width: u16) -> u16 {
        let end = x.saturating_add(width);
        parts.iter().fold(x, |x, (role, text)| self.text(x, y, *role, text, end))
    }

    /// Draws a text that ends at column `end`. Its beginning is cut off if it lies before column
    /// `x`.
    pub(super) fn right(&mut self, x: u16, y: u16, role: Role, text: &str, end: u16) {
        let width = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
        let room = end.saturating_sub(x);
        if width <= room {
            self.text(end - width, y, role, text, end);
        } else {
            self.text(x, y, role, text, end);
        }
    }

    /// Marks a whole line as selected.
    pub(super) fn select(&mut self, area: Rect, y: u16) {
        let line = Rect { y, height: 1, ..area }.intersection(self.buffer.area);
        self.buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
    }

    /// Replaces signs that the terminal can't show.
    pub(super) fn finish(&mut self, area: Rect) {
        if !self.look.is_ascii {
            return;
        }
        for position in area.intersection(self.buffer.area).positions() {
            if let Some(cell) = self.buffer.cell_mut(position)
                && let Some((_, plain)) = ASCII.iter().find(|(sign, _)| *sign == cell.symbol())
            {
                cell.set_symbol(plain);
            }
        }
    }

    fn style(&self, role: Role) -> Style {
        let style = Style::new();
        let colour = |colour| if self.look.has_colour { style.fg(colour) } else { style };
        match role {
            Role::Plain => style,
            Role::Strong => style.add_modifier(Modifier::BOLD),
            Role::Faint => style.add_modifier(Modifier::DIM),
            Role::Name => colour(Color::Cyan),
            Role::Good => colour(Color::Green),
            Role::Warn => colour(Color::Yellow),
            Role::Bad => colour(Color::Red).add_modifier(Modifier::BOLD),
        }
    }
}
