//! Reads tables of counts: of `strace -c` and `-C`, of `ltrace -S -c`, of `perf trace -s`.

use super::names::{named, named_by_ltrace};
use std::collections::BTreeMap;
use systoll_model::{Counts, Errno, Sysno};

/// A line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SummaryRow {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    /// Processor time in the calls, ns, or elapsed time if the tracer was told to count that.
    pub(crate) ns: u64,
}

/// One table of a trace.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The program and the thread that the table counts, if it names them.
    pub(crate) of: Option<(String, u32)>,
    lines: BTreeMap<String, SummaryRow>,
}

impl Table {
    /// Returns the lines of the table.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &SummaryRow> {
        self.lines.values()
    }

    /// Returns the number of calls in the table.
    pub(crate) fn calls(&self) -> u64 {
        self.lines().fold(0, |sum, line| sum.saturating_add(line.calls))
    }
}

/// The tables of a trace.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    columns: Vec<Column>,
    /// True while a table is being read.
    reading: bool,
    tables: Vec<Table>,
    /// The program and thread of the next table, if a line has named them.
    next_of: Option<(String, u32)>,
    /// Lines with a name and a number only: a table of such lines has no header.
    bare: Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Seconds,
    /// Times in milliseconds, as perf writes them.
    Milliseconds,
    Calls,
    Errors,
    Name,
    /// A library function, or a system call as `SYS_read`, as ltrace writes them.
    Function,
    Other,
}

/// Mean time of a call that may wait, ns, from which on it waits, so that its time is not its cost.
const WAITED_NS: u64 = 200_000;

/// Largest number of lines kept of a table; there are fewer calls.
const MOST: usize = 2_048;
/// Length of the longest line that names the next table's program, bytes.
const LONGEST_HEAD: usize = 120;
/// Least number of different calls in a table without a header.
const FEWEST_BARE: usize = 2;
/// Largest number of tables kept apart; further ones are added to the last.
const MOST_TABLES: usize = 64;

impl Summary {
    /// Takes in a line. Returns true if it is one of a table.
    pub(crate) fn line(&mut self, line: &[u8]) -> bool {
        if let Some(line) = of_bpftrace(line) {
            self.add(line);
            return true;
        }
        if line.last() == Some(&b'%')
            && line.len() <= LONGEST_HEAD
            && let Some(of) = std::str::from_utf8(line).ok().and_then(events_of)
        {
            self.next_of = Some(of);
            return true;
        }
        if self.next_of.is_some() && line.is_empty() {
            return true;
        }
        if !self.reading && !self.columns.contains(&Column::Milliseconds) && !may_be_header(line) {
            return false;
        }
        let text = String::from_utf8_lossy(line.get(..line.len().min(400)).unwrap_or(line));
        if let Some(columns) = header(&text) {
            (self.columns, self.reading) = (columns, true);
            self.begin();
            return true;
        }
        let of_perf = self.columns.contains(&Column::Milliseconds);
        if of_perf && (text.contains(" events, ") || text.trim() == "Summary of events:") {
            return true;
        }
        if !self.reading {
            return false;
        }
        if text.trim_start().starts_with("------") || text.trim().is_empty() || of_perf && text.contains("(msec)") {
            return true;
        }
        let Some(line) = self.row(&text) else {
            self.reading = false;
            return false;
        };
        if line.name == "total" {
            self.reading = false;
        } else if self.columns.contains(&Column::Function) && !line.name.starts_with("SYS_") {
            // A library function is no system call.
        } else {
            self.add(line);
        }
        true
    }

    /// Begins another table, unless the one before has no line yet.
    fn begin(&mut self) {
        let of = self.next_of.take();
        let is_full = self.tables.len() >= MOST_TABLES;
        match self.tables.last_mut() {
            Some(table) if table.lines.is_empty() => table.of = of.or(table.of.take()),
            _ if is_full => {}
            _ => self.tables.push(Table { of, ..Table::default() }),
        }
    }

    fn add(&mut self, line: SummaryRow) {
        if self.tables.is_empty() {
            self.begin();
        }
        let Some(Table { lines, .. }) = self.tables.last_mut() else { return };
        if lines.len() >= MOST && !lines.contains_key(&line.name) {
            return;
        }
        let sum = lines.entry(line.name.clone()).or_insert(SummaryRow { calls: 0, errors: 0, ns: 0, ..line.clone() });
        sum.calls = sum.calls.saturating_add(line.calls);
        sum.errors = sum.errors.saturating_add(line.errors);
        sum.ns = sum.ns.saturating_add(line.ns);
    }

