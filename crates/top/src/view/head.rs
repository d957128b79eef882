//! Draws the first lines of the screen, with the watched command and its figures for each second,
//! and the last line, with the keys.

use super::canvas::Canvas;
use crate::figures::{percent, rate};
use crate::geometry::Areas;
use crate::state::{Page, State};
use ratatui::layout::Rect;
use systoll_present::{Role, shell_words, shorten, units};

/// Draws the first lines.
pub(super) fn draw(state: &State, areas: &Areas, canvas: &mut Canvas<'_>) {
    let area = areas.head;
    if area.height == 0 {
        return;
    }
    let shown = state.shown();
    let tally = &shown.tally;
    let alive = tally.processes.values().filter(|p| p.is_alive).fold(0u64, |n, p| n.saturating_add(p.instances));
    let mut right = vec![
        (Role::Faint, format!("{}  ", units::counted(alive, "process", "processes"))),
        (Role::Plain, format!("watched {}", units::time(tally.at_ns))),
    ];
    if !tally.is_exact && shown.span_ns > 0 {
        right.insert(0, (Role::Warn, "not exact (f)  ".into()));
    }
    if state.has_ended {
        right.insert(0, (Role::Warn, "ended  ".into()));
    } else if state.is_paused() {
        right.insert(0, (Role::Warn, "paused  ".into()));
    }
    let length: usize = right.iter().map(|(_, text)| text.chars().count()).sum();
    let room = usize::from(area.width).saturating_sub(length + 4);
    let command: Vec<&String> = tally.command.iter().filter(|word| !word.is_empty()).collect();
    let what = [
        (Role::Plain, " ".to_owned()),
        (Role::Strong, "systoll  ".into()),
        (Role::Strong, shorten(&shell_words(&command), room.saturating_sub(10))),
    ];
    canvas.parts(area.x, area.y, &what, area.width);
    if room > 12 {
        let x = area.right().saturating_sub(u16::try_from(length + 1).unwrap_or(u16::MAX));
        canvas.parts(x, area.y, &right, area.width);
    }
    if area.height > 1 {
        canvas.parts(area.x, area.y + 1, &a_second(state), area.width);
    }
}

/// Returns the figures for each second.
fn a_second(state: &State) -> Vec<(Role, String)> {
    let shown = state.shown();
    if shown.span_ns == 0 {
        return vec![(Role::Faint, " waiting for the first figures".into())];
    }
    let of = |ns: u64| percent(ns as f64 / shown.span_ns as f64);
    let about = if shown.tally.is_estimated { "about " } else { "" };
    vec![
        (Role::Strong, format!(" {} calls/s", rate(shown.total.calls, shown.span_ns))),
        (Role::Plain, " take ".into()),
        (Role::Strong, format!("{about}{} of a CPU", of(shown.total.toll_ns))),
        (Role::Plain, format!(", of {} in all", of(shown.cpu_ns))),
        (Role::Plain, format!("   waited {}", of(shown.total.waited_ns))),
    ]
}

/// Draws the last line.
pub(super) fn draw_foot(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    if area.height == 0 {
        return;
    }
    let space = if area.width >= 90 { " " } else { "" };
    let key = |key: &str, does: &str| [(Role::Strong, format!(" {key}")), (Role::Plain, format!(" {does}{space}"))];
    let parts: Vec<(Role, String)> = if state.is_typing {
        let text = systoll_present::clean(&state.choice.filter);
        vec![(Role::Strong, format!(" filter: {text}_")), (Role::Faint, "   Enter keeps it, Esc clears it".into())]
    } else {
        let by = format!("by {}", state.choice.group.name());
        let sorted = format!("sort {}", state.choice.sort.name());
        let filter = if state.choice.filter.is_empty() {
            "filter".to_owned()
        } else {
            format!("filter {}", shorten(&systoll_present::clean(&state.choice.filter), 16))
        };
        let pause = if state.is_paused() { "go on" } else { "pause" };
        let leave = key("q", "leave");
        match state.page {
            Page::Table => [
                leave,
                key("?", "help"),
                key("/", &filter),
                key("g", &by),
                key("s", &sorted),
                key("p", pause),
                key("Enter", "more"),
                key("f", "findings"),
            ]
            .concat(),
            _ => [leave, key("?", "help"), key("Esc", "back"), key("p", pause), key("PgDn", "on")].concat(),
        }
    };
    canvas.parts(area.x, area.y, &parts, area.width);
}
