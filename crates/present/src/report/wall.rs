//! The part of a report that says where the elapsed time went.

use super::closing::waited_ns;
use super::screen::{CLOSING_TEXT, Report};
use crate::style::{Line, Role, Style, flow};
use crate::text::{sentence, shell_words};
use std::cmp::Reverse;
use systoll_judge::{Doubt, Finding, WaitClass, WallPart, WallTime};
use systoll_model::Sysno;

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

/// A place in the code whose calls waited.
struct WaitingPlace {
    syscall: Sysno,
    /// The waits of all its rows.
    part: WallPart,
    caller: Line,
    /// The caller's text, by which places are alike.
    text: String,
}

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
        let places = self.waiting_places(wall);
        let shown = places.iter().filter(|place| is_shown(place.part.ns)).take(if asked { usize::MAX } else { FEW });
        let shown: Vec<&WaitingPlace> = shown.collect();
        for (at, place) in shown.iter().enumerate() {
            let mut first = Line::of(Role::Plain, "");
            first.pad_to(CLOSING_TEXT);
            let mut name = Line::default();
            name.push_name(Role::Name, place.syscall.to_string());
            let told = Line::of(Role::Plain, self.sentences().wall_part(wall, &place.part));
            let segments = vec![name, told, place.caller.clone()];
            lines.extend(flow(first, segments, 3, CLOSING_TEXT, self.style.columns()));
            // What to do about one row's waits stands below the last of its lines.
            let is_last = shown.iter().skip(at + 1).all(|later| later.part.row != place.part.row);
            lines.extend(is_last.then(|| self.of_pace(place)).into_iter().flatten());
        }
        lines
    }

    /// Returns what to do about waits that nothing but the clock ends, unless they are a finding's, and the experiment that
    /// shows what it wins.
    fn of_pace(&self, place: &WaitingPlace) -> Vec<Line> {
        let is_it = |f: &&Finding| {
            f.doubt == Some(Doubt::Pace) && f.rows.contains(&place.part.row) && place.part.class == WaitClass::Clock
        };
        let Some(remark) = self.judgement.also.iter().find(is_it) else { return vec![] };
        let mut words = remark.cures.first().map_or_else(String::new, |cure| sentence(&cure.how));
        if remark.prove.get(1).is_some_and(|command| command == "prove") {
            words.push_str(&format!("; what it wins: {}", shell_words(&remark.prove)));
        }
        self.labelled(CLOSING_TEXT, "", CLOSING_TEXT, Role::Good, &words)
    }

    /// Returns the places that waited, longest first. Rows that would be printed alike, as those of one line that calls a
    /// library in several ways, are one place.
    fn waiting_places(&self, wall: &WallTime) -> Vec<WaitingPlace> {
        let plain = Style { color: false, width: 0, whole_names: false };
        let mut places: Vec<WaitingPlace> = vec![];
        for part in &wall.parts {
            let Some(row) = self.sentences().wall_row(part) else { continue };
            let caller = part.line.and_then(|line| self.waiting_line(row, line));
            let caller = caller.unwrap_or_else(|| match part.unsampled {
                true => self.api_link(row).unwrap_or_default(),
                false => self.spending_caller(part.row, row, waited_ns),
            });
            let text = caller.render(&plain);
            let alike = |of: &&mut WaitingPlace| {
                of.syscall == row.syscall && of.part.class == part.class && of.text == text && !text.is_empty()
            };
            if let Some(WaitingPlace { part: sum, .. }) = places.iter_mut().find(alike) {
                sum.ns = sum.ns.saturating_add(part.ns);
                sum.calls = sum.calls.saturating_add(part.calls);
                sum.longest_ns = sum.longest_ns.max(part.longest_ns);
                (sum.corrected, sum.shared) = (sum.corrected | part.corrected, sum.shared | part.shared);
            } else {
                places.push(WaitingPlace { syscall: row.syscall, part: part.clone(), caller, text });
            }
        }
        places.sort_by_key(|place| Reverse(place.part.ns));
        places
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
