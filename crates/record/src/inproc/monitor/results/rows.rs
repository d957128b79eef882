//! Turns the counts of a program's threads into rows of the table.

use crate::inproc::monitor::handles::{NodeAddr, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::results::clock::Clock;
use crate::inproc::monitor::results::cpu_time::ProcessorUse;
use crate::inproc::monitor::results::estimate::Estimate;
use crate::inproc::monitor::results::images::image_of;
use crate::inproc::monitor::results::tally::Tally;
use crate::inproc::monitor::shared::snapshot::Snapshot;
use crate::long_calls::RawLong;
use crate::table::{ImageId, Table};
use std::rc::Rc;
use systoll_hooks::assemble::{LongCalls, Losses, SlotCounts, TrunkLooks, Words, long_calls, read_slot};
use systoll_hooks::layout::{image, number_of_root, record, slot};
use systoll_hooks::numbers::{
    CLONE, CLONE3, EXECVE, EXECVEAT, EXIT, EXIT_GROUP, FORK, RT_SIGRETURN, SCHED_YIELD, VFORK,
};
use systoll_model::{Counts, Errno, LONG_WAIT_NS, RowId, Sysno, WaitSpan};
use systoll_symbols::RawFrame;

/// Largest number that is believed of windows that a thread could not write for lack of room.
const MOST_REFUSED: u64 = 1 << 32;

/// Errors of the kernel's include/linux/errno.h.
const ERESTARTSYS: u16 = 512;
const ERESTARTNOINTR: u16 = 513;
const MAKES_PROCESSES: [u32; 4] = [CLONE, FORK, VFORK, CLONE3];

/// State while an image's counts are added to the table.
pub(crate) struct RowBuilder<'a> {
    table: &'a mut Table,
    pub(crate) program: &'a mut Program,
    /// Losses noted in the whole image.
    losses: Losses,
    /// The calls and the context that each record counts, as far as they were looked up.
    places: foldhash::HashMap<u64, Option<Rc<CountedRecord>>>,
    /// The first thread's counts when `main` began, by record, if they are known.
    startup: Option<Vec<(u64, SlotCounts)>>,
    /// Number of long calls that the first thread had kept when `main` began, if known.
    startup_long: Option<u64>,
    /// Rows of the records at which the current slot's thread has counted.
    rows: foldhash::HashMap<u64, CountedRow>,
    clock: Clock,
    now: u64,
    tally: Tally,
}

impl<'a> RowBuilder<'a> {
    pub(crate) fn new(
        table: &'a mut Table,
        program: &'a mut Program,
        losses: Losses,
        (clock, now): (Clock, u64),
    ) -> Self {
        let tally = Tally { losses, ..Tally::default() };
        let (places, rows) = Default::default();
        Self { table, program, losses, places, startup: None, startup_long: None, rows, clock, now, tally }
    }

    /// Adds all counts of slot `index`.
    pub(crate) fn slot(&mut self, words: &impl Words, index: u64) {
        let Some(slot) = read_slot(words, index, |node| self.program.hooks.room.record_of(node)) else { return };
        if slot.thread.as_ref().is_some_and(|thread| !self.program.processes.tells(thread.pid as i32)) {
            return;
        }
        self.tally.losses.add(&slot.losses);
        self.tally.in_place.add(&slot.in_place);
        // The program can write this word, so it is bounded.
        let refused = words.word(SlotRef::offset_of(index) + slot::RING_REFUSED).min(MOST_REFUSED);
        self.tally.unopened = self.tally.unopened.saturating_add(refused);
        let Some(thread) = slot.thread else { return };
        let pid = thread.pid as i32;
        if index == 0
            && let Some(at_main) = self.program.contexts.at_main.take()
        {
            let at_main = Snapshot::of(at_main);
            self.startup = read_slot(&at_main, 0, |node| self.program.hooks.room.record_of(node))
                .map(|then| then.counts(&at_main).collect());
            self.startup_long = Some(at_main.word(SlotRef::offset_of(0) + slot::LONG_COUNT));
        }
        let field = |offset| words.word(SlotRef::offset_of(index) + offset);
        let has_rseq = field(slot::RSEQ) != 0;
        if pid > 0 {
            let used = ProcessorUse::read(field, self.program.processes.execed.contains(&pid));
            self.tally.used.entry(pid).or_default().add(&used);
        }
        self.rows.clear();
        let by = Counter { slot: index, pid, tid: thread.tid, has_rseq };
        let mut possible = self.clock.possible();
        for (record, counts) in slot.counts(words) {
            if possible.has(&counts) {
                self.row(record, &counts, by);
            } else {
                self.tally.losses.damaged += 1;
            }
        }
        self.long_calls(words, by);
        if index + 1 < image::SLOT_COUNT && (index == 0 || pid != 0) {
            let image = image_of(self.program, self.table, pid, self.now);
            let threads = self.tally.threads.entry(image).or_default();
            threads.threads += 1;
            threads.processes.insert(pid);
        }
    }

