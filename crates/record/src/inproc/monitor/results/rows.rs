//! From an image's memory to rows of the table.

use crate::inproc::monitor::handles::{NodeAddr, SiteRef, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::results::clock::Clock;
use crate::inproc::monitor::results::cpu_time::Used;
use crate::inproc::monitor::results::estimate::Estimate;
use crate::inproc::monitor::results::images::image_of;
use crate::inproc::monitor::results::tally::Tally;
use crate::inproc::monitor::shared::snapshot::Snapshot;
use crate::table::{ImageId, RawLong, Table};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use systoll_hooks::assemble::{Node, Nodes, SlotCounts, Touched, Words};
use systoll_hooks::layout::{image, record, slot};
use systoll_hooks::numbers::{
    CLONE, CLONE3, EXECVE, EXECVEAT, EXIT, EXIT_GROUP, FORK, RT_SIGRETURN, SCHED_YIELD, VFORK,
};
use systoll_model::{Counts, Errno, Sysno};
use systoll_symbols::RawFrame;

/// Windows of a thread that had no room, at most.
const MOST_REFUSED: u64 = 1 << 32;

/// Of the kernel's include/linux/errno.h.
const ERESTARTSYS: u16 = 512;
const ERESTARTNOINTR: u16 = 513;
const MAKES_PROCESSES: [u32; 4] = [CLONE, FORK, VFORK, CLONE3];

/// An image's counts on their way to the table.
pub(crate) struct RowBuilder<'a> {
    table: &'a mut Table,
    pub(crate) program: &'a mut Program,
    nodes: Nodes,
    /// Files with a region of their own, by their place among the nodes' files.
    used: Vec<usize>,
    /// Frames of nodes, once a thread has counted there.
    frames: foldhash::HashMap<usize, Rc<[RawFrame]>>,
    /// What the first thread had counted when `main` began, if that is known.
    startup: Option<HashMap<usize, SlotCounts>>,
    /// How many long calls it had kept by then, likewise.
    startup_long: Option<u64>,
    /// Rows of nodes at which this slot's thread has counted.
    rows: foldhash::HashMap<usize, Counted>,
    clock: Clock,
    now: u64,
    tally: Tally,
}

impl<'a> RowBuilder<'a> {
    pub(crate) fn new(
        table: &'a mut Table,
        program: &'a mut Program,
        (nodes, used): (Nodes, Vec<usize>),
        (clock, now): (Clock, u64),
    ) -> Self {
        let tally = Tally { losses: nodes.losses, ..Tally::default() };
        let (frames, rows) = Default::default();
        Self { table, program, nodes, used, frames, startup: None, startup_long: None, rows, clock, now, tally }
    }

    /// Adds what slot `index` holds.
    pub(crate) fn slot(&mut self, words: &Snapshot, index: u64) {
        let Some(slot) = self.nodes.slot(words, index) else { return };
        self.tally.losses.add(&slot.losses);
        self.tally.in_place.add(&slot.in_place);
        // The word is the program's: no more than there can be.
        let refused = words.word(SlotRef::offset_of(index) + slot::RING_REFUSED).min(MOST_REFUSED);
        self.tally.unopened = self.tally.unopened.saturating_add(refused);
        let Some(thread) = slot.thread else { return };
        let pid = thread.pid as i32;
        if index == 0
            && let Some(at_main) = self.program.contexts.at_main.take()
        {
            let at_main = Snapshot::of(at_main);
            let then = self.nodes.slot(&at_main, 0);
            self.startup = then.map(|s| s.counts.into_iter().collect());
            self.startup_long = Some(at_main.word(SlotRef::offset_of(0) + slot::LONG_COUNT));
        }
        let field = |offset| words.word(SlotRef::offset_of(index) + offset);
        let has_rseq = field(slot::RSEQ) != 0;
        if pid > 0 {
            let used = Used::read(field, self.program.processes.execed.contains(&pid));
            self.tally.used.entry(pid).or_default().add(&used);
        }
        let told = self.clock.possible(&slot.counts);
        self.tally.losses.damaged += slot.counts.len().saturating_sub(told.len()) as u64;
        self.rows.clear();
        let by = Counter { slot: index, pid, tid: thread.tid, has_rseq };
        for (node, counts) in told {
            self.row(*node, counts, by);
        }
        self.long_calls(words, by);
        if index + 1 < image::SLOT_COUNT && (index == 0 || pid != 0) {
            let image = image_of(self.program, self.table, pid, self.now);
            let threads = self.tally.threads.entry(image).or_default();
            threads.threads += 1;
            threads.processes.insert(pid);
        }
    }

