//! Rows of an imported table that are worth a closer look, and the command that shows more. A table has counts only:
//! it does not tell what its calls were about.

use crate::results::finding::Counted;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use systoll_model::{Counts, ProcessId, Recording, Sysno};

/// Least number of a row's calls for a habit.
const FEW: u64 = 100;
/// Share of a table's calls, 0 to 1, from which on a row is named as frequent.
const MOST_OF_TABLE: f64 = 0.3;
/// Share of a table's calls, 0 to 1, from which on a row of [`BESIDE`] is named as frequent.
const LEAST_BESIDE: f64 = 0.1;
/// Share of a row's calls that fail, 0 to 1, from which on it is named as failing.
const FAILS: f64 = 0.3;
/// Least number of failed calls for a row to be named as failing.
const FAILED: u64 = 20;
/// Least number of a row's calls, if all of them failed, for it to be named as failing.
const ALL_FAILED: u64 = 5;
/// Largest relative distance of the ratio of two rows' calls from a whole number.
const OFF: f64 = 0.02;
/// Largest whole number that the ratio of two rows' calls is compared with.
const EACH: u64 = 4;
/// Average time of a call from which on its row is named as costly, ns; for calls that do not wait.
const DEAR_NS: f64 = 1_000_000.0;
/// Average time of a call from which on a call that may block counts as waiting, ns.
const WAITED_NS: f64 = 200_000.0;
/// Least share of the table's time, 0 to 1, that a line mentions.
const TOLD_SHARE: f64 = 0.01;
/// Least share of the table's time, 0 to 1, of a row that is named as costly.
const DEAR_SHARE: f64 = 0.05;
/// Largest number of lines for one table.
const MOST: usize = 6;

/// Calls of which a program normally makes few, and what many of them usually mean.
struct Clue {
    calls: &'static [&'static str],
    /// The usual meaning, for a sentence.
    may_be: &'static str,
    /// Ids of the causes to which the calls may belong.
    causes: &'static [&'static str],
    /// The options of strace that show which of the causes it is.
    options: &'static str,
}

const fn clue(
    calls: &'static [&'static str],
    may_be: &'static str,
    causes: &'static [&'static str],
    options: &'static str,
) -> Clue {
    Clue { calls, may_be, causes, options }
}

/// Clues by calls; no call is in two of them.
#[rustfmt::skip]
static CLUES: &[Clue] = &[
    clue(&["stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat"],
         "asks for the same files again, such as /etc/localtime where TZ is unset, or looks for names in many folders",
         &["tz-unset", "stat-per-op", "search-path"], "-k"),
    clue(&["open", "openat", "openat2"], "opens the same files again, or looks for names that are not there",
         &["file-reread", "search-path", "proc-reread"], "-k"),
    clue(&["read", "pread64", "readv", "preadv"], "reads small pieces, or the same again", &["tiny-io", "file-reread"], "-k"),
    clue(&["write", "pwrite64", "writev", "sendto", "sendmsg"], "writes small pieces", &["tiny-io", "unbuffered-output", "split-sends"], "-k"),
    clue(&["lseek"], "asks where it is, or sets where it is already", &["seek-read-pair", "tell-per-op"], "-k"),
    clue(&["rt_sigprocmask"], "saves and restores the signal mask: sigsetjmp, getcontext and swapcontext do",
         &["sigmask-setjmp", "sigmask-context", "sigmask-toggle"], "-k"),
    clue(&["sched_yield"], "spins: gives the processor up in place of waiting", &["spin-wait"], "-k"),
    clue(&["clock_gettime", "gettimeofday", "time"],
         "reads clocks that the vDSO answers without a system call: clock source of that machine, or a clock the vDSO does not serve",
         &["clock-in-kernel", "times-per-op"], "-k"),
    clue(&["getpid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getppid"], "asks who it is each time", &["identity-per-op"], "-k"),
    clue(&["madvise", "munmap", "mmap", "brk", "mprotect"], "gives memory back and takes it again",
         &["heap-trim", "mmap-churn", "madvise-churn"], "-k"),
    clue(&["futex"], "hands a contended lock on, or wakes nobody", &["futex-contention", "futex-empty-wake"], "-k"),
    clue(&["close"], "closes numbers that are not open, up to the limit", &["close-storm"], "-Z"),
    clue(&["fcntl", "ioctl", "fstat"], "asks or sets again what is known of a descriptor", &["flag-toggle", "terminal-per-op", "status-per-read"], "-k"),
    clue(&["setsockopt", "getsockopt", "getsockname", "getpeername"], "asks or sets again what is known of a socket",
         &["sockopt-per-op", "socket-name-per-op"], "-k"),
    clue(&["epoll_ctl"], "registers descriptors again and again", &["epoll-churn"], "-k"),
    clue(&["epoll_wait", "epoll_pwait", "poll", "ppoll", "select", "pselect6"], "looks without waiting, or wakes for little",
         &["spin-wait", "sleep-poll"], "-T"),
    clue(&["nanosleep", "clock_nanosleep"], "sleeps for a moment and looks again", &["sleep-poll"], "-T"),
    clue(&["fsync", "fdatasync", "sync", "syncfs", "msync"], "waits for the disk each time", &["sync-per-op"], "-T"),
    clue(&["membarrier"], "waits for every processor, where its command is GLOBAL", &["membarrier-global"], "-T -k"),
    clue(&["getrusage", "times"], "reads its processor time each time", &["usage-per-op"], "-k"),
    clue(&["rt_sigaction"], "sets handlers that are set already", &["sigaction-toggle"], "-k"),
    clue(&["clone", "clone3", "fork", "vfork", "execve", "wait4", "waitid"], "starts a program or a thread for each item",
         &["process-per-item", "thread-per-item"], "-f"),
];

