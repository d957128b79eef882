//! `-c`: the table of `strace -c`, column for column.

use crate::style::{Line, Role, Style};
use crate::text::clean;
use crate::units::{calls, ns};
use std::cmp::Reverse;
use std::io;
use systoll_model::{Recording, SyscallTotal};

/// The order of the table's rows, largest first but for names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableSort {
    /// Time paid.
    #[default]
    Time,
    /// Calls.
    Calls,
    /// Failed calls.
    Errors,
    /// The system call's name, from A to Z.
    Name,
}

impl TableSort {
    /// Its name on the command line, as `strace -S` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Calls => "calls",
            Self::Errors => "errors",
            Self::Name => "name",
        }
    }

    /// The order with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Time, Self::Calls, Self::Errors, Self::Name].into_iter().find(|s| s.name() == name)
    }
}

/// How the table is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// The order of its rows.
    pub sort: TableSort,
}

/// The cells of one row of the table; a blank one is empty.
type Cells = [String; 6];

const HEADINGS: [&str; 6] = ["% time", "seconds", "usecs/call", "calls", "errors", "syscall"];

/// strace's column widths; a column grows where a figure needs it.
const WIDTHS: [usize; 6] = [6, 11, 11, 9, 9, 16];

/// Writes the table of `strace -c`: `% time`, `seconds`, `usecs/call`, `calls`, `errors`,
/// `syscall`, then the total. `seconds` is the toll (what the calling threads paid, waiting
/// excluded), `usecs/call` has three decimals because a call costs about 0.1 µs; both are `?`
/// where nobody could tell. Calls that never returned (`exit_group`) aren't listed, as strace
/// doesn't. What can't be vouched for comes before the table, so that its last line is the total.
///
/// # Errors
/// Those of `w`.
pub fn write_strace_table(
    w: &mut dyn io::Write,
    rec: &Recording,
    options: &TableOptions,
    style: &Style,
) -> io::Result<()> {
    for note in notes(rec) {
        for line in crate::text::wrap(&format!("systoll: {note}"), style.columns()) {
            writeln!(w, "{}", style.paint(Role::Warn, &line))?;
        }
    }
    let mut totals = rec.by_syscall();
    totals.retain(|t| t.counts.calls > 0);
    sort(&mut totals, options.sort);
    let total = rec.total();
    let whole = total.toll_ns.unwrap_or(0);
    let rows: Vec<Cells> = totals.iter().map(|t| cells(t, whole)).collect();
    let sum = total_cells(rec, whole);
    let mut widths = WIDTHS;
    for row in rows.iter().chain([&sum]) {
        for (width, cell) in widths.iter_mut().zip(row).take(5) {
            *width = (*width).max(cell.len());
        }
    }
    let headings = HEADINGS.map(str::to_owned);
    writeln!(w, "{}", line(&headings, &widths, Role::Strong).render(style))?;
    let rule = widths.map(|width| "-".repeat(width));
    writeln!(w, "{}", line(&rule, &widths, Role::Faint).render(style))?;
    for row in &rows {
        writeln!(w, "{}", line(row, &widths, Role::Plain).render(style))?;
    }
    writeln!(w, "{}", line(&rule, &widths, Role::Faint).render(style))?;
    writeln!(w, "{}", line(&sum, &widths, Role::Strong).render(style))
}

fn sort(totals: &mut [SyscallTotal], by: TableSort) {
    let name = |t: &SyscallTotal| t.syscall.to_string();
    let time = |t: &SyscallTotal| Reverse((t.counts.toll_ns, t.counts.calls));
    match by {
        TableSort::Time => totals.sort_by_key(|t| (time(t), name(t))),
        TableSort::Calls => totals.sort_by_key(|t| (Reverse(t.counts.calls), time(t), name(t))),
        TableSort::Errors => totals.sort_by_key(|t| (Reverse(t.counts.failed()), time(t), name(t))),
        TableSort::Name => totals.sort_by_key(name),
    }
}

fn cells(t: &SyscallTotal, whole: u64) -> Cells {
    let toll = t.counts.toll_ns;
    let share = toll.map(|ns| if whole > 0 { ns as f64 * 100.0 / whole as f64 } else { 0.0 });
    let errors = t.counts.failed();
    [
        share.map_or("?".into(), |s| format!("{s:.2}")),
        seconds(toll),
        usecs_per_call(toll, t.counts.calls),
        t.counts.calls.to_string(),
        if errors > 0 { errors.to_string() } else { String::new() },
        t.syscall.to_string(),
    ]
}

fn total_cells(rec: &Recording, whole: u64) -> Cells {
    let total = rec.total();
    let errors = total.failed();
    [
        format!("{:.2}", if whole > 0 { 100.0 } else { 0.0 }),
        seconds(total.toll_ns),
        usecs_per_call(total.toll_ns, total.calls),
        total.calls.to_string(),
        if errors > 0 { errors.to_string() } else { String::new() },
        "total".into(),
    ]
}

fn seconds(toll: Option<u64>) -> String {
    toll.map_or("?".into(), |ns| format!("{:.6}", ns as f64 / 1e9))
}

fn usecs_per_call(toll: Option<u64>, calls: u64) -> String {
    match toll {
        Some(ns) if calls > 0 => format!("{:.3}", ns as f64 / 1e3 / calls as f64),
        Some(_) => "0.000".into(),
        None => "?".into(),
    }
}

fn line(cells: &Cells, widths: &[usize; 6], role: Role) -> Line {
    let mut line = Line::default();
    for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if i > 0 {
            line.push(Role::Plain, " ");
        }
        // Figures stand right, the name at the end stands left.
        let text = if i < 5 { format!("{cell:>width$}") } else { cell.clone() };
        line.push(role, text);
    }
    line
}

fn notes(rec: &Recording) -> Vec<String> {
    let mut notes = vec![];
    if rec.header.toll_estimated && rec.calls() > 0 {
        let crossing = rec.prices.crossing_ns();
        let at_least = if crossing > 0.0 { format!(" (a crossing costs {})", ns(crossing)) } else { String::new() };
        notes.push(format!("counts are exact, times are calls x this box's price of each{at_least}"));
    }
    if rec.total().toll_ns.is_none() && rec.calls() > 0 {
        notes.push("what the calls cost is unknown".into());
    }
    if !rec.exact() {
        let exact = "counts are exact, ";
        if let Some(note) = notes.iter_mut().find(|n| n.starts_with(exact)) {
            note.replace_range(..exact.len(), "");
        }
        let lost = match rec.header.lost {
            0 => String::new(),
            n => format!(": {} lost", calls(n)),
        };
        notes.push(format!("counts are not exact{lost}"));
        notes.extend(rec.problems.iter().filter(|p| p.kind.spoils_exactness()).map(|p| clean(&p.text)));
    }
    notes
}
