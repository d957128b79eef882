//! From an image's memory to rows of the table.

use super::cpu::{Ours, Used};
use super::engine::Engine;
use super::memory::{Memory, Snapshot};
use super::program::Program;
use super::sys;
use crate::table::{Image, Table};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use systoll_hooks::assemble::{Losses, MadeInPlace, Node, Nodes, SlotCounts, Words, slots_drawn};
use systoll_hooks::layout::{image, record, slot};
use systoll_hooks::numbers::{
    CLONE, CLONE3, EXECVE, EXECVEAT, EXIT, EXIT_GROUP, FORK, RT_SIGRETURN, SCHED_YIELD, VFORK,
};
use systoll_model::{Counts, Errno, ProblemKind, Sysno};
use systoll_symbols::RawFrame;

/// Of the kernel's include/linux/errno.h.
const ERESTARTSYS: u16 = 512;
const ERESTARTNOINTR: u16 = 513;
const MAKES_PROCESSES: [u32; 4] = [CLONE, FORK, VFORK, CLONE3];

/// What cycles are worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) per_ns: f64,
    /// Cycles of every timed call that are our own.
    pub(super) own_cycles: f64,
    /// Cycles there have been since the run began.
    pub(super) cycles: u64,
}

impl Clock {
    pub(super) fn ns(&self, cycles: f64) -> u64 {
        (cycles.max(0.0) / self.per_ns) as u64
    }
}

/// What an image's reading comes to beside rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    pub(super) vdso_calls: u64,
    /// Processor time its threads have spent on asking.
    pub(super) asking: Ours,
    /// What each process has used of a processor, by its own word.
    pub(super) used: BTreeMap<i32, Used>,
    pub(super) losses: Losses,
    /// Calls made that were to be answered in place.
    pub(super) in_place: MadeInPlace,
    /// Nodes that were met for the first time when no window could be afforded.
    pub(super) unopened: u64,
    /// Calls whose return nobody saw to, so that their errors are not known, by system call.
    pub(super) blind: BTreeMap<Sysno, u64>,
    /// Calls of the x32 ABI that were not refused.
    pub(super) foreign: u64,
    /// Calls that can block and have no toll, because nothing tells waiting from working.
    pub(super) untold: u64,
    /// Threads that had a slot, by image.
    threads: BTreeMap<u32, Threads>,
}

impl Beside {
    fn add(&mut self, more: &Self) {
        self.vdso_calls = self.vdso_calls.saturating_add(more.vdso_calls);
        self.asking.add(more.asking);
        for (pid, used) in &more.used {
            self.used.entry(*pid).or_default().add(used);
        }
        self.losses.add(&more.losses);
        self.in_place.add(&more.in_place);
        self.unopened += more.unopened;
        self.untold = self.untold.saturating_add(more.untold);
        self.foreign = self.foreign.saturating_add(more.foreign);
        for (syscall, n) in &more.blind {
            let blind = self.blind.entry(*syscall).or_default();
            *blind = blind.saturating_add(*n);
        }
        for (image, more) in &more.threads {
            let threads = self.threads.entry(*image).or_default();
            threads.threads += more.threads;
            threads.processes.extend(&more.processes);
        }
    }
}

/// Threads of an image, and the processes they were of: several where images are folded.
#[derive(Clone, Debug, Default)]
struct Threads {
    threads: u64,
    processes: BTreeSet<i32>,
}

impl Engine {
    /// The image of the process that slot `index` of program `id` belongs to, taken in if it is new.
    pub(super) fn image_of_slot(&mut self, id: u32, index: u64) -> Option<u32> {
        let area = self.memory.image(id)?;
        let base = image::SLOTS + index * slot::SIZE;
        let pid = area.get(base + slot::PID) as i32;
        let now = self.at(sys::now());
        let program = self.programs.get_mut(&id)?;
        note_maker(&self.memory, program, &mut self.table, (index, now));
        Some(image_of(program, &mut self.table, pid, now))
    }

    /// The image in the table of process `pid` of a program, to which it no longer belongs.
    pub(super) fn image_for(&mut self, program: &mut Program, pid: i32, now: u64) -> u32 {
        let image = image_of(program, &mut self.table, pid, now);
        program.forks.remove(&pid);
        image
    }