    fn row(&self, text: &str) -> Option<SummaryRow> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let columns: Vec<Column> = match self.columns.len().checked_sub(words.len())? {
            0 => self.columns.clone(),
            // The errors' place is empty if nothing failed.
            1 => self.columns.iter().copied().filter(|c| *c != Column::Errors).collect(),
            _ => return None,
        };
        let mut line = SummaryRow { name: String::new(), calls: 0, errors: 0, ns: 0 };
        for (column, word) in columns.into_iter().zip(words) {
            match column {
                Column::Name | Column::Function => line.name = word.to_owned(),
                Column::Calls => line.calls = word.parse().ok()?,
                Column::Errors => line.errors = word.parse().ok()?,
                Column::Seconds => line.ns = nanoseconds(word, 1e9)?,
                Column::Milliseconds => line.ns = nanoseconds(word, 1e6)?,
                Column::Other => _ = number(word.trim_end_matches('%'))?,
            }
        }
        (!line.name.is_empty()).then_some(line)
    }

    /// Takes in a line that has no other meaning. Returns true if it is a call's name and a count:
    /// `  sigprocmask    223546`, as DTrace and bpftrace print them, or `  223546 sigprocmask`, as
    /// `uniq -c` does.
    pub(crate) fn bare(&mut self, line: &[u8]) -> bool {
        let Some(line) = bare(line) else { return false };
        let lines = &mut self.bare.lines;
        if lines.len() < MOST {
            lines.entry(line.name.clone()).or_insert(line);
        }
        true
    }

    /// Forgets the lines of a table without a header: since calls have returned, they were
    /// something else.
    pub(crate) fn forget_bare(&mut self) {
        self.bare.lines.clear();
    }

    /// Returns the tables that have lines. If there is none, returns the table without a header, if
    /// it has too many lines for chance.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        let with_lines = || self.tables.iter().filter(|table| !table.lines.is_empty());
        let bare = Some(&self.bare).filter(|bare| with_lines().next().is_none() && bare.lines.len() >= FEWEST_BARE);
        with_lines().chain(bare)
    }
}

/// Reads a line of two words, one the name of a call and the other a number.
fn bare(line: &[u8]) -> Option<SummaryRow> {
    let text = std::str::from_utf8(line.get(..line.len().min(100))?).ok()?;
    let mut words = text.split_whitespace();
    let (one, other) = (words.next()?, words.next()?);
    let (name, count) = if one.starts_with(|c: char| c.is_ascii_digit()) { (other, one) } else { (one, other) };
    let is_all = words.next().is_none() && named(name.as_bytes()).is_some();
    is_all.then_some(())?;
    Some(SummaryRow { name: name.to_owned(), calls: count.parse().ok()?, errors: 0, ns: 0 })
}

/// Returns the program and thread of the table that perf writes next: ` sh (4139), 4 events, 1.0%`.
fn events_of(text: &str) -> Option<(String, u32)> {
    let (who, rest) = text.split_once("), ")?;
    let (name, tid) = who.trim().rsplit_once(" (")?;
    rest.contains(" events, ").then_some((name.to_owned(), tid.parse().ok()?))
}

impl SummaryRow {
    /// Returns the line as a row's counts. The errors of failed calls are unknown.
    pub(crate) fn counts(&self) -> Counts {
        let errors = self.errors.min(self.calls);
        let errors = (errors > 0).then_some((Errno::UNKNOWN, errors)).into_iter().collect();
        let mut counts = Counts { calls: self.calls, errors, elapsed_ns: self.ns, ..Counts::default() };
        let each = self.ns.checked_div(self.calls).unwrap_or(0);
        let may_wait = self.syscall().and_then(Sysno::signature).is_none_or(|s| s.waits || s.may_block);
        if may_wait && each >= WAITED_NS {
            counts.waited_ns = Some(self.ns);
        } else if self.ns > 0 {
            // The table's own time is the time of the calls.
            counts.toll_ns = Some(self.ns);
        }
        counts
    }

