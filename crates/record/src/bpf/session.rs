//! A run that is counted in the kernel: its events, its rows, its end.

use super::counter::{Counter, ROWS};
use super::images::Images;
use super::layout::{ErrorKey, NO_CALL, Row, RowKey, Totals};
use crate::assemble::RunFacts;
use crate::backend::Control;
use crate::ending::Ending;
use crate::problems::Problems;
use crate::signals::Signals;
use crate::table::{ImageId, Table};
use crate::{procfs, sys};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;
use systoll_model::{Attached, Counts, Errno, Exit, Histogram, Machine, ProblemKind, Sysno};

/// Time for which we wait for an event, at most: slots are handed out and rows taken in between.
const PAUSE: Duration = Duration::from_millis(20);
/// Interval between progress reports, ns.
const PROGRESS_NS: u64 = 100_000_000;
/// Rows that are made before those of programs that have ended are taken out of the map: its quarter.
const ROWS_BEFORE_TAKING: u64 = ROWS as u64 / 4;

/// The figures of watching itself, measured before the run on our own thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watching {
    /// Time that watching adds to a call, ns.
    pub(super) added_ns: f64,
    /// Time of the cheapest call as the programs measure it, ns.
    pub(super) inside_ns: f64,
}

/// A run that is counted in the kernel.
pub(super) struct Session {
    pub(super) counter: Counter,
    pub(super) table: Table,
    pub(super) images: Images,
    pub(super) problems: Problems,
    pub(super) facts: RunFacts,
    pub(super) watching: Watching,
    pub(super) root: Root,
    pub(super) start_ns: u64,
    /// Calls and rows that were taken out of the kernel's maps.
    pub(super) taken: Sums,
    ending: Ending,
    has_all_slots: bool,
    last_progress_ns: u64,
    /// Facts about attaching, if running processes are watched.
    pub(super) attached: Option<Attached>,
    /// True if processes were left running.
    pub(super) left_running: bool,
}

/// The command's own process.
#[derive(Default)]
pub(super) struct Root {
    pub(super) pid: i32,
    pub(super) exit: Option<Exit>,
    /// Descriptor that can be read once the process has ended.
    pub(super) ends: Option<OwnedFd>,
}

/// Sums over rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Calls that have returned.
    pub(super) returned: u64,
    /// Calls that have not returned when their thread ended or watching did.
    pub(super) unreturned: u64,
    /// Calls that are counted without their program.
    pub(super) without_image: u64,
    /// Errors that are counted without their errno.
    pub(super) unknown_errors: u64,
    rows: u64,
}

/// When watching ends although threads live.
pub(super) struct Limits {
    pub(super) linger: Duration,
    /// Time at which watching ends, ns.
    pub(super) deadline: Option<u64>,
    /// Number of calls after which watching ends.
    pub(super) calls: Option<u64>,
    /// Threads that live beside those that the kernel counts.
    pub(super) uncounted: i64,
}

impl Session {
    pub(super) fn new(counter: Counter, table: Table, mut images: Images) -> Self {
        let start_ns = sys::now();
        images.start_ns = start_ns;
        let taken = Sums { rows: counter.totals().rows, ..Sums::default() };
        Self {
            counter,
            table,
            images,
            problems: Problems::default(),
            facts: RunFacts::default(),
            watching: Watching::default(),
            root: Root::default(),
            start_ns,
            taken,
            ending: Ending::default(),
            has_all_slots: false,
            last_progress_ns: 0,
            attached: None,
            left_running: false,
        }
    }

    /// Returns the time since the run's start, ns.
    pub(super) fn at(&self, now: u64) -> u64 {
        now.saturating_sub(self.start_ns)
    }

    /// Waits until the command has been executed, or its process has ended without.
    pub(super) fn wait_for_exec(&mut self) {
        while !self.images.has_begun && self.root.exit.is_none() {
            self.wait(PAUSE);
            self.take_events();
            self.reap(None);
        }
        self.take_events();
    }