/// Calls that are a program's work: one of them for each round is normal.
const WORK: &[&str] = &[
    "read",
    "pread64",
    "recvfrom",
    "recvmsg",
    "write",
    "pwrite64",
    "sendto",
    "sendmsg",
    "accept",
    "accept4",
    "open",
    "openat",
    "epoll_wait",
    "epoll_pwait",
    "clone",
    "clone3",
    "connect",
];

/// Calls that ask or set something beside the work. A row of them is worth a look if it has as many calls as a row of
/// [`WORK`].
const BESIDE: &[&str] = &[
    "lseek",
    "fcntl",
    "ioctl",
    "setsockopt",
    "getsockopt",
    "getsockname",
    "getpeername",
    "rt_sigprocmask",
    "rt_sigaction",
    "getpid",
    "gettid",
    "clock_gettime",
    "gettimeofday",
    "epoll_ctl",
    "getrusage",
    "times",
    "umask",
    "brk",
    "sched_yield",
    "stat",
    "newfstatat",
    "access",
];

/// Calls that wait for the box, not for work to arrive.
const FOR_OTHERS: &[&str] = &["membarrier", "fsync", "fdatasync", "sync", "syncfs", "msync", "flock"];

/// Calls that fail in normal use.
const MAY_FAIL: &[&str] = &[
    "futex",
    "nanosleep",
    "clock_nanosleep",
    "restart_syscall",
    "rt_sigtimedwait",
    "rt_sigreturn",
    "recvfrom",
    "recvmsg",
    "accept",
    "accept4",
    "read",
    "wait4",
    "waitid",
    "connect",
    "epoll_wait",
    "epoll_pwait",
    "poll",
    "ppoll",
    "select",
    "io_uring_enter",
];

/// Returns true if a recording is a table: counts without a single sampled call.
pub(crate) fn is_table(recording: &Recording) -> bool {
    recording.header.backend.is_trace() && recording.windows.is_empty() && recording.calls() > 0
}

/// Returns the rows of tables that are worth a closer look; nothing if the recording has windows.
pub(crate) fn counted(recording: &Recording) -> Vec<Counted> {
    if !is_table(recording) {
        return Vec::new();
    }
    let mut tables: BTreeMap<ProcessId, BTreeMap<Sysno, Counts>> = BTreeMap::new();
    for row in &recording.rows {
        tables.entry(row.process).or_default().entry(row.syscall).or_default().merge(&row.counts);
    }
    tables.into_iter().flat_map(|(process, rows)| Table::of(process, &rows).told()).collect()
}

/// A row of a table.
struct TableRow {
    syscall: Sysno,
    name: &'static str,
    calls: u64,
    failed: u64,
    /// The row's own time, ns; 0 where the table has none.
    ns: u64,
}

/// The table of one process.
struct Table {
    process: ProcessId,
    rows: Vec<TableRow>,
    calls: u64,
    ns: u64,
}

impl Table {
    fn of(process: ProcessId, counts: &BTreeMap<Sysno, Counts>) -> Self {
        let row = |(syscall, counts): (&Sysno, &Counts)| {
            let (calls, failed, ns) = (counts.calls, counts.failed(), counts.elapsed_ns);
            Some(TableRow { syscall: *syscall, name: syscall.name()?, calls, failed, ns })
        };
        let mut rows: Vec<TableRow> = counts.iter().filter_map(row).collect();
        rows.sort_by_key(|row| (Reverse(row.calls), row.syscall));
        let sum = |of: fn(&Counts) -> u64| counts.values().map(of).fold(0, u64::saturating_add);
        Self { process, rows, calls: sum(|c| c.calls), ns: sum(|c| c.elapsed_ns) }
    }