    /// Looks for programs that have ended.
    pub(super) fn find_ended(&mut self) {
        self.ended = self.programs.keys().copied().filter(|id| !self.is_alive(*id)).collect();
    }

    /// Takes the counts of one program that has ended and gives its memory back; whether there was
    /// one. Never of all at once: meanwhile somebody may be waiting for an answer.
    pub(super) fn harvest_ended(&mut self) -> bool {
        let Some(id) = self.ended.pop() else { return false };
        if let Some(mut program) = self.programs.remove(&id) {
            let beside = self.harvest(&mut program);
            self.take(&program, &beside);
            self.end_images(&program);
            self.close_windows(id);
            self.memory.free_image(id);
        }
        true
    }

    /// Takes the counts of all programs, which have ended or are no longer watched.
    pub(super) fn harvest_all(&mut self) {
        let mut ids: Vec<u32> = self.programs.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            if let Some(mut program) = self.programs.remove(&id) {
                let beside = self.harvest(&mut program);
                self.take(&program, &beside);
                self.end_images(&program);
                self.close_windows(id);
            }
        }
    }

    fn end_images(&mut self, program: &Program) {
        let now = self.at(sys::now());
        let first = (!program.first_has_parted).then_some(&program.image);
        for id in program.forks.values().chain(first) {
            self.end_image(*id, now);
        }
    }

    /// Notes an image's end, unless it has ended before.
    pub(super) fn end_image(&mut self, id: u32, now: u64) {
        let Some(image) = self.table.images.get_mut(id as usize).filter(|i| i.end_ns == 0) else { return };
        image.end_ns = now;
        image.life_ns += now.saturating_sub(image.start_ns);
    }

    pub(super) fn take(&mut self, program: &Program, beside: &Beside) {
        if self.memory.is_sealed_off(program.id) {
            let exe = self.table.images.get(program.image as usize).map(|i| i.exe.clone()).unwrap_or_default();
            let what = "has sealed the memory it shares with systoll: what it did is not all known";
            self.problem(ProblemKind::Lost, format!("{exe} {what}"));
        }
        self.vdso_calls = self.vdso_calls.saturating_add(beside.vdso_calls);
        self.windows.refused += beside.unopened;
        self.in_place.add(&beside.in_place);
        self.asked.add(beside.asking);
        self.note_losses(program, beside);
    }

    /// Whether any process of a program may still run its code.
    fn is_alive(&self, id: u32) -> bool {
        let Some(program) = self.programs.get(&id) else { return false };
        if program.newborn.is_some() {
            return sys::exists(program.pid);
        }
        let mut asked = HashSet::new();
        (0..self.slots_drawn(id)).any(|index| {
            let head = self.memory.head(id, index);
            let pid = head.pid as i32;
            let gone = program.gone_by_exec.contains(&index) || head.own == 0;
            !gone && (pid == 0 || (asked.insert(pid) && sys::exists(pid)))
        })
    }

    /// Whether any process that a program's slots name has its image mapped.
    pub(super) fn is_mapped(&self, id: u32) -> bool {
        let pids: HashSet<i32> = (0..self.slots_drawn(id)).map(|n| self.memory.head(id, n).pid as i32).collect();
        pids.into_iter().any(|pid| pid > 0 && super::peer::maps_image(pid, id))
    }

    /// Programs of which a process may be alive.
    pub(super) fn living(&self) -> usize {
        self.programs.keys().filter(|id| self.is_alive(**id)).count()
    }

    pub(super) fn clock(&self) -> Clock {
        let cycles = sys::tsc().saturating_sub(self.start_cycles);
        Clock { per_ns: self.ratio.so_far(), own_cycles: self.around.own_cycles, cycles }
    }

    /// Adds what a program has counted, but for slots given back before, to the table. What it
    /// comes to beside includes them.
    pub(super) fn harvest(&mut self, program: &mut Program) -> Beside {
        let snapshot = self.memory.snapshot(program.id);
        let slots: Vec<u64> = slots_drawn(&snapshot).collect();
        let (nodes, used) = nodes_of(program, &snapshot);
        let (mut beside, _) = self.fill(program, (nodes, used), &slots);
        beside.add(&program.recycled);
        let now = self.at(sys::now());
        for (pid, used) in std::mem::take(&mut beside.used) {
            let image = image_of(program, &mut self.table, pid, now);
            beside.asking.add(used.settle(&mut self.table, program, (pid, image), self.asking));
        }
        for (image, seen) in &beside.threads {
            if let Some(image) = self.table.images.get_mut(*image as usize) {
                // The first thread of each process is counted with its image.
                image.threads += (seen.threads).saturating_sub(seen.processes.len() as u64);
            }
        }
        beside
    }

    /// Adds what some slots of a program hold to the table, before they are wiped.
    pub(super) fn harvest_slots(&mut self, program: &mut Program, slots: &[u64]) {
        // Threads come and go, the trees stay the same.
        let now = (program.room.clone(), program.files.len());
        let known = program.trees.take().filter(|(room, files, _)| (room, *files) == (&now.0, now.1));
        let (nodes, used) = match known {
            Some((_, _, nodes)) => (nodes, files_used(program)),
            None => nodes_of(program, &self.memory.snapshot(program.id)),
        };
        let (mut beside, nodes) = self.fill(program, (nodes, used), slots);
        program.trees = Some((now.0, now.1, nodes));
        // What the whole image lacks is read at its end.
        beside.losses = Losses { unasked: beside.losses.unasked, errors: beside.losses.errors, ..Losses::default() };
        program.recycled.add(&beside);
        for index in slots {
            self.close_window(program.id, *index);
            self.ordinals.remove(&(program.id, *index));
            program.told.remove(index);
        }
    }

    fn fill(&mut self, program: &mut Program, trees: (Nodes, Vec<usize>), slots: &[u64]) -> (Beside, Nodes) {
        let (clock, now) = (self.clock(), self.at(sys::now()));
        for index in slots {
            note_maker(&self.memory, program, &mut self.table, (*index, now));
        }
        let mut fill = Fill::new(&mut self.table, program, trees, (clock, now));
        for index in slots {
            fill.slot(&self.memory.slot(fill.program.id, *index), *index);
        }
        fill.end()
    }
}