    /// Adds one thread's counts at a node.
    fn row(&mut self, index: usize, counts: &SlotCounts, by: Counter) {
        let Counter { slot, pid, tid, has_rseq } = by;
        let Some(node) = self.nodes.all.get(index) else { return };
        let place = node.site.and_then(|(file, site)| Some(SiteRef { file: *self.used.get(file)?, site }));
        let site = place.and_then(|at| self.program.hooks.files.get(at.file)?.code.blob.sites.get(at.site));
        if site.is_some_and(|s| s.vdso) {
            self.tally.vdso_calls = self.tally.vdso_calls.saturating_add(counts.entered);
            return self.vdso(index, place, pid, counts.entered);
        }
        let Some(number) = node.number else { return };
        let results = site.is_none_or(|s| s.results);
        let frames = self.frames.entry(index).or_insert_with(|| frames_of(self.program, place, node));
        let image = image_of(self.program, self.table, pid, self.now);
        let (id, _) = self.table.row(image, Sysno(number), frames);
        self.rows.insert(index, Counted { row: id, image, longest: counts.longest });
        let execed = (number == EXECVE || number == EXECVEAT) && self.program.threads.gone_by_exec.contains(&slot);
        let seen = Seen { results, matched: self.nodes.losses.unmatched == 0, execed, has_rseq };
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
            self.note_startup(index, number, &mut add, seen);
        }
        let address = self.nodes.all.get(index).map_or(NodeAddr(0), |n| NodeAddr(n.address));
        if counts.entered > 0
            && let Some(met) = self.program.contexts.unopened.iter().position(|unopened| *unopened == address)
        {
            self.program.contexts.unopened.swap_remove(met);
            self.tally.unopened += 1;
        }
        self.table.calls = self.table.calls.saturating_add(add.calls);
        self.table.by_thread(image, tid, Sysno(number), &add);
        if let Some(raw) = self.table.rows.get_mut(id as usize) {
            raw.entered = raw.entered.saturating_add(counts.entered);
            raw.counts.merge(&add);
        }
    }

    /// Adds the long calls that a thread has kept one by one: what there can be of them by its counts.
    fn long_calls(&mut self, words: &Snapshot, by: Counter) {
        let Some(longer_ns) = self.table.longer_ns else { return };
        for call in self.nodes.long_calls(words, by.slot) {
            let Some(counted) = self.rows.get(&call.node) else { continue };
            let ns = self.clock.ns(call.cycles as f64);
            let at = self.clock.at_ns(call.start).filter(|_| call.cycles <= counted.longest);
            let (Some(at_ns), true) = (at, ns >= longer_ns && self.table.is_long(ns)) else { continue };
            let is_first = by.slot == 0 && by.pid == self.program.pid;
            let startup = is_first && self.startup_long.is_none_or(|kept| call.nth < kept);
            let (row, image) = (counted.row, counted.image);
            let thread = self.table.thread_told(image, by.tid);
            self.table.long(RawLong { ns, row, at_ns, thread, startup });
        }
    }

    /// Adds calls at a node of the vDSO.
    fn vdso(&mut self, index: usize, place: Option<SiteRef>, pid: i32, calls: u64) {
        let function = place.and_then(|at| {
            let file = self.program.hooks.files.get(at.file)?;
            let address = file.code.blob.sites.get(at.site)?.address;
            Some(file.known.plan.entries.iter().find(|e| e.address == address)?.function.name())
        });
        let (Some(function), Some(node)) = (function, self.nodes.all.get(index)) else { return };
        let frames = self.frames.entry(index).or_insert_with(|| frames_of(self.program, place, node));
        let image = image_of(self.program, self.table, pid, self.now);
        if calls > 0 {
            self.table.vdso(image, function, frames, calls);
        }
    }

    /// How much of what the first thread counted at a node was before `main`: all, where the launcher has not
    /// seen that begin.
    fn note_startup(&self, node: usize, number: u32, add: &mut Counts, seen: Seen) {
        let (calls, waited) = match &self.startup {
            None => (add.calls, add.waited_ns.unwrap_or(0)),
            Some(then) => then.get(&node).map_or((0, 0), |counts| {
                let then = counts_of(number, counts, Seen { execed: false, ..seen }, self.clock);
                (then.calls, then.waited_ns.unwrap_or(0))
            }),
        };
        add.startup_calls = calls.min(add.calls);
        add.startup_waited_ns = waited.min(add.waited_ns.unwrap_or(0));
    }

    pub(crate) fn end(self) -> (Tally, Nodes) {
        (self.tally, self.nodes)
    }
}

