//! Draws screens as text, for scripts.

use crate::state::State;
use crate::view::draw;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

/// Largest number of lines of the table in a text.
const MOST_LINES: usize = 100;

/// Returns the lines that a screen needs for all lines of its table that had calls.
pub fn height(state: &State) -> u16 {
    let lines = state.lines().iter().filter(|line| line.now.calls > 0).count();
    state.contents().text_height(lines.min(MOST_LINES))
}

/// Returns the screen of a state as text, without blanks at the ends of lines and without empty lines at its end. With
/// colours if the state's look has them, as sequences that end with their line.
pub fn text(state: &State, columns: u16, lines: u16) -> String {
    let area = Rect::new(0, 0, columns, lines);
    let mut buffer = Buffer::empty(area);
    let mut state = state.clone();
    state.resize(columns, lines);
    draw(&state, area, &mut buffer);
    let all: Vec<String> = (0..area.height).map(|y| line(&buffer, y, state.look.has_colour)).collect();
    let filled = all.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    all[..filled].join("\n") + "\n"
}

fn line(buffer: &Buffer, y: u16, has_colour: bool) -> String {
    let cells: Vec<Option<&Cell>> = (0..buffer.area.width).map(|x| buffer.cell((x, y))).collect();
    let symbol = |cell: &Option<&Cell>| cell.map_or(" ".to_owned(), |cell| cell.symbol().to_owned());
    let length = cells.iter().rposition(|cell| symbol(cell).trim_end() != "").map_or(0, |last| last + 1);
    let (mut line, mut skip, mut look) = (String::new(), 0, String::new());
    for cell in &cells[..length] {
        let symbol = symbol(cell);
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let next = cell.filter(|_| has_colour).map(sequence).unwrap_or_default();
        if next != look {
            line += if look.is_empty() { "" } else { "\x1b[0m" };
            line += &next;
            look = next;
        }
        line += &symbol;
        skip = ratatui::text::Span::raw(symbol).width().saturating_sub(1);
    }
    line + if look.is_empty() { "" } else { "\x1b[0m" }
}

/// Returns the sequence that gives a terminal the look of a cell; nothing for a plain one.
fn sequence(cell: &Cell) -> String {
    let looks = [(Modifier::BOLD, 1), (Modifier::DIM, 2), (Modifier::REVERSED, 7)];
    let colours = [(Color::Red, 31), (Color::Green, 32), (Color::Yellow, 33), (Color::Cyan, 36)];
    let looks = looks.iter().filter(|(look, _)| cell.modifier.contains(*look)).map(|(_, number)| *number);
    let colours = colours.iter().filter(|(colour, _)| cell.fg == *colour).map(|(_, number)| *number);
    looks.chain(colours).map(|number: u8| format!("\x1b[{number}m")).collect()
}
