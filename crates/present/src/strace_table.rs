//! Writes the table of `strace -c`, column for column (option `-c`).

mod columns;

pub use columns::{TableColumn, TableSort};

use crate::narrowing::Narrowing;
use crate::style::{Line, Role, Style};
use crate::text::clean;
use crate::units::{calls, grouped, ns};
use std::io;
use systoll_model::{Counts, Recording, SyscallTotal};

/// Options of `strace -c`'s table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// Order of the table's rows.
    pub sort: TableSort,
    /// Columns of the table. The name is added at the end if it is missing.
    pub columns: Vec<TableColumn>,
    /// True for elapsed time, including waits (`strace -w`); false for time paid.
    pub wall: bool,
    /// Time subtracted from each call's elapsed time, ns (`strace -O`).
    pub overhead_ns: u64,
    /// The calls to which the recording was narrowed down.
    pub only: Option<Narrowing>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            sort: TableSort::default(),
            columns: TableColumn::USUAL.to_vec(),
            wall: false,
            overhead_ns: 0,
            only: None,
        }
    }
}

/// Writes the table of `strace -c`: `% time`, `seconds`, `usecs/call`, `calls`, `errors`,
/// `syscall`, then the total. `seconds` is the toll: time the calling threads paid, without
/// waiting. `usecs/call` has three decimals because a call costs about 0.1 µs. Both are `?` if they
/// are not known. As in strace, calls that never returned (`exit_group`) are not listed. Problems
/// come before the table: its last line is the total.
///
/// # Errors
/// The errors of `w`.
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
    overhead_ns: u64,
    /// Time of all calls together, ns.
    whole: u64,
}

impl StraceTable {
    fn new(rec: &Recording, options: &TableOptions) -> Self {
        let mut columns = options.columns.clone();
        if !columns.contains(&TableColumn::Name) {
            columns.push(TableColumn::Name);
        }
        let mut table = Self { columns, wall: options.wall, overhead_ns: options.overhead_ns, whole: 0 };
        table.whole = table.time(&rec.total()).unwrap_or(0);
        table
    }

    fn time(&self, counts: &Counts) -> Option<u64> {
        if self.wall { self.elapsed(counts) } else { counts.toll_ns }
    }

    /// Returns the elapsed time of the calls that were timed; `None` if none was.
    fn elapsed(&self, counts: &Counts) -> Option<u64> {
        let timed = timed(counts);
        (timed > 0).then(|| counts.elapsed_ns.saturating_sub(self.overhead_ns.saturating_mul(timed)))
    }

    fn shortest(&self, counts: &Counts) -> Option<u64> {
        counts.min_ns.map(|ns| ns.saturating_sub(self.overhead_ns))
    }

    fn longest(&self, counts: &Counts) -> Option<u64> {
        (timed(counts) > 0).then(|| counts.max_ns.saturating_sub(self.overhead_ns))
    }

    /// Returns the average time of a call, ns.
    fn average(&self, counts: &Counts) -> Option<f64> {
        if self.wall { self.elapsed_average(counts) } else { per_call(counts.toll_ns, counts.calls) }
    }

    fn elapsed_average(&self, counts: &Counts) -> Option<f64> {
        per_call(self.elapsed(counts), timed(counts))
    }

    fn sort(&self, totals: &mut [SyscallTotal], sort: TableSort) {
        let TableSort::By(column) = sort else { return totals.sort_by_key(|t| t.syscall) };
        let figure = |t: &SyscallTotal| column.figure(self, &t.counts).key();
        // Rows with equal figures are ordered by time, then by calls; names are ordered from A to
        // Z.
        let time = |t: &SyscallTotal| (column != TableColumn::Name).then(|| (self.time(&t.counts), t.counts.calls));
        totals.sort_by_cached_key(|t| t.syscall.to_string());
        totals.sort_by(|a, b| figure(b).total_cmp(&figure(a)).then_with(|| time(b).cmp(&time(a))));
    }

    fn cells(&self, counts: &Counts, name: &str) -> Vec<String> {
        let cell = |column: &TableColumn| column.figure(self, counts).text(self.whole, name);
        self.columns.iter().map(cell).collect()
    }

    /// Returns a column's width. Names in the last column may exceed the rule below its heading;
    /// elsewhere they need their full width.
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
            // Figures are aligned right, names left.
            let text = if *column == TableColumn::Name { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            line.push(role, text);
        }
        line
    }
}

fn per_call(ns: Option<u64>, calls: u64) -> Option<f64> {
    ns.map(|ns| if calls > 0 { ns as f64 / calls as f64 } else { 0.0 })
}

/// Returns the number of calls whose elapsed time was measured. In a file that lost its histograms,
/// the elapsed time is that of all calls.
fn timed(counts: &Counts) -> u64 {
    match counts.histogram.calls() {
        0 if counts.elapsed_ns > 0 => counts.calls,
        timed => timed.min(counts.calls),
    }
}

fn notes(rec: &Recording, options: &TableOptions) -> Vec<String> {
    let mut notes = vec![];
    notes.extend(
        options.only.as_ref().filter(|only| !only.made_as.is_empty()).map(|only| format!("only {}", only.text())),
    );
    let none = options.only.as_ref().filter(|only| rec.calls() == 0 && only.others > 0);
    notes.extend(none.map(Narrowing::none_seen));
    let elapsed = options.columns.iter().any(|c| c.is_elapsed());
    if options.wall && rec.calls() > 0 {
        notes.push(format!("counts are exact, times are {}", what_elapsed_is(rec, options)));
    } else if rec.header.toll_estimated && rec.calls() > 0 {
        let crossing = rec.prices.crossing_ns();
        let at_least = if crossing > 0.0 { format!(" (a crossing costs {})", ns(crossing)) } else { String::new() };
        let times = match rec.header.backend.estimates_waits_only() {
            true => "times are the kernel's own; of calls that wait, calls x this box's price of each",
            false => "times are calls x this box's price of each",
        };
        notes.push(format!("counts are exact, {times}{at_least}"));
    }
    if elapsed && !options.wall && rec.calls() > 0 {
        notes.push(format!("shortest, longest and wall are {}", what_elapsed_is(rec, options)));
    }
    let (all, timed) = (rec.calls(), rec.by_syscall().iter().fold(0u64, |sum, t| sum.saturating_add(timed(&t.counts))));
    if (options.wall || elapsed) && timed < all {
        notes.push(format!("elapsed times are those of {} of {}, which were timed", grouped(timed), calls(all)));
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

fn what_elapsed_is(rec: &Recording, options: &TableOptions) -> String {
    if options.overhead_ns > 0 {
        return format!("elapsed, waiting included, less {} a call", ns(options.overhead_ns as f64));
    }
    let each = rec.header.observer_wall_ns_per_call;
    let own = if each > 0.0 { format!(", some {} of it a call our own", ns(each)) } else { String::new() };
    format!("elapsed, waiting and the watching included{own}")
}
