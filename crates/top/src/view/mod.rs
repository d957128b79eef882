//! Draws a state: the same state and size always give the same screen.

mod bars;
mod canvas;
mod detail;
mod findings;
mod head;
mod help;
mod list;

use crate::geometry::Areas;
use crate::state::{Page, State};
use canvas::Canvas;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use systoll_present::Parts;

/// Draws the state into `area` of a buffer. Returns the number of lines of the page below its title, of which the screen
/// shows some.
pub fn draw(state: &State, area: Rect, buffer: &mut Buffer) -> usize {
    let area = area.intersection(buffer.area);
    let mut canvas = Canvas::new(buffer, state.look);
    let areas = Areas::within(area, state.contents());
    head::draw(state, &areas, &mut canvas);
    let below =
        Rect { y: areas.graph.y, height: area.bottom().saturating_sub(areas.graph.y + areas.foot.height), ..area };
    let width = usize::from(area.width);
    let length = match &state.page {
        Page::Table => {
            bars::draw_graph(state.history().points().iter().copied(), areas.graph, &mut canvas);
            list::draw(state, &areas, &mut canvas);
            findings::draw_some(state, areas.findings, &mut canvas);
            0
        }
        Page::Detail(group) => draw_page(&detail::lines(state, group, width), state, below, &mut canvas),
        Page::Findings => draw_page(&findings::lines(state, width), state, below, &mut canvas),
        Page::Help => draw_page(&help::lines(), state, below, &mut canvas),
    };
    head::draw_foot(state, areas.foot, &mut canvas);
    canvas.finish(area);
    length
}

/// Returns the lines that a page of text has on a screen of this height.
pub fn page_height(height: u16) -> usize {
    usize::from(height.saturating_sub(3))
}

/// Draws the lines of a page that it is scrolled to. Returns their number.
fn draw_page(lines: &[Parts], state: &State, area: Rect, canvas: &mut Canvas<'_>) -> usize {
    let first = state.scrolled.min(lines.len().saturating_sub(area.height.into()));
    for (y, line) in (area.y..area.bottom()).zip(lines.iter().skip(first)) {
        canvas.parts(area.x, y, line, area.width);
    }
    lines.len()
}