/// Generations of processes that are new at once, at most.
const GENERATIONS: usize = 64;
/// Processes of a program that are told apart at once, at most.
const MOST_PROCESSES: usize = 4 * image::SLOT_COUNT as usize;

/// Notes which process of the program made that of slot `index`, where it is new: a shell's child
/// may have children of its own before it is another program.
fn note_maker(memory: &Memory, program: &mut Program, table: &mut Table, (index, now): (u64, u64)) {
    // From the youngest up to one that is known.
    let mut line: Vec<i32> = Vec::new();
    let mut next = Some(index);
    // Slots may name each other in a circle: the program writes there.
    for _ in 0..image::SLOT_COUNT {
        let Some(index) = next.filter(|_| line.len() < GENERATIONS) else { break };
        let head = memory.head(program.id, index);
        let pid = head.pid as i32;
        if pid <= 0 || head.own == 0 && index != 0 {
            return;
        }
        // Threads have slots as well.
        if line.last() != Some(&pid) {
            line.push(pid);
        }
        if pid == program.pid || program.forks.contains_key(&pid) {
            break;
        }
        next = head.parent;
    }
    while let (Some(maker), Some(child)) = (line.pop(), line.last()) {
        let image = image_of(program, table, maker, now);
        program.makers.insert(*child, image);
    }
}

/// The image of process `pid` of a program, taken in if it is new.
fn image_of(program: &mut Program, table: &mut Table, pid: i32, now: u64) -> u32 {
    // Each has had a slot, of which a program may claim anything.
    let too_many = program.forks.len() >= MOST_PROCESSES && !program.forks.contains_key(&pid);
    if pid == 0 || pid == program.pid || too_many {
        return program.image;
    }
    let parent = program.makers.remove(&pid).unwrap_or(program.image);
    *program.forks.entry(pid).or_insert_with(|| {
        let like = table.images.get(parent as usize).cloned().unwrap_or_default();
        table.image(Image {
            pid,
            parent: Some(parent),
            exe: like.exe,
            argv: like.argv,
            start_ns: now,
            main_at_ns: like.main_at_ns.map(|_| now),
            ..Image::default()
        })
    })
}