    /// Returns the system call of the line.
    pub(crate) fn syscall(&self) -> Option<Sysno> {
        match self.name.strip_prefix("SYS_") {
            Some(name) => named_by_ltrace(name.as_bytes()),
            None => named(self.name.as_bytes()),
        }
    }
}

/// Reads an entry of a map that bpftrace printed, counted by the tracepoint of a call's entry:
/// `@[tracepoint:syscalls:sys_enter_futex]: 26706`.
fn of_bpftrace(line: &[u8]) -> Option<SummaryRow> {
    let text = std::str::from_utf8(line.strip_prefix(b"@")?).ok()?;
    let (key, count) = text.trim_end().rsplit_once("]: ")?;
    let (_, key) = key.split_once('[')?;
    let (_, name) = key.rsplit_once("sys_enter_")?;
    named(name.as_bytes())?;
    Some(SummaryRow { name: name.to_owned(), calls: count.parse().ok()?, errors: 0, ns: 0 })
}

/// Reads a number. If all calls together took no time, the table's shares are `-nan`.
fn number(word: &str) -> Option<f64> {
    // Some locales have a decimal comma.
    word.replace(',', ".").parse().ok()
}

fn nanoseconds(word: &str, each: f64) -> Option<u64> {
    Some((number(word).filter(|time| time.is_finite())?.max(0.0) * each) as u64)
}

/// Returns true if a line may name a table's columns: it begins as one of them does, and has no
/// call's bracket. One or two bytes tell this for most lines of a trace.
fn may_be_header(line: &[u8]) -> bool {
    let begins = match line.trim_ascii_start().first() {
        None => false,
        Some(byte) if byte.is_ascii() => b"%acefmlstuwSC".contains(byte),
        Some(_) => true,
    };
    begins && memchr::memchr(b'(', line).is_none()
}