    fn told(&self) -> Vec<Counted> {
        let each = |of: fn(&Self, &TableRow) -> Option<Counted>| self.rows.iter().filter_map(move |row| of(self, row));
        let mut all: Vec<Counted> = Vec::new();
        for counted in
            each(Self::failing).chain(each(Self::in_step)).chain(each(Self::frequent)).chain(each(Self::dear))
        {
            // Each row gets one line, from the first check that it meets: checks that say more come first.
            if all.len() < MOST && !all.iter().any(|told| told.syscalls.first() == counted.syscalls.first()) {
                all.push(counted);
            }
        }
        all
    }

    fn failing(&self, row: &TableRow) -> Option<Counted> {
        let expected = MAY_FAIL.contains(&row.name);
        let text = if row.failed == row.calls && row.calls >= ALL_FAILED {
            format!("all {} calls failed", row.calls)
        } else if !expected && row.failed >= FAILED && row.failed as f64 >= FAILS * row.calls as f64 {
            format!("{} of {} calls failed", row.failed, row.calls)
        } else {
            return None;
        };
        Some(self.line(&[row], text, &["-Z"]))
    }

    fn frequent(&self, row: &TableRow) -> Option<Counted> {
        let share = row.calls as f64 / self.calls.max(1) as f64;
        let of_time = if self.ns > 0 && !waits(row) { row.ns as f64 / self.ns as f64 } else { 0.0 };
        let is_for_waiting = row.syscall.signature().is_some_and(|signature| signature.waits);
        // A `close` for each `open` says nothing by itself. Calls beside the work are few in a healthy program, so a
        // smaller share of them is named.
        let is_even = row.name == "close" && row.failed == 0;
        let least = if BESIDE.contains(&row.name) { LEAST_BESIDE } else { MOST_OF_TABLE };
        if row.calls < FEW || is_for_waiting || is_even || share < least && of_time < MOST_OF_TABLE {
            return None;
        }
        let priced = if of_time >= TOLD_SHARE {
            format!(", {:.0} % of the table's time, {} each", 100.0 * of_time, micro(row.each()))
        } else {
            String::new()
        };
        let text = format!("{} of {} calls{priced}", row.calls, self.calls);
        Some(self.line(&[row], text, &[]))
    }

    fn in_step(&self, row: &TableRow) -> Option<Counted> {
        if row.calls < FEW || !BESIDE.contains(&row.name) {
            return None;
        }
        let step = |other: &&TableRow| WORK.contains(&other.name) && other.calls >= FEW && times(row, other).is_some();
        let other = self.rows.iter().filter(step).min_by_key(|other| times(row, other))?;
        let text = match times(row, other)? {
            1 => format!("as many calls as {}: {} and {}", other.name, row.calls, other.calls),
            n => format!("{n} calls for each {}: {} and {}", other.name, row.calls, other.calls),
        };
        Some(self.line(&[row, other], text, &[]))
    }

    fn dear(&self, row: &TableRow) -> Option<Counted> {
        let for_work =
            row.syscall.signature().is_some_and(|s| s.waits || s.may_block && !FOR_OTHERS.contains(&row.name));
        if row.each() < DEAR_NS || (row.ns as f64) < DEAR_SHARE * self.ns as f64 || for_work {
            return None;
        }
        let text = format!(
            "{} {}, {} each by the table",
            row.calls,
            if row.calls == 1 { "call" } else { "calls" },
            micro(row.each())
        );
        Some(self.line(&[row], text, &["-T"]))
    }

    /// Returns the line about a row, with the clue for its call and the command that shows more.
    fn line(&self, rows: &[&TableRow], text: String, options: &[&str]) -> Counted {
        let name = rows.first().map_or("", |row| row.name);
        let clue = CLUES.iter().find(|clue| clue.calls.contains(&name));
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        let options: Vec<&str> = match (options, clue) {
            ([], Some(clue)) => clue.options.split(' ').collect(),
            ([], None) => vec!["-k"],
            (options, _) => options.to_vec(),
        };
        let trace = format!("trace={}", names.join(","));
        let mut find_out: Vec<String> = ["strace", "-f", "-ttt", "-T"].map(str::to_owned).into();
        find_out.extend(options.into_iter().filter(|option| !matches!(*option, "-f" | "-T")).map(str::to_owned));
        find_out.extend(["-e".to_owned(), trace, "CMD".to_owned()]);
        Counted {
            process: self.process,
            syscalls: rows.iter().map(|row| row.syscall).collect(),
            text,
            may_be: clue.map_or("", |clue| clue.may_be),
            causes: clue.map_or(&[][..], |clue| clue.causes),
            find_out,
        }
    }
}