/// An image's counts on their way to the table.
struct Fill<'a> {
    table: &'a mut Table,
    program: &'a mut Program,
    nodes: Nodes,
    /// Files with a region of their own, by their place among the nodes' files.
    used: Vec<usize>,
    /// Frames of nodes, once somebody has counted there.
    frames: HashMap<usize, Rc<[RawFrame]>>,
    /// What the first thread had counted when `main` began, if that is known.
    startup: Option<HashMap<usize, SlotCounts>>,
    clock: Clock,
    now: u64,
    beside: Beside,
}

impl<'a> Fill<'a> {
    fn new(
        table: &'a mut Table,
        program: &'a mut Program,
        (nodes, used): (Nodes, Vec<usize>),
        (clock, now): (Clock, u64),
    ) -> Self {
        let beside = Beside { losses: nodes.losses, ..Beside::default() };
        let (frames, startup) = (HashMap::new(), None);
        Self { table, program, nodes, used, frames, startup, clock, now, beside }
    }

    /// Adds what slot `index` holds.
    fn slot(&mut self, words: &Snapshot, index: u64) {
        let Some(slot) = self.nodes.slot(words, index) else { return };
        self.beside.losses.add(&slot.losses);
        self.beside.in_place.add(&slot.in_place);
        let Some(thread) = slot.thread else { return };
        let pid = thread.pid as i32;
        if index == 0
            && let Some(at_main) = self.program.at_main.take()
        {
            let then = self.nodes.slot(&Snapshot::of(at_main), 0);
            self.startup = then.map(|s| s.counts.into_iter().collect());
        }
        let field = |offset| words.word(image::SLOTS + index * slot::SIZE + offset);
        let has_rseq = field(slot::RSEQ) != 0;
        if pid > 0 {
            let used = Used::read(field, self.program.execed.contains(&pid));
            self.beside.used.entry(pid).or_default().add(&used);
        }
        let told = self.clock.possible(&slot.counts);
        self.beside.losses.damaged += slot.counts.len().saturating_sub(told.len()) as u64;
        for (node, counts) in told {
            self.row(*node, counts, (index, pid, thread.tid), has_rseq);
        }
        if index + 1 < image::SLOT_COUNT && (index == 0 || pid != 0) {
            let image = image_of(self.program, self.table, pid, self.now);
            let threads = self.beside.threads.entry(image).or_default();
            threads.threads += 1;
            threads.processes.insert(pid);
        }
    }

    /// Adds one thread's counts at a node.
    fn row(&mut self, index: usize, counts: &SlotCounts, (slot, pid, tid): (u64, i32, u32), has_rseq: bool) {
        let Some(node) = self.nodes.all.get(index) else { return };
        let place = node.site.and_then(|(file, site)| Some((*self.used.get(file)?, site)));
        let site = place.and_then(|(file, site)| self.program.files.get(file)?.code.blob.sites.get(site));
        if site.is_some_and(|s| s.vdso) {
            self.beside.vdso_calls = self.beside.vdso_calls.saturating_add(counts.entered);
            return self.vdso(index, place, (counts.entered, pid));
        }
        let Some(number) = node.number else { return };
        let results = site.is_none_or(|s| s.results);
        let frames = self.frames.entry(index).or_insert_with(|| frames_of(self.program, place, node));
        let image = image_of(self.program, self.table, pid, self.now);
        let (id, _) = self.table.row(image, Sysno(number), frames);
        let execed = (number == EXECVE || number == EXECVEAT) && self.program.gone_by_exec.contains(&slot);
        let seen = Seen { results, matched: self.nodes.losses.unmatched == 0, execed, has_rseq };
        let mut add = counts_of(number, counts, seen, self.clock);
        let untold = if add.toll_ns.is_none() && add.elapsed_ns > 0 { add.calls } else { 0 };
        self.beside.untold = self.beside.untold.saturating_add(untold);
        if Sysno(number).is_x32() {
            let refused = add.errors.get(&Errno(libc::ENOSYS as u16)).copied().unwrap_or(0);
            self.beside.foreign = self.beside.foreign.saturating_add(add.calls.saturating_sub(refused));
        }
        if !results && number != RT_SIGRETURN && add.calls > 0 {
            let blind = self.beside.blind.entry(Sysno(number)).or_default();
            *blind = blind.saturating_add(add.calls);
        }
        if slot == 0 && pid == self.program.pid {
            self.note_startup(index, number, &mut add, seen);
        }
        let address = self.nodes.all.get(index).map_or(0, |n| n.address);
        if counts.entered > 0
            && let Some(met) = self.program.unopened.iter().position(|unopened| *unopened == address)
        {
            self.program.unopened.swap_remove(met);
            self.beside.unopened += 1;
        }
        self.table.calls = self.table.calls.saturating_add(add.calls);
        self.table.by_thread(image, tid, Sysno(number), &add);
        if let Some(raw) = self.table.rows.get_mut(id as usize) {
            raw.entered = raw.entered.saturating_add(counts.entered);
            raw.counts.merge(&add);
        }
    }

