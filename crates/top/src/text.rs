//! Draws screens as plain text, for scripts.

use crate::state::State;
use crate::view::draw;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Largest number of lines of the table in a text.
const MOST_LINES: usize = 100;

/// Returns the lines that a screen needs for all lines of its table that had calls.
pub fn height(state: &State) -> u16 {
    let lines = state.lines().iter().filter(|line| line.now.calls > 0).count();
    state.contents().text_height(lines.min(MOST_LINES))
}

/// Returns the screen of a state as text, without colours, without blanks at the ends of lines and without empty lines at
/// its end.
pub fn text(state: &State, columns: u16, lines: u16) -> String {
    let area = Rect::new(0, 0, columns, lines);
    let mut buffer = Buffer::empty(area);
    let mut state = state.clone();
    state.resize(columns, lines);
    draw(&state, area, &mut buffer);
    let mut text = String::new();
    for y in 0..area.height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..area.width {
            let symbol = buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
            if skip == 0 {
                line.push_str(symbol);
            }
            skip = if skip > 0 { skip - 1 } else { ratatui::text::Span::raw(symbol).width().saturating_sub(1) };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let length = text.trim_end().len();
    text.truncate(length);
    text.push('\n');
    text
}