    /// Watches until every thread has ended, or until there is a reason to leave the others.
    pub(super) fn watch(&mut self, signals: &Signals, control: &mut dyn Control, limits: &Limits) {
        loop {
            if !self.has_all_slots {
                self.has_all_slots = !self.counter.hand_out();
            }
            self.wait(if self.has_all_slots { PAUSE } else { Duration::ZERO });
            self.take_events();
            self.reap(Some(signals));
            let (now, totals) = (sys::now(), self.counter.totals());
            if self.images.has_ended() && totals.rows.saturating_sub(self.taken.rows) > ROWS_BEFORE_TAKING {
                self.take_rows();
            }
            let ended = self.root.pid == 0 || self.root.exit.is_some();
            if ended && (totals.live as i64).saturating_add(limits.uncounted) <= 0 {
                break;
            }
            if now.saturating_sub(self.last_progress_ns) >= PROGRESS_NS {
                self.last_progress_ns = now;
                let calls = self.calls(&totals);
                control.progress(calls, self.images.processes(), self.root.exit.is_some());
                if limits.calls.is_some_and(|most| calls >= most) {
                    self.left_running = true;
                    break;
                }
            }
            if limits.deadline.is_some_and(|deadline| now >= deadline) || self.is_to_end(signals, control, limits) {
                self.left_running = true;
                break;
            }
        }
        self.end();
    }

    /// Ends counting, and takes what was counted.
    fn end(&mut self) {
        self.counter.detach();
        self.take_events();
    }

    /// Returns the user and system time of the watched processes that run, ns.
    pub(super) fn processor_time(&self) -> (u64, u64) {
        procfs::running_times(self.table.images.iter().filter(|i| i.end_ns == 0).map(|i| i.pid))
    }

    fn is_to_end(&mut self, signals: &Signals, control: &mut dyn Control, limits: &Limits) -> bool {
        let wanted = signals.take_requests();
        if wanted.snapshot && control.wants_snapshot() {
            let recording = self.recording_so_far();
            control.snapshot(recording);
        }
        if self.root.pid == 0 && wanted.ending.is_some() {
            return true;
        }
        let state = (self.root.pid != 0 && self.root.exit.is_some(), control.leaves());
        let Some(why) = self.ending.reason_to_end(&wanted, sys::now(), state, limits.linger) else { return false };
        if self.root.pid != 0 {
            self.problems.note(ProblemKind::CutShort, why.text(self.images.processes()));
        }
        true
    }

    /// Waits for an event, the command's end, or a signal.
    fn wait(&self, most: Duration) {
        let ready = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let ends = self.root.ends.as_ref().filter(|_| self.root.exit.is_none()).map_or(-1, AsRawFd::as_raw_fd);
        let mut fds = [ready(self.counter.events().descriptor().as_raw_fd()), ready(ends)];
        // SAFETY: the array has as many descriptors as it says; negative ones are left out by the kernel.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, most.as_millis() as i32) };
    }

    fn take_events(&mut self) {
        let (images, table, counter, problems) = (&mut self.images, &mut self.table, &self.counter, &mut self.problems);
        counter.events().read(|event| {
            if let Some(exe) = images.take(event, table, |tid| counter.image_of(tid)) {
                let text = format!("{exe} is a program of another machine and ran unwatched");
                problems.note(ProblemKind::Unwatched, text);
            }
        });
    }

    /// Reaps the command's own process if it has ended.
    fn reap(&mut self, signals: Option<&Signals>) {
        if self.root.pid == 0 || self.root.exit.is_some() {
            return;
        }
        let mut status = 0;
        // SAFETY: our own child, which only this reaps.
        let reaped = unsafe { libc::waitpid(self.root.pid, &mut status, libc::WNOHANG) };
        if reaped != self.root.pid {
            return;
        }
        let exit = match libc::WIFSIGNALED(status) {
            true => Exit::Signal(libc::WTERMSIG(status)),
            false => Exit::Code(libc::WEXITSTATUS(status)),
        };
        self.root.exit = Some(exit);
        if let Some(signals) = signals {
            signals.target_gone();
        }
    }

    /// Returns the number of calls that have returned so far. Where there are very many rows, returns those of ended
    /// threads only: reading all rows takes long.
    fn calls(&self, totals: &Totals) -> u64 {
        if totals.rows.saturating_sub(self.taken.rows) > ROWS_BEFORE_TAKING {
            return totals.entered;
        }
        let mut calls = self.taken.returned;
        self.counter.rows(|_, row| calls = calls.saturating_add(row.calls));
        calls
    }

