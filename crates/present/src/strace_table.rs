//! `-c`: the table of `strace -c`, column for column.

use crate::style::{Line, Role, Style};
use crate::text::clean;
use crate::units::{calls, ns};
use std::cmp::Reverse;
use std::io;
use systoll_model::{Counts, Recording, SyscallTotal};

/// The order of the table's rows, largest first but for names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableSort {
    /// Time paid.
    #[default]
    Time,
    /// Time paid a call.
    Average,
    /// The slowest call.
    Longest,
    /// Calls.
    Calls,
    /// Failed calls.
    Errors,
    /// The system call's name, from A to Z.
    Name,
    /// By number: no order of ours.
    Nothing,
}

impl TableSort {
    /// Its name on the command line, as `strace -S` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Average => "avg-time",
            Self::Longest => "max-time",
            Self::Calls => "calls",
            Self::Errors => "errors",
            Self::Name => "name",
            Self::Nothing => "nothing",
        }
    }

    /// The order with this name, or with another spelling of it that strace takes.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "time" | "time-percent" | "time_percent" | "total-time" | "total_time" => Self::Time,
            "avg-time" | "avg_time" => Self::Average,
            "max-time" | "max_time" | "longest" => Self::Longest,
            "calls" | "count" => Self::Calls,
            "errors" | "error" => Self::Errors,
            "name" | "syscall" | "syscall-name" | "syscall_name" => Self::Name,
            "nothing" | "none" => Self::Nothing,
            _ => return None,
        })
    }
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableColumn {
    /// Share of the time of all.
    Share,
    /// Time, in seconds.
    Total,
    /// Time a call, in µs.
    Average,
    /// The slowest call, in seconds: elapsed, waiting and the watching included.
    Longest,
    /// Calls.
    Calls,
    /// Failed calls.
    Errors,
    /// The system call.
    Name,
}

impl TableColumn {
    /// The columns that `strace -c` has.
    pub const USUAL: [Self; 6] = [Self::Share, Self::Total, Self::Average, Self::Calls, Self::Errors, Self::Name];

    /// The column with this name, or with another spelling of it that `strace -U` takes.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "time-percent" | "time_percent" | "time" => Self::Share,
            "total-time" | "total_time" => Self::Total,
            "avg-time" | "avg_time" => Self::Average,
            "max-time" | "max_time" | "longest" => Self::Longest,
            "calls" | "count" => Self::Calls,
            "errors" | "error" => Self::Errors,
            "name" | "syscall" | "syscall-name" | "syscall_name" => Self::Name,
            _ => return None,
        })
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Share => "% time",
            Self::Total => "seconds",
            Self::Average => "usecs/call",
            Self::Longest => "longest",
            Self::Calls => "calls",
            Self::Errors => "errors",
            Self::Name => "syscall",
        }
    }

    /// strace's width; the column grows where a figure needs it.
    fn width(self) -> usize {
        match self {
            Self::Share => 6,
            Self::Total | Self::Average | Self::Longest => 11,
            Self::Calls | Self::Errors => 9,
            Self::Name => 16,
        }
    }
}

/// How the table is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// The order of its rows.
    pub sort: TableSort,
    /// Its columns; the name comes last where it isn't among them.
    pub columns: Vec<TableColumn>,
    /// Elapsed time, waiting included, rather than time paid: `strace -w`.
    pub wall: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { sort: TableSort::default(), columns: TableColumn::USUAL.to_vec(), wall: false }
    }
}

/// Writes the table of `strace -c`: `% time`, `seconds`, `usecs/call`, `calls`, `errors`,
/// `syscall`, then the total. `seconds` is the toll (what the calling threads paid, waiting
/// excluded), `usecs/call` has three decimals because a call costs about 0.1 µs; both are `?`
/// where it is not known. Calls that never returned (`exit_group`) aren't listed, as strace
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
    for note in notes(rec, options) {
        for line in crate::text::wrap(&format!("systoll: {note}"), style.columns()) {
            writeln!(w, "{}", style.paint(Role::Warn, &line))?;
        }
    }
    let table = StraceTable::new(rec, options);
    let mut totals = rec.by_syscall();
    totals.retain(|t| t.counts.calls > 0);
    table.sort(&mut totals, options.sort);
    let rows: Vec<Vec<String>> = totals.iter().map(|t| table.cells(&t.counts, &t.syscall.to_string())).collect();
    let mut sum = table.cells(&rec.total(), "total");
    if let Some(share) = table.columns.iter().position(|c| *c == TableColumn::Share).and_then(|at| sum.get_mut(at)) {
        *share = format!("{:.2}", if table.whole > 0 { 100.0 } else { 0.0 });
    }
    let widths: Vec<usize> = (0..table.columns.len()).map(|at| table.width(at, rows.iter().chain([&sum]))).collect();
    let headings: Vec<String> = table.columns.iter().map(|c| c.heading().to_owned()).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    writeln!(w, "{}", table.line(&headings, &widths, Role::Strong).render(style))?;
    writeln!(w, "{}", table.line(&rule, &widths, Role::Faint).render(style))?;
    for row in &rows {
        writeln!(w, "{}", table.line(row, &widths, Role::Plain).render(style))?;
    }
    writeln!(w, "{}", table.line(&rule, &widths, Role::Faint).render(style))?;
    writeln!(w, "{}", table.line(&sum, &widths, Role::Strong).render(style))
}

