//! The part of a report that says where the elapsed time went.

use super::closing::waited_ns;
use super::screen::{CLOSING_TEXT, Report};
use crate::style::{Line, Role, flow};
use systoll_judge::WallTime;

/// Cells of the bar.
const CELLS: usize = 24;
/// Marks of the classes of waits in the bar, the longest first; further ones share the last.
const MARKS: [&str; 4] = ["█", "▓", "▒", "░"];
/// Mark of the time in which the program did not wait.
const RUNNING: &str = "·";
/// Rows of waits that are shown unasked, at most.
const FEW: usize = 2;
/// Least share of the elapsed time, 0 to 1, of a row's waits that are shown unasked.
const LEAST: f64 = 0.1;

impl Report<'_> {
    /// Returns what a program's start searched, opened and read.
    pub(super) fn start(&self) -> Vec<Line> {
        let work = self.sentences().start_work();
        work.map_or_else(Vec::new, |text| self.closing_line("start", Role::Plain, &text))
    }

    /// Returns where the elapsed time went, and the lines of code that waited.
    pub(super) fn wall(&self) -> Vec<Line> {
        let asked = self.options.waits;
        let Some(wall) = self.sentences().wall_time(asked) else { return vec![] };
        let mut lines =
            self.closing_line("wall", Role::Plain, &format!("{}  {}", bar(wall), self.sentences().wall_classes(wall)));
        let is_shown = |ns: u64| asked || ns as f64 >= LEAST * wall.wall_ns as f64;
        let shown = wall.parts.iter().filter(|part| is_shown(part.ns)).take(if asked { usize::MAX } else { FEW });
        for part in shown {
            let Some(row) = self.sentences().wall_row(part) else { continue };
            let mut first = Line::of(Role::Plain, "");
            first.pad_to(CLOSING_TEXT);
            let mut name = Line::default();
            name.push_name(Role::Name, row.syscall.to_string());
            let told = Line::of(Role::Plain, self.sentences().wall_part(wall, part));
            let caller = part.line.and_then(|line| self.waiting_line(row, line));
            let caller = caller.unwrap_or_else(|| self.spending_caller(part.row, row, waited_ns));
            let segments = vec![name, told, caller];
            lines.extend(flow(first, segments, 3, CLOSING_TEXT, self.style.columns()));
        }
        lines
    }
}

/// Draws the shares of the classes of waits, and of the rest.
fn bar(wall: &WallTime) -> String {
    let cells = |ns: u64| (ns as f64 / wall.wall_ns.max(1) as f64 * CELLS as f64).round() as usize;
    let mut bar = String::new();
    let mut left = CELLS;
    for (at, (_, ns)) in wall.by_class().into_iter().enumerate() {
        let drawn = cells(ns).min(left);
        left -= drawn;
        bar.push_str(&MARKS.get(at).unwrap_or(&"░").repeat(drawn));
    }
    bar.push_str(&RUNNING.repeat(left));
    bar
}