    /// Adds one thread's counts at a record.
    fn row(&mut self, record: u64, counts: &SlotCounts, by: Counter) {
        let Counter { slot, pid, tid, has_rseq } = by;
        let known = self.places.entry(record).or_insert_with(|| CountedRecord::of(record, self.program).map(Rc::new));
        let Some(at) = known.clone() else {
            self.tally.losses.damaged += 1;
            return;
        };
        let number = match at.what {
            CountedCalls::Vdso(function) => {
                self.tally.vdso_calls = self.tally.vdso_calls.saturating_add(counts.entered);
                return self.vdso(function, &at.frames, pid, counts.entered);
            }
            CountedCalls::Unknown => return,
            CountedCalls::Call(number) => number,
        };
        let results = at.results;
        let image = image_of(self.program, self.table, pid, self.now);
        let (id, _) = self.table.row(image, Sysno(number), &at.frames);
        self.rows.insert(record, CountedRow { row: id, image, longest: counts.longest });
        let execed = (number == EXECVE || number == EXECVEAT) && self.program.threads.gone_by_exec.contains(&slot);
        let seen = RowFacts { results, matched: self.losses.unmatched == 0, execed, has_rseq };
        let mut add = counts_of(number, counts, seen, self.clock);
        let untold = if add.toll_ns.is_none() && add.elapsed_ns > 0 { add.calls } else { 0 };
        self.tally.untold = self.tally.untold.saturating_add(untold);
        if Sysno(number).is_x32() {
            let refused = add.errors.get(&Errno(libc::ENOSYS as u16)).copied().unwrap_or(0);
            self.tally.foreign = self.tally.foreign.saturating_add(add.calls.saturating_sub(refused));
        }
        if !results && number != RT_SIGRETURN && add.calls > 0 {
            let blind = self.tally.blind.entry(Sysno(number)).or_default();
            *blind = blind.saturating_add(add.calls);
        }
        if slot == 0 && pid == self.program.pid {
            self.note_startup(record, number, &mut add, seen);
        }
        if counts.entered > 0
            && let Some(met) = self.program.contexts.unopened.iter().position(|unopened| *unopened == at.node)
        {
            self.program.contexts.unopened.swap_remove(met);
            self.tally.unopened += 1;
        }
        if counts.entered > 0 {
            self.trunk(id, &at, counts);
        }
        self.table.calls = self.table.calls.saturating_add(add.calls);
        self.table.by_thread(image, tid, Sysno(number), &add);
        if let Some(raw) = self.table.rows.get_mut(id as usize) {
            raw.entered = raw.entered.saturating_add(counts.entered);
            raw.counts.merge(&add);
        }
    }

    /// Adds the results of comparing a thread's stacks with the known trunk above a context.
    fn trunk(&mut self, row: u32, at: &CountedRecord, counts: &SlotCounts) {
        let Some(above) = self.program.contexts.trunks.get(&at.node) else { return };
        let whole: Vec<RawFrame> = at.frames.iter().chain(&above.frames).copied().collect();
        // A context that is the whole stack needs no comparison.
        let of_itself = TrunkLooks { looks: 1, seen: counts.entered, ..TrunkLooks::default() };
        let looks = if above.frames.is_empty() { of_itself } else { counts.trunk };
        if looks.looks > 0 {
            self.table.stack_found(row, (&whole, above.complete), looks.looks, looks.seen);
            if let Some(known) = self.program.contexts.known.get(&at.node) {
                known.note_seen();
            }
        }
        if looks.others > 0 {
            let shared = whole.len().saturating_sub(usize::try_from(looks.missed).unwrap_or(usize::MAX));
            self.table.stack_missed(row, (&whole, above.complete), shared.max(at.frames.len()), looks.others);
        }
    }

