//! Draws the table.

use super::bars::{wait, work};
use super::canvas::Canvas;
use crate::figures::{each, rate, share};
use crate::geometry::{Areas, Column};
use crate::state::{State, first_shown};
use crate::table::{GroupBy, SortBy, TableLine};
use ratatui::layout::Rect;
use systoll_present::{Role, shorten};

/// Draws headings and lines.
pub(super) fn draw(state: &State, areas: &Areas, canvas: &mut Canvas<'_>) {
    let lines = state.lines();
    if areas.headings.height > 0 {
        headings(state, areas, canvas);
    }
    let area = areas.list;
    if lines.is_empty() {
        let text = match (state.shown().span_ns, state.choice.filter.is_empty()) {
            (0, _) => "",
            (_, true) => " no system call has returned yet",
            (_, false) => " nothing has that name: Esc clears the filter",
        };
        canvas.text(area.x, area.y, Role::Faint, text, if area.height > 0 { area.right() } else { 0 });
        return;
    }
    let most = |of: fn(&TableLine) -> u64| lines.iter().map(of).max().unwrap_or(0);
    let whole = (most(|line| line.now.toll_ns), most(|line| line.now.waited_ns));
    let selected = state.selection(&lines);
    let first = first_shown(selected, area.height.into(), lines.len());
    let columns = areas.columns();
    for (y, (at, line)) in (area.y..area.bottom()).zip(lines.iter().enumerate().skip(first)) {
        for (column, x, width) in &columns {
            let cell = Rect { x: area.x + x, y, width: *width, height: 1 };
            if cell.x < area.right() {
                figure(state, line, *column, cell, whole, canvas);
            }
        }
        if at == selected && !state.look.is_batch {
            canvas.select(area, y);
        }
    }
}

fn headings(state: &State, areas: &Areas, canvas: &mut Canvas<'_>) {
    let area = areas.headings;
    for (column, x, width) in areas.columns() {
        let sorted = matches!(
            (column, state.choice.sort),
            (Column::Toll, SortBy::Toll)
                | (Column::Calls, SortBy::Calls)
                | (Column::Waited, SortBy::Waited)
                | (Column::Name, SortBy::Name)
        );
        let role = if sorted { Role::Strong } else { Role::Faint };
        let (start, end) = (area.x + x, (area.x + x).saturating_add(width));
        match column {
            Column::Name => {
                let text = match state.choice.group {
                    GroupBy::Row => "call < function < caller",
                    other => other.name(),
                };
                canvas.text(start, area.y, role, text, area.right());
            }
            Column::Bar => {
                let second = bars(start, width).1;
                canvas.text(start + 2, area.y, role, "work", end);
                canvas.text(second, area.y, role, "wait", end);
            }
            _ => canvas.right(start + 1, area.y, role, column.heading(), end),
        }
    }
}

fn figure(state: &State, line: &TableLine, column: Column, cell: Rect, whole: (u64, u64), canvas: &mut Canvas<'_>) {
    let (span, now) = (state.shown().span_ns, &line.now);
    let is_idle = now.calls == 0;
    let role = if is_idle { Role::Faint } else { Role::Plain };
    let about = if line.is_sampled || state.shown().tally.is_estimated { "~" } else { "" };
    let mut right = |role, text: &str| canvas.right(cell.x + 1, cell.y, role, text, cell.right());
    match column {
        Column::Toll => {
            let role = if is_idle { Role::Faint } else { Role::Strong };
            right(role, &format!("{about}{}", share(now.toll_ns, span)));
        }
        Column::Calls => right(role, &rate(now.calls, span)),
        Column::Each => right(role, &each(now.toll_ns, now.calls)),
        Column::Failed if now.failed > 0 => right(Role::Warn, &rate(now.failed, span)),
        Column::Waited if now.waited_ns > 0 => right(role, &share(now.waited_ns, span)),
        Column::Failed | Column::Waited => {}
        Column::Bar => {
            let (width, second) = bars(cell.x, cell.width);
            canvas.text(cell.x + 2, cell.y, Role::Name, &work(now.toll_ns, whole.0, width.into()), second);
            canvas.text(second, cell.y, Role::Faint, &wait(now.waited_ns, whole.1, width.into()), cell.right());
        }
        Column::Name => {
            let parts = name(state, line, is_idle, cell.width.into());
            canvas.parts(cell.x, cell.y, &parts, cell.width);
        }
    }
}

/// Returns a line's name: the mark of a finding or of a remark to consider, then the call and who makes it; shortened to `width`.
fn name(state: &State, line: &TableLine, is_idle: bool, width: usize) -> Vec<(Role, String)> {
    let finding = line.finding.and_then(|at| state.shown().judged.reported().nth(at));
    let mut parts = Vec::new();
    let mut room = width;
    if let Some((number, finding)) = finding {
        let cause =
            finding.cause.as_ref().map_or_else(|| finding.kind.name().to_owned(), |id| systoll_present::clean(id));
        let at = number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        let mark = if width >= 60 { format!("[{at} {cause}] ") } else { format!("[{at}] ") };
        room = room.saturating_sub(mark.chars().count());
        parts.push((if number.is_some() { Role::Bad } else { Role::Warn }, mark));
    }
    let mut names = line.group.names();
    let has_function = names.len() > 2;
    let programs = programs(state);
    if programs > 1 && !matches!(state.choice.group, GroupBy::Process | GroupBy::Call | GroupBy::Api) {
        names.extend(line.keys.first().map(|key| format!("({})", systoll_present::clean(&key.program))));
    }
    let length = |names: &[String]| names.iter().map(|name| name.chars().count() + 3).sum::<usize>();
    if has_function && length(&names) > room + 3 {
        // The public function is left out: the caller tells more.
        names.remove(1);
    }
    let last = names.len().saturating_sub(1);
    for (at, name) in names.iter().enumerate() {
        let role = match at {
            _ if is_idle => Role::Faint,
            0 => Role::Name,
            _ => Role::Plain,
        };
        let separator = if at == 0 {
            ""
        } else if name.starts_with('(') {
            " "
        } else {
            " < "
        };
        // The parts behind this one get their share of the room.
        let share = if at == last { room } else { room.saturating_sub(4 * (last - at)) };
        let share = share.saturating_sub(separator.len()).max(1);
        // For a script's line the place tells more than the function.
        let name = if name.chars().count() > share { name.split(" in ").next().unwrap_or(name) } else { name };
        let text = shorten(name, share);
        room = room.saturating_sub(separator.len() + text.chars().count());
        parts.push((Role::Faint, separator.to_owned()));
        parts.push((role, text));
    }
    parts
}

/// Returns the width of each of two bars in a cell, and where the second begins. Two columns before them and one between
/// them are blank.
fn bars(x: u16, width: u16) -> (u16, u16) {
    let each = width.saturating_sub(3) / 2;
    (each, x + 3 + each)
}

/// Returns the number of programs that have rows.
fn programs(state: &State) -> usize {
    let rows = state.shown().tally.rows.keys();
    rows.map(|key| &key.program).collect::<std::collections::HashSet<_>>().len()
}