    /// Adds calls at a node of the vDSO.
    fn vdso(&mut self, index: usize, place: Option<(usize, usize)>, (calls, pid): (u64, i32)) {
        let function = place.and_then(|(file, site)| {
            let file = self.program.files.get(file)?;
            let address = file.code.blob.sites.get(site)?.address;
            Some(file.known.plan.entries.iter().find(|e| e.address == address)?.function.name())
        });
        let (Some(function), Some(node)) = (function, self.nodes.all.get(index)) else { return };
        let frames = self.frames.entry(index).or_insert_with(|| frames_of(self.program, place, node));
        let image = image_of(self.program, self.table, pid, self.now);
        if calls > 0 {
            self.table.vdso(image, function, frames, calls);
        }
    }

    /// How much of what the first thread counted at a node was before `main`: all, where nobody has
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

    fn end(self) -> (Beside, Nodes) {
        (self.beside, self.nodes)
    }
}

/// The program's files that have a region of their own, by index.
fn files_used(program: &Program) -> Vec<usize> {
    let mut regions = HashSet::new();
    (0..program.files.len()).filter(|i| regions.insert(program.files[*i].known.region)).collect()
}

/// A program's trees as they are in `image`, and the files they are of.
fn nodes_of(program: &Program, image: &Snapshot) -> (Nodes, Vec<usize>) {
    let used = files_used(program);
    let files: Vec<_> =
        used.iter().filter_map(|i| program.files.get(*i)).map(|f| (f.known.region, &f.code.blob)).collect();
    (Nodes::read(image, &files), used)
}

/// The frames of a row: as they were when the context was first seen.
fn frames_of(program: &Program, site: Option<(usize, usize)>, node: &Node) -> Rc<[RawFrame]> {
    let Some((file, index)) = site else { return Rc::default() };
    if let Some(frames) = program.nodes.get(&node.address) {
        return Rc::clone(frames);
    }
    let leaf = program.leaf(file, index);
    leaf.into_iter().chain(node.path.iter().map(|a| program.space.frame(*a, true))).collect()
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

/// Calls that the kernel has ended. What a handler interrupted it had: whoever jumps out of the
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
    let timed: u64 = slot.histogram.iter().fold(0, |sum, n| sum.saturating_add(*n));
    if timed == 0 {
        return counts;
    }
    counts.elapsed_ns = clock.ns(slot.cycles as f64);
    counts.max_ns = clock.ns(slot.longest as f64);
    let own = clock.own_cycles * timed as f64;
    let worked = slot.cycles.saturating_sub(slot.waited) as f64 - own;
    // Where waiting can't be told, all of a sleep would pass for work, and the turns of others too.
    let may_wait = number == SCHED_YIELD || Sysno(number).signature().is_none_or(|s| s.may_block);
    counts.toll_ns = (seen.has_rseq || !may_wait).then(|| clock.ns(worked));
    counts.waited_ns = seen.has_rseq.then(|| clock.ns(slot.waited as f64));
    for (power, n) in (0i32..record::BUCKETS as i32).zip(&slot.histogram) {
        if *n > 0 {
            // The middle of the power's range.
            counts.histogram.add_many(clock.ns(1.5 * 2f64.powi(power)), *n);
        }
    }
    counts
}