    /// Adds the long calls that a thread has kept, and the call in which it is, as far as its counts allow for them.
    fn long_calls(&mut self, words: &impl Words, by: Counter) {
        let record_of = |node| self.program.hooks.room.record_of(node);
        let LongCalls { calls, overwritten, pending } = long_calls(words, by.slot, record_of);
        self.table.waits.overwritten = self.table.waits.overwritten.saturating_add(overwritten.min(MOST_REFUSED));
        for call in calls.into_iter().chain(pending) {
            let Some(counted) = self.rows.get(&call.record) else { continue };
            let is_over = call.result.is_some();
            let at = self.clock.at_ns(call.start).filter(|_| !is_over || call.cycles <= counted.longest);
            let Some(at_ns) = at else { continue };
            let ns = if is_over { self.clock.ns(call.cycles as f64) } else { self.now.saturating_sub(at_ns) };
            let (row, image) = (counted.row, counted.image);
            if ns >= LONG_WAIT_NS && call.waited != Some(false) {
                let (pid, result) = (by.pid as u32, call.result);
                let line = self.table.sampled_calls.line_of(row, by.tid, call.entered);
                let (begin_ns, args, tid) = (at_ns, call.args, by.tid);
                let until_ns = begin_ns.saturating_add(ns);
                let queued_most_ns = self.table.queued.most_within((pid, tid), (begin_ns, until_ns));
                let row = RowId(row);
                let span = WaitSpan { row, pid, tid, begin_ns, ns, args, result, line, object: None, queued_most_ns };
                self.table.waited_long(span);
            }
            if is_over
                && self.table.slowest.longer_ns.is_some_and(|longer_ns| ns >= longer_ns)
                && self.table.slowest.is_long(ns)
            {
                let is_first = by.slot == 0 && by.pid == self.program.pid;
                let startup = is_first && self.startup_long.is_none_or(|kept| call.nth < kept);
                let thread = self.table.thread_label(image, by.tid);
                self.table.slowest.add(RawLong { ns, row, at_ns, thread, startup });
            }
        }
    }

    /// Adds calls of a function of the vDSO.
    fn vdso(&mut self, function: &'static str, frames: &[RawFrame], pid: i32, calls: u64) {
        let image = image_of(self.program, self.table, pid, self.now);
        if calls > 0 {
            self.table.vdso(image, function, frames, calls);
        }
    }

    /// Splits off the calls that the first thread counted at a record before `main`: all of them, if the launcher has
    /// not seen `main` begin.
    fn note_startup(&self, record: u64, number: u32, add: &mut Counts, seen: RowFacts) {
        let counted = |then: &[(u64, SlotCounts)]| {
            let at = then.binary_search_by_key(&record, |(record, _)| *record).ok()?;
            let (_, counts) = then.get(at)?;
            let then = counts_of(number, counts, RowFacts { execed: false, ..seen }, self.clock);
            Some((then.calls, then.waited_ns.unwrap_or(0)))
        };
        let (calls, waited) = match &self.startup {
            None => (add.calls, add.waited_ns.unwrap_or(0)),
            Some(then) => counted(then).unwrap_or((0, 0)),
        };
        add.startup_calls = calls.min(add.calls);
        add.startup_waited_ns = waited.min(add.waited_ns.unwrap_or(0));
    }

    pub(crate) fn end(self) -> Tally {
        self.tally
    }
}

/// The call and the context that are counted at a record.
struct CountedRecord {
    node: NodeAddr,
    what: CountedCalls,
    /// True if the results of the calls are seen there.
    results: bool,
    /// Frames of the stack when the context was first seen.
    frames: Rc<[RawFrame]>,
}