/// Returns the columns of a table that begins with a line such as
/// `% time     seconds  usecs/call     calls    errors syscall`.
fn header(text: &str) -> Option<Vec<Column>> {
    let text = text.trim().replacen("% time", "%time", 1);
    let columns: Vec<Column> = text
        .split_whitespace()
        .map(|word| match word {
            "seconds" => Some(Column::Seconds),
            "calls" => Some(Column::Calls),
            "errors" => Some(Column::Errors),
            "syscall" => Some(Column::Name),
            "function" => Some(Column::Function),
            // bcc's syscount has these columns.
            "SYSCALL" => Some(Column::Name),
            "COUNT" => Some(Column::Calls),
            "total" => Some(Column::Milliseconds),
            "min" | "avg" | "max" | "stddev" => Some(Column::Other),
            "%time" | "usecs/call" | "shortest" | "longest" => Some(Column::Other),
            // strace has these columns since version 7.1.
            "wall-total" | "wall-min" | "wall-max" | "wall-avg" => Some(Column::Other),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let named = columns.contains(&Column::Name) || columns.contains(&Column::Function);
    (columns.contains(&Column::Calls) && named).then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(summary: &Summary) -> impl Iterator<Item = &SummaryRow> {
        summary.tables().flat_map(Table::lines)
    }

    #[test]
    fn a_header_begins_another_table() {
        let mut summary = Summary::default();
        let text = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 99.00    0.100000          10     10000      9000 stat
------ ----------- ----------- --------- --------- ----------------
100.00    0.100000                 10000      9000 total
after the change
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
100.00    0.000100          10        10           stat
";
        text.lines().for_each(|line| {
            summary.line(line.as_bytes());
        });
        assert_eq!(summary.tables().map(Table::calls).collect::<Vec<_>>(), [10_000, 10]);
        for n in 0..1_000 {
            summary.line(b"% time seconds usecs/call calls errors syscall");
            summary.line(format!("1.00 0.1 10 {n} read").as_bytes());
        }
        assert!(summary.tables().count() <= MOST_TABLES);
        assert_eq!(events_of(" perf (900261), 3127 events, 94.7%"), Some(("perf".into(), 900_261)));
    }

    #[test]
    fn names_and_numbers_alone_are_a_table() {
        let mut summary = Summary::default();
        let text = "  sigaltstack    111773\n  223546 sigprocmask\n  apple 7\n  read the 7\n";
        let taken: Vec<bool> = text.lines().map(|line| summary.bare(line.as_bytes())).collect();
        assert_eq!(taken, [true, true, false, false]);
        assert_eq!(summary.tables().map(Table::calls).collect::<Vec<_>>(), [335_319]);
        let mut summary = Summary::default();
        assert!(summary.bare(b"write 7") && summary.tables().next().is_none());
    }

    #[test]
    fn tables() {
        let mut summary = Summary::default();
        let text = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000120           5        24           read
 40.00    0.000080          20         4         1 access
------ ----------- ----------- --------- --------- ----------------
100.00    0.000200           7        28         1 total
done";
        let taken: Vec<bool> = text.lines().map(|line| summary.line(line.as_bytes())).collect();
        assert_eq!(taken, [true, true, true, true, true, true, false]);
        let lines: Vec<(&str, u64, u64, u64)> = lines(&summary).map(|l| (&*l.name, l.calls, l.errors, l.ns)).collect();
        assert_eq!(lines, [("access", 4, 1, 80_000), ("read", 24, 0, 120_000)]);
        assert!(!Summary::default().line(b"read(3) = 0"));
        let names =
            "seconds calls errors syscall function total min avg max stddev %time usecs/call shortest longest wall-min";
        assert!(names.split(' ').all(|name| may_be_header(format!("  {name} calls").as_bytes())));
    }

    #[test]
    fn other_tools_tables() {
        let read = |text: &str| {
            let mut summary = Summary::default();
            let left: Vec<_> = text.lines().skip_while(|l| !summary.line(l.as_bytes())).collect();
            let unread = left.iter().skip(1).filter(|l| !summary.line(l.as_bytes())).count();
            let of = |l: &SummaryRow| (l.syscall().and_then(Sysno::name), l.calls, l.errors, l.ns);
            (lines(&summary).map(of).collect::<Vec<_>>(), unread)
        };
        let perf = "
 Summary of events:

 ls (4138), 294 events, 18.6%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   mmap                  30      0     0.759     0.014     0.025     0.070      6.91%
   openat                34     13     0.700     0.015     0.021     0.028      2.44%

 sh (4139), 4 events, 1.0%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   openat                 2      1     0.100     0.015     0.021     0.028      2.44%
";
        assert_eq!(
            read(perf),
            (
                vec![
                    (Some("mmap"), 30, 0, 759_000),
                    (Some("openat"), 34, 13, 700_000),
                    (Some("openat"), 2, 1, 100_000)
                ],
                0
            )
        );
        let ltrace = "\
% time     seconds  usecs/call     calls      function
------ ----------- ----------- --------- --------------------
 34.84    0.000177          22         8 SYS_mmap
 14.57    0.000074          24         3 strlen
  4.57    0.000024          24         2 SYS_pread
  4.57    0.000024          24         1 SYS_334
------ ----------- ----------- --------- --------------------
100.00    0.000251                    11 total
";
        let told: Vec<_> = read(ltrace).0.into_iter().map(|(name, calls, ..)| (name, calls)).collect();
        assert_eq!(told, [(Some("rseq"), 1), (Some("mmap"), 8), (Some("pread64"), 2)]);
    }

    #[test]
    fn maps_of_bpftrace() {
        let mut summary = Summary::default();
        assert!(
            summary.line(b"@[tracepoint:syscalls:sys_enter_futex]: 26706") && summary.line(b"@n[7, sys_enter_read]: 2")
        );
        assert!(!summary.line(b"@[kprobe:vfs_read]: 7") && !summary.line(b"@start: 7"));
        let lines: Vec<(&str, u64)> = lines(&summary).map(|l| (&*l.name, l.calls)).collect();
        assert_eq!(lines, [("futex", 26_706), ("read", 2)]);
    }

    #[test]
    fn other_columns() {
        let mut summary = Summary::default();
        assert!(
            summary.line(b"    calls    errors syscall") && summary.line(b"------") && summary.line(b"  7   getpid")
        );
        assert_eq!(lines(&summary).next().map(|l| l.calls), Some(7));
    }

    proptest! {
        #[test]
        fn any_lines_make_few_tables(lines in proptest::collection::vec(r"[ %a-z_0-9.,()\[\]@:-]{0,60}", 0..200)) {
            let mut summary = Summary::default();
            for line in &lines {
                summary.line(b"% time     seconds  usecs/call     calls    errors syscall");
                let _ = summary.line(line.as_bytes()) || summary.bare(line.as_bytes());
            }
            prop_assert!(summary.tables().count() <= MOST_TABLES);
        }
    }
}