impl TableRow {
    /// Returns the average time of a call, ns.
    fn each(&self) -> f64 {
        self.ns as f64 / self.calls.max(1) as f64
    }
}

/// Returns true if a row's time is waiting and no price: its call is made for waiting, or it may block and takes
/// long.
fn waits(row: &TableRow) -> bool {
    row.syscall.signature().is_some_and(|signature| signature.waits || signature.may_block && row.each() >= WAITED_NS)
}

/// Returns the number of calls of `row` for each call of `other`, if that is nearly a small whole number.
fn times(row: &TableRow, other: &TableRow) -> Option<u64> {
    let ratio = row.calls as f64 / other.calls.max(1) as f64;
    let whole = ratio.round();
    ((1.0..=EACH as f64).contains(&whole) && (ratio - whole).abs() <= OFF * whole).then_some(whole as u64)
}

fn micro(ns: f64) -> String {
    match ns {
        ns if ns >= 10_000_000.0 => format!("{:.0} ms", ns / 1e6),
        ns if ns >= 1_000_000.0 => format!("{:.1} ms", ns / 1e6),
        ns if ns >= 10_000.0 => format!("{:.0} µs", ns / 1e3),
        ns => format!("{:.1} µs", ns / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::catalogue::Catalogue;
    use systoll_model::Errno;

    fn told(rows: &[(&str, u64, u64, u64)]) -> Vec<(String, String)> {
        let of = |(name, calls, failed, us): &(&str, u64, u64, u64)| {
            let errors = (*failed > 0).then_some((Errno::UNKNOWN, *failed)).into_iter().collect();
            let counts = Counts { calls: *calls, errors, elapsed_ns: us * 1_000, ..Counts::default() };
            (Sysno::from_name(name).unwrap(), counts)
        };
        let counts: BTreeMap<Sysno, Counts> = rows.iter().map(of).collect();
        let line = |c: Counted| (c.find_out.join(" "), c.text);
        Table::of(ProcessId(0), &counts).told().into_iter().map(line).collect()
    }

    #[test]
    fn what_a_row_tells_is_said_with_the_command_that_shows_it() {
        let rows = [("pread64", 293_336, 0, 32_541_375), ("openat", 313, 0, 57_135), ("close", 313, 0, 34_336)];
        let pread = "293336 of 293962 calls, 100 % of the table's time, 111 µs each".to_owned();
        assert_eq!(told(&rows), [("strace -f -ttt -T -k -e trace=pread64 CMD".to_owned(), pread)]);
        let failed = told(&[("openat", 364, 187, 1_144), ("mmap", 263, 0, 796), ("read", 263, 0, 441)]);
        assert_eq!(failed[0].1, "187 of 364 calls failed");
        assert!(failed[0].0.contains("-Z"));
        let step = told(&[("read", 1_000, 0, 0), ("lseek", 2_000, 0, 0), ("fcntl", 500, 0, 0), ("accept", 500, 0, 0)]);
        assert!(step.iter().any(|(_, text)| text == "as many calls as accept: 500 and 500"), "{step:?}");
        let barrier = told(&[("membarrier", 1, 0, 79_379), ("read", 12, 0, 30)]);
        assert_eq!(barrier[0].1, "1 call, 79 ms each by the table");
        let dear = told(&[("mprotect", 20, 0, 79_379), ("read", 12, 0, 30)]);
        assert_eq!(dear[0].1, "20 calls, 4.0 ms each by the table");
        // Calls that wait, and calls that fail in normal use, are not reported.
        assert!(told(&[("epoll_wait", 500, 0, 900_000), ("futex", 50, 30, 10), ("read", 20, 0, 10)]).is_empty());
    }

    #[test]
    fn clues_name_causes_and_calls_that_there_are() {
        let catalogue = Catalogue::builtin();
        for clue in CLUES {
            assert!(clue.calls.iter().all(|name| Sysno::from_name(name).is_some()), "{:?}", clue.calls);
            assert!(clue.causes.iter().all(|id| catalogue.get(id).is_some()), "{:?}", clue.causes);
        }
        let lists = [WORK, BESIDE, MAY_FAIL, FOR_OTHERS].concat();
        assert!(lists.iter().all(|name| Sysno::from_name(name).is_some()));
    }
}
