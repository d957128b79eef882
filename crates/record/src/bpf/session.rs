//! A run that is counted in the kernel: its events, its rows, its end.

use super::counter::Counter;
use super::images::Images;
use super::layout::{ErrorKey, Event, Kind, NO_CALL, Row, RowKey, Totals, part};
use super::sampling::Sampling;
use crate::assemble::RunFacts;
use crate::backend::{Closely, Control, HowToWatch};
use crate::ending::Ending;
use crate::problems::Problems;
use crate::signals::Signals;
use crate::table::{ImageId, Table};
use crate::{procfs, sys};
use foldhash::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;
use systoll_model::{Attached, Counts, Errno, Exit, Histogram, Machine, ProblemKind};

/// Time for which we wait for an event, at most: slots are handed out and rows taken in between.
const PAUSE: Duration = Duration::from_millis(20);
/// Interval between progress reports, ns, and that where all of a box is watched: there, counting takes 2 ms.
const PROGRESS_NS: u64 = 100_000_000;
const PROGRESS_OF_BOX_NS: u64 = 1_000_000_000;
/// Part of the rows' room, as a divisor, that is used before the rows of programs that have ended are taken out of the map.
const BEFORE_TAKING: u32 = 4;
/// Part, as a divisor, up to which each place has a row of its own; the others are for calls without their place.
const BY_PLACE: u32 = 2;

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
    pub(super) sampling: Sampling,
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
    /// User and system time of each process when watching began, ns, if all of a box are watched.
    pub(super) times_before: Option<HashMap<i32, (u64, u64)>>,
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
    /// Calls that are counted for one of several contexts.
    pub(super) unsure: u64,
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
    pub(super) fn new(counter: Counter, table: Table, mut images: Images, how: &HowToWatch) -> Self {
        let start_ns = sys::now();
        images.start_ns = start_ns;
        let mut sampling = Sampling::new(how.windows.clone(), how.seed, how.closely == Closely::All);
        sampling.start_ns = start_ns;
        sampling.allow(&counter, 0, u64::from(counter.most_rows / BY_PLACE));
        let taken = Sums { rows: counter.totals().rows, ..Sums::default() };
        Self {
            counter,
            table,
            images,
            sampling,
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
            times_before: None,
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
            let is_whole_box = self.times_before.is_some();
            if !self.has_all_slots && !is_whole_box {
                self.has_all_slots = !self.counter.hand_out();
            }
            self.wait(if self.has_all_slots || is_whole_box { PAUSE } else { Duration::ZERO });
            self.take_events();
            self.reap(Some(signals));
            let (now, totals) = (sys::now(), self.counter.totals());
            if is_whole_box {
                self.counter.keep_spare((totals.live as i64).saturating_add(limits.uncounted).max(0) as u64);
            }
            let by_place = u64::from(self.counter.most_rows / BY_PLACE);
            self.sampling.allow(&self.counter, self.at(now), self.taken.rows + by_place);
            if self.images.has_ended() && self.has_many_rows(&totals) {
                self.take_rows();
            }
            let ended = self.root.pid == 0 || self.root.exit.is_some();
            if ended && (totals.live as i64).saturating_add(limits.uncounted) <= 0 {
                break;
            }
            let every_ns = if is_whole_box { PROGRESS_OF_BOX_NS } else { PROGRESS_NS };
            if now.saturating_sub(self.last_progress_ns) >= every_ns {
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
        self.sampling.end(&mut self.table);
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
        let rings = [self.counter.events(), self.counter.samples()].map(|ring| ring.descriptor().as_raw_fd());
        let mut fds = [ready(rings[0]), ready(rings[1]), ready(ends)];
        // SAFETY: the array has as many descriptors as it says; negative ones are left out by the kernel.
        unsafe { libc::poll(fds.as_mut_ptr(), 3, most.as_millis() as i32) };
    }

    /// Takes the events and the sampled calls so far. A sample is read after the events that came before it.
    fn take_events(&mut self) {
        let (images, table, counter, problems) = (&mut self.images, &mut self.table, &self.counter, &mut self.problems);
        let (sampling, end) = (&mut self.sampling, counter.samples().end());
        let mut ended = Vec::new();
        counter.events().read(u64::MAX, |bytes| {
            let Some(event) = Event::read(bytes) else { return };
            match event.kind {
                Kind::HasExecuted => ended.push((event.tid, true)),
                Kind::Ended | Kind::IsForeign => ended.push((event.tid, false)),
                Kind::Started | Kind::TriesExec | Kind::ReturnedFromExec => {}
            }
            if let Some(exe) = images.take(event, table, |tid| counter.image_of(tid)) {
                let text = format!("{exe} is a program of another machine and ran unwatched");
                problems.note(ProblemKind::Unwatched, text);
            }
        });
        sampling.take(counter, end, table, images);
        sampling.end_threads(&ended, table);
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
        if self.times_before.is_some() {
            let of_living = self.counter.living().iter().fold(0u64, |sum, slot| sum.saturating_add(slot.entered));
            return totals.entered.saturating_add(of_living);
        }
        if self.has_many_rows(totals) {
            return totals.entered;
        }
        let mut calls = self.taken.returned;
        self.counter.rows(|_, row| calls = calls.saturating_add(row.calls));
        calls
    }

    /// Returns true if so many rows are in the map that those of ended programs are to be taken out.
    fn has_many_rows(&self, totals: &Totals) -> bool {
        totals.rows.saturating_sub(self.taken.rows) > u64::from(self.counter.most_rows / BEFORE_TAKING)
    }

    /// Takes the rows of programs that have ended out of the kernel's maps, so that there is room for others.
    fn take_rows(&mut self) {
        let ended = self.images.take_ended();
        let (mut rows, mut errors) = (Vec::new(), Vec::new());
        self.counter.rows(|key, row| rows.extend(ended.get(&key.image).map(|image| (key, *image, row))));
        self.counter.errors(|key, n| errors.extend(ended.get(&key.image).map(|image| (key, *image, n))));
        for (key, image, row) in &rows {
            let contexts = self.sampling.places.contexts(image.space, key.place);
            add_row(&mut self.table, &self.sampling, (image.image, contexts), key, row);
            self.taken.add(row, contexts.len() < 2);
        }
        let images = &self.images;
        self.sampling.places.retain(&self.counter, |space| images.has_space(space));
        for (key, image, n) in &errors {
            let contexts = self.sampling.places.contexts(image.space, key.place);
            add_error(&mut self.table, (image.image, contexts), key, *n);
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
            let (image, space) = (images.of(key.image, table), images.space_of(key.image));
            let contexts = self.sampling.places.contexts(space, key.place);
            add_row(table, &self.sampling, (image, contexts), &key, &row);
            sums.add(&row, contexts.len() < 2);
        });
        self.counter.full_rows(|syscall, row| {
            sums.add(&row, true);
            sums.without_image += row.calls + row.unreturned;
            let image = images.of(0, table);
            let (id, _) = table.row(image, syscall, &[]);
            add_counts(table, id, &row, false);
        });
        for (key, n) in errors {
            let (image, space) = (images.of(key.image, table), images.space_of(key.image));
            add_error(table, (image, self.sampling.places.contexts(space, key.place)), &key, n);
        }
        for slot in self.counter.living() {
            if slot.number != NO_CALL {
                let row = Row { unreturned: 1, ..Row::default() };
                let (image, space) = (images.of(slot.call_image, table), images.space_of(slot.call_image));
                let key = RowKey { image: slot.call_image, place: slot.place, number: slot.number, processor: 0 };
                let contexts = self.sampling.places.contexts(space, key.place);
                add_row(table, &self.sampling, (image, contexts), &key, &row);
                sums.add(&row, contexts.len() < 2);
            }
        }
        sums.unknown_errors = self.counter.totals().no_error;
        sums
    }
}