    /// Takes the rows of programs that have ended out of the kernel's maps, so that there is room for others.
    fn take_rows(&mut self) {
        let ended = self.images.take_ended();
        let (mut rows, mut errors) = (Vec::new(), Vec::new());
        self.counter.rows(|key, row| rows.extend(ended.get(&key.image).map(|image| (key, *image, row))));
        self.counter.errors(|key, n| errors.extend(ended.get(&key.image).map(|image| (key, *image, n))));
        for (key, image, row) in &rows {
            add_row(&mut self.table, *image, Machine::HERE.call(key.number), row);
            self.taken.add(row);
        }
        for (key, image, n) in &errors {
            add_error(&mut self.table, *image, key, *n);
        }
        self.taken.rows += rows.len() as u64;
        let rows: Vec<RowKey> = rows.into_iter().map(|(key, ..)| key).collect();
        let errors: Vec<ErrorKey> = errors.into_iter().map(|(key, ..)| key).collect();
        self.counter.remove(&rows, &errors);
    }

    /// Adds what is in the kernel's maps to the table, and leaves it there. Returns the sums over all rows.
    pub(super) fn add_rows(&mut self, table: &mut Table) -> Sums {
        let mut sums = self.taken;
        let images = &mut self.images;
        // A call is counted before its error: read in the other order, no row has more errors than calls.
        let mut errors = Vec::new();
        self.counter.errors(|key, n| errors.push((key, n)));
        self.counter.rows(|key, row| {
            sums.add(&row);
            let image = images.of(key.image, table);
            add_row(table, image, Machine::HERE.call(key.number), &row);
        });
        self.counter.full_rows(|syscall, row| {
            sums.add(&row);
            sums.without_image += row.calls + row.unreturned;
            let image = images.of(0, table);
            add_row(table, image, syscall, &row);
        });
        for (key, n) in errors {
            let image = images.of(key.image, table);
            add_error(table, image, &key, n);
        }
        for slot in self.counter.living() {
            if slot.number != NO_CALL {
                let row = Row { unreturned: 1, ..Row::default() };
                sums.add(&row);
                let image = images.of(slot.call_image, table);
                add_row(table, image, Machine::HERE.call(slot.number), &row);
            }
        }
        sums.unknown_errors = self.counter.totals().no_error;
        sums
    }
}

impl Sums {
    fn add(&mut self, row: &Row) {
        self.returned = self.returned.saturating_add(row.calls);
        self.unreturned = self.unreturned.saturating_add(row.unreturned);
    }
}

/// Adds a row of the kernel's to the table.
fn add_row(table: &mut Table, image: ImageId, syscall: Sysno, row: &Row) {
    let transfers = syscall.signature().is_some_and(|s| s.transfers);
    let counts = Counts {
        calls: row.calls,
        unreturned: row.unreturned,
        bytes: if transfers { row.results } else { 0 },
        elapsed_ns: row.elapsed,
        max_ns: row.longest,
        min_ns: (row.timed > 0).then_some(row.shortest),
        histogram: Histogram::from_buckets(row.histogram.to_vec()),
        ..Counts::default()
    };
    let (id, _) = table.row(image, syscall, &[]);
    if let Some(to) = table.rows.get_mut(id as usize) {
        to.counts.merge(&counts);
        to.entered = to.entered.saturating_add(row.calls).saturating_add(row.unreturned);
    }
    table.calls = table.calls.saturating_add(row.calls);
}

/// Adds errors of the kernel's to the table.
fn add_error(table: &mut Table, image: ImageId, key: &ErrorKey, errors: u64) {
    let (id, _) = table.row(image, Machine::HERE.call(key.number), &[]);
    let errno = Errno::from_result(-i64::from(key.errno));
    if let Some((to, errno)) = table.rows.get_mut(id as usize).zip(errno) {
        let sum = to.counts.errors.entry(errno).or_default();
        *sum = sum.saturating_add(errors);
    }
}