/// The calls that a record counts.
#[derive(Clone, Copy)]
enum CountedCalls {
    Call(u32),
    /// Calls into the vDSO, by function.
    Vdso(&'static str),
    /// Calls of an unknown number.
    Unknown,
}

impl CountedRecord {
    /// Returns the calls and the context that the launcher has assigned to a record; `None` if it has assigned none.
    fn of(record: u64, program: &Program) -> Option<Self> {
        let place = program.hooks.room.place(record)?;
        let (node, root) = (NodeAddr(place.node), NodeAddr(place.root));
        let by_number = |number| Self { node, what: CountedCalls::Call(number), results: true, frames: Rc::default() };
        let Some(at) = program.site_of(root) else { return number_of_root(root.0).map(by_number) };
        let file = program.hooks.files.get(at.file)?;
        let site = file.code.blob.sites.get(at.site)?;
        let what = if site.vdso {
            let entry = file.known.plan.entries.iter().find(|e| e.address == site.address);
            entry.map_or(CountedCalls::Unknown, |entry| CountedCalls::Vdso(entry.function.name()))
        } else {
            program.number_of(root).map_or(CountedCalls::Unknown, CountedCalls::Call)
        };
        let frames = match program.contexts.nodes.get(&node) {
            Some(frames) => Rc::clone(frames),
            None => program.leaf(at).into_iter().collect(),
        };
        Some(Self { node, what, results: site.results, frames })
    }
}

/// The thread whose counts are added.
#[derive(Clone, Copy)]
struct Counter {
    slot: u64,
    pid: i32,
    tid: u32,
    /// True if the thread's rseq area tells waiting from working.
    has_rseq: bool,
}

/// The row to which a thread's calls at a node were added.
#[derive(Clone, Copy)]
struct CountedRow {
    row: u32,
    image: ImageId,
    /// Cycles of the longest call.
    longest: u64,
}

/// Facts about a row's calls besides their counts.
#[derive(Clone, Copy)]
struct RowFacts {
    /// True if returns are hooked.
    results: bool,
    /// True if every return was matched with its call.
    matched: bool,
    /// True if one of the calls replaced the process by another program.
    execed: bool,
    /// True if the thread's rseq area tells waiting from working.
    has_rseq: bool,
}

/// Returns the number of calls that the kernel has ended. This includes calls that a handler interrupted: if the thread
/// jumps out of the handler it never sees the result, but the call was made.
fn ended(number: u32, slot: &SlotCounts, seen: RowFacts) -> u64 {
    match slot.entered.checked_sub(slot.returned) {
        _ if matches!(number, EXIT | EXIT_GROUP) => 0,
        _ if !seen.results => slot.entered,
        Some(open) if seen.matched => slot.entered - u64::from(slot.under_way).min(open),
        _ => slot.returned,
    }
}

/// Converts one thread's figures into the counts of a recording.
fn counts_of(number: u32, slot: &SlotCounts, seen: RowFacts, clock: Clock) -> Counts {
    let mut counts =
        Counts { calls: ended(number, slot, seen), bytes: slot.bytes, elided: slot.elided, ..Counts::default() };
    counts.unreturned = slot.entered.saturating_sub(counts.calls);
    if seen.execed && counts.unreturned > 0 {
        counts.unreturned -= 1;
        counts.calls += 1;
    }
    for (errno, n) in &slot.errors {
        // The kernel uses another errno to restart a call that makes a process.
        let errno = if *errno == ERESTARTSYS && MAKES_PROCESSES.contains(&number) { ERESTARTNOINTR } else { *errno };
        if let Some(errno) = Errno::from_result(-i64::from(errno)) {
            let errors = counts.errors.entry(errno).or_default();
            *errors = errors.saturating_add(*n);
        }
    }
    let Some(time) = Estimate::of(slot) else { return counts };
    counts.elapsed_ns = clock.ns(time.cycles);
    counts.untimed = time.untimed;
    counts.elapsed_error_ns = clock.ns(time.error.ceil());
    counts.max_ns = clock.ns(slot.longest as f64);
    counts.min_ns = slot.shortest.map(|cycles| clock.ns(cycles as f64).min(counts.max_ns));
    let worked = time.cycles - time.waited - clock.own_cycles * time.calls as f64;
    // Without an rseq area, a sleep and other threads' turns would count as work.
    let may_wait = number == SCHED_YIELD || Sysno(number).signature().is_none_or(|s| s.may_block);
    counts.toll_ns = (seen.has_rseq || !may_wait).then(|| clock.ns(worked));
    counts.waited_ns = seen.has_rseq.then(|| clock.ns(time.waited));
    for (power, n) in (0i32..record::BUCKETS as i32).zip(&time.histogram) {
        if *n > 0 {
            // Each call is taken to lie in the middle of its power of two.
            counts.histogram.add_many(clock.ns(1.5 * 2f64.powi(power)), *n);
        }
    }
    counts
}