impl Sums {
    fn add(&mut self, row: &Row, is_sure: bool) {
        self.unsure += if is_sure { 0 } else { row.calls };
        self.returned = self.returned.saturating_add(row.calls);
        self.unreturned = self.unreturned.saturating_add(row.unreturned);
    }
}

/// Returns the rows of a call in these contexts, each with the share of the calls at which it begins and ends, and the
/// number of shares.
fn rows_of(table: &mut Table, image: ImageId, number: u32, contexts: &[(u32, u64)]) -> (Vec<(u32, u64, u64)>, u64) {
    let syscall = Machine::HERE.call(number);
    let mut sum = 0;
    let mut rows: Vec<(u32, u64, u64)> = Vec::new();
    for (stack, samples) in contexts {
        let frames = table.stacks.get(*stack as usize).map(|stack| stack.frames.to_vec()).unwrap_or_default();
        rows.push((table.row(image, syscall, &frames).0, sum, sum + samples));
        sum += samples;
    }
    if rows.is_empty() {
        rows.push((table.row(image, syscall, &[]).0, 0, 1));
    }
    (rows, sum.max(1))
}

/// Adds a row of the kernel's to the table.
fn add_row(
    table: &mut Table,
    sampling: &Sampling,
    (image, contexts): (ImageId, &[(u32, u64)]),
    key: &RowKey,
    row: &Row,
) {
    let (rows, all) = rows_of(table, image, key.number, contexts);
    for (id, from, to) in rows {
        add_counts(table, id, &row.part(from, to, all), sampling.is_startup(id));
    }
}

/// Adds the counts of a row of the kernel's to a row of the table.
fn add_counts(table: &mut Table, id: u32, row: &Row, is_startup: bool) {
    let Some(to) = table.rows.get_mut(id as usize) else { return };
    let transfers = to.syscall.signature().is_some_and(|s| s.transfers);
    let counts = Counts {
        calls: row.calls,
        unreturned: row.unreturned,
        bytes: if transfers { row.results } else { 0 },
        elapsed_ns: row.elapsed,
        max_ns: row.longest,
        min_ns: (row.timed > 0).then_some(row.shortest),
        histogram: Histogram::from_buckets(row.histogram.to_vec()),
        waited_ns: (row.timed > 0).then_some(row.waited),
        startup_calls: if is_startup { row.calls } else { 0 },
        startup_waited_ns: if is_startup { row.waited } else { 0 },
        ..Counts::default()
    };
    to.counts.merge(&counts);
    to.entered = to.entered.saturating_add(row.calls).saturating_add(row.unreturned);
    table.calls = table.calls.saturating_add(row.calls);
}

/// Adds errors of the kernel's to the table.
fn add_error(table: &mut Table, (image, contexts): (ImageId, &[(u32, u64)]), key: &ErrorKey, errors: u64) {
    let Some(errno) = Errno::from_result(-i64::from(key.errno)) else { return };
    let (rows, all) = rows_of(table, image, key.number, contexts);
    for (id, from, to) in rows {
        let errors = part(errors, from, to, all);
        if let Some(row) = table.rows.get_mut(id as usize).filter(|_| errors > 0) {
            let sum = row.counts.errors.entry(errno).or_default();
            *sum = sum.saturating_add(errors);
        }
    }
}