/// The program's files that have a region of their own, by index.
pub(crate) fn files_used(program: &Program) -> Vec<usize> {
    let mut regions = HashSet::new();
    (0..program.hooks.files.len()).filter(|i| regions.insert(program.hooks.files[*i].known.region)).collect()
}

/// A program's trees as they are in `image`, of which only nodes where something is `counted` may be wanted, and the
/// files they are of.
pub(crate) fn nodes_of(program: &Program, image: &Snapshot, counted: Option<&Touched>) -> (Nodes, Vec<usize>) {
    let used = files_used(program);
    let files: Vec<_> =
        used.iter().filter_map(|i| program.hooks.files.get(*i)).map(|f| (f.known.region, &f.code.blob)).collect();
    let nodes = match counted {
        Some(counted) => Nodes::read_counted(image, &files, counted),
        None => Nodes::read(image, &files),
    };
    (nodes, used)
}

/// The frames of a row: as they were when the context was first seen.
fn frames_of(program: &Program, site: Option<SiteRef>, node: &Node) -> Rc<[RawFrame]> {
    let Some(site) = site else { return Rc::default() };
    if let Some(frames) = program.contexts.nodes.get(&NodeAddr(node.address)) {
        return Rc::clone(frames);
    }
    let leaf = program.leaf(site);
    leaf.into_iter().chain(node.path.iter().map(|a| program.space.frame(*a, true))).collect()
}

/// The thread that has counted.
#[derive(Clone, Copy)]
struct Counter {
    slot: u64,
    pid: i32,
    tid: u32,
    /// Waiting is told from working.
    has_rseq: bool,
}

/// Where a thread's calls at a node were added.
#[derive(Clone, Copy)]
struct Counted {
    row: u32,
    image: ImageId,
    /// Cycles of the longest.
    longest: u64,
}

/// What is known of a row's calls beside their counts.
#[derive(Clone, Copy)]
struct Seen {
    /// Returns are seen to.
    results: bool,
    /// All returns were matched with their calls.
    matched: bool,
    /// One of them became another program.
    execed: bool,
    /// Waiting is told from working.
    has_rseq: bool,
}

/// Calls that the kernel has ended. What a handler interrupted it had: a thread that jumps out of the
/// handler never sees the result, but the call was made.
fn ended(number: u32, slot: &SlotCounts, seen: Seen) -> u64 {
    match slot.entered.checked_sub(slot.returned) {
        _ if matches!(number, EXIT | EXIT_GROUP) => 0,
        _ if !seen.results => slot.entered,
        Some(open) if seen.matched => slot.entered - u64::from(slot.under_way).min(open),
        _ => slot.returned,
    }
}

/// One thread's figures, in the recording's terms.
fn counts_of(number: u32, slot: &SlotCounts, seen: Seen, clock: Clock) -> Counts {
    let mut counts =
        Counts { calls: ended(number, slot, seen), bytes: slot.bytes, elided: slot.elided, ..Counts::default() };
    counts.unreturned = slot.entered.saturating_sub(counts.calls);
    if seen.execed && counts.unreturned > 0 {
        counts.unreturned -= 1;
        counts.calls += 1;
    }
    for (errno, n) in &slot.errors {
        // Made again, a call that makes a process has another word for it.
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
    // Where waiting can't be told, all of a sleep would pass for work, and the turns of others too.
    let may_wait = number == SCHED_YIELD || Sysno(number).signature().is_none_or(|s| s.may_block);
    counts.toll_ns = (seen.has_rseq || !may_wait).then(|| clock.ns(worked));
    counts.waited_ns = seen.has_rseq.then(|| clock.ns(time.waited));
    for (power, n) in (0i32..record::BUCKETS as i32).zip(&time.histogram) {
        if *n > 0 {
            // The middle of the power's range.
            counts.histogram.add_many(clock.ns(1.5 * 2f64.powi(power)), *n);
        }
    }
    counts
}