struct StraceTable {
    columns: Vec<TableColumn>,
    wall: bool,
    /// Time of all calls, ns.
    whole: u64,
}

impl StraceTable {
    fn new(rec: &Recording, options: &TableOptions) -> Self {
        let mut columns = options.columns.clone();
        if !columns.contains(&TableColumn::Name) {
            columns.push(TableColumn::Name);
        }
        let mut table = Self { columns, wall: options.wall, whole: 0 };
        table.whole = table.time(&rec.total()).unwrap_or(0);
        table
    }

    fn time(&self, counts: &Counts) -> Option<u64> {
        if self.wall { Some(counts.elapsed_ns) } else { counts.toll_ns }
    }

    fn sort(&self, totals: &mut [SyscallTotal], by: TableSort) {
        let name = |t: &SyscallTotal| t.syscall.to_string();
        let time = |t: &SyscallTotal| Reverse((self.time(&t.counts), t.counts.calls));
        match by {
            TableSort::Time => totals.sort_by_key(|t| (time(t), name(t))),
            TableSort::Average => totals.sort_by(|a, b| {
                let average =
                    |t: &SyscallTotal| self.time(&t.counts).map_or(-1.0, |ns| ns as f64 / t.counts.calls as f64);
                average(b).total_cmp(&average(a)).then_with(|| name(a).cmp(&name(b)))
            }),
            TableSort::Longest => totals.sort_by_key(|t| (Reverse(t.counts.max_ns), name(t))),
            TableSort::Calls => totals.sort_by_key(|t| (Reverse(t.counts.calls), time(t), name(t))),
            TableSort::Errors => totals.sort_by_key(|t| (Reverse(t.counts.failed()), time(t), name(t))),
            TableSort::Name => totals.sort_by_key(name),
            TableSort::Nothing => totals.sort_by_key(|t| t.syscall),
        }
    }

    fn cells(&self, counts: &Counts, name: &str) -> Vec<String> {
        let time = self.time(counts);
        let cell = |column: &TableColumn| match column {
            TableColumn::Share => {
                let share = |ns: u64| if self.whole > 0 { ns as f64 * 100.0 / self.whole as f64 } else { 0.0 };
                time.map_or("?".into(), |ns| format!("{:.2}", share(ns)))
            }
            TableColumn::Total => seconds(time),
            TableColumn::Average => usecs_per_call(time, counts.calls),
            TableColumn::Longest => seconds(Some(counts.max_ns)),
            TableColumn::Calls => counts.calls.to_string(),
            TableColumn::Errors => match counts.failed() {
                0 => String::new(),
                errors => errors.to_string(),
            },
            TableColumn::Name => name.to_owned(),
        };
        self.columns.iter().map(cell).collect()
    }

    /// A name at the end needs no more than its heading's rule, wherever else it stands all of it.
    fn width<'a>(&self, at: usize, rows: impl Iterator<Item = &'a Vec<String>>) -> usize {
        let least = self.columns.get(at).map_or(0, |c| c.width());
        let last = at + 1 == self.columns.len() && self.columns.get(at) == Some(&TableColumn::Name);
        let widest = rows.filter_map(|r| r.get(at)).map(String::len).max().unwrap_or(0);
        if last { least } else { least.max(widest) }
    }

    fn line(&self, cells: &[String], widths: &[usize], role: Role) -> Line {
        let mut line = Line::default();
        for (i, ((cell, width), column)) in cells.iter().zip(widths).zip(&self.columns).enumerate() {
            if i > 0 {
                line.push(Role::Plain, " ");
            }
            // Figures stand right, names stand left.
            let text = if *column == TableColumn::Name { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            line.push(role, text);
        }
        line
    }
}

fn seconds(time: Option<u64>) -> String {
    time.map_or("?".into(), |ns| format!("{:.6}", ns as f64 / 1e9))
}

fn usecs_per_call(time: Option<u64>, calls: u64) -> String {
    match time {
        Some(ns) if calls > 0 => format!("{:.3}", ns as f64 / 1e3 / calls as f64),
        Some(_) => "0.000".into(),
        None => "?".into(),
    }
}

fn notes(rec: &Recording, options: &TableOptions) -> Vec<String> {
    let mut notes = vec![];
    if options.wall && rec.calls() > 0 {
        let each = rec.header.observer_wall_ns_per_call;
        let own = if each > 0.0 { format!(", some {} of it a call our own", ns(each)) } else { String::new() };
        notes.push(format!("counts are exact, times are elapsed, waiting and the watching included{own}"));
    } else if rec.header.toll_estimated && rec.calls() > 0 {
        let crossing = rec.prices.crossing_ns();
        let at_least = if crossing > 0.0 { format!(" (a crossing costs {})", ns(crossing)) } else { String::new() };
        notes.push(format!("counts are exact, times are calls x this box's price of each{at_least}"));
    }
    if !options.wall && rec.total().toll_ns.is_none() && rec.calls() > 0 {
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
