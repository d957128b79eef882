//! From an image's memory to rows of the table.

use super::super::assemble::{Losses, Reading, Row, SlotCounts, read};
use super::super::layout::{IMAGE, image, node, record, slot};
use super::engine::Engine;
use super::memory::Snapshot;
use super::program::Program;
use super::sys;
use crate::table::{Image, Table};
use std::collections::{BTreeMap, HashMap, HashSet};
use systoll_model::{Counts, Errno, Sysno};
use systoll_symbols::RawFrame;

const RT_SIGRETURN: u32 = 15;
const EXECVE: u32 = 59;
const EXIT: u32 = 60;
const EXIT_GROUP: u32 = 231;
const EXECVEAT: u32 = 322;

/// Of the kernel's include/linux/errno.h.
const ERESTARTSYS: u16 = 512;
const ERESTARTNOINTR: u16 = 513;
/// clone, fork, vfork, clone3
const MAKES_PROCESSES: [u32; 4] = [56, 57, 58, 435];

/// What cycles are worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) per_ns: f64,
    /// Cycles of every timed call that are our own.
    pub(super) own_cycles: f64,
    /// What looking for an answer once takes, ns.
    pub(super) look_ns: f64,
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
    /// Processor time its threads have spent waiting for answers.
    pub(super) asking_ns: u64,
    pub(super) losses: Losses,
    /// Nodes that were met for the first time when no window could be afforded.
    pub(super) unopened: u64,
    /// Calls whose return nobody saw to, so that their errors are not known, by system call.
    pub(super) blind: BTreeMap<Sysno, u64>,
}

impl Engine {
    /// The image of the process that slot `index` of program `id` belongs to, taken in if it is new.
    pub(super) fn image_of_slot(&mut self, id: u32, index: u64) -> Option<u32> {
        let area = self.memory.image(id)?;
        let base = image::SLOTS + index * slot::SIZE;
        let pid = area.get(base + slot::PID) as i32;
        let now = self.at(sys::now());
        let program = self.programs.get_mut(&id)?;
        Some(image_of(program, &mut self.table, pid, now))
    }

    /// Takes the counts of ended programs and gives their memory back.
    pub(super) fn harvest_ended(&mut self) {
        let ended: Vec<u32> = self.programs.keys().copied().filter(|id| !self.is_alive(*id)).collect();
        for id in ended {
            if let Some(mut program) = self.programs.remove(&id) {
                let beside = self.harvest(&mut program);
                self.take(&program, &beside);
                self.end_images(&program);
                self.close_windows(id);
                self.memory.free_image(id);
            }
        }
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
        for id in program.forks.values().chain([&program.image]) {
            let Some(image) = self.table.images.get_mut(*id as usize) else { continue };
            if image.end_ns == 0 {
                image.end_ns = now;
                image.life_ns += now.saturating_sub(image.start_ns);
            }
        }
    }

    pub(super) fn take(&mut self, program: &Program, beside: &Beside) {
        self.vdso_calls += beside.vdso_calls;
        self.windows.refused += beside.unopened;
        self.asking_ns += beside.asking_ns;
        self.note_losses(program, beside);
    }

    /// Whether any process of a program may still run its code.
    fn is_alive(&self, id: u32) -> bool {
        let Some(program) = self.programs.get(&id) else { return false };
        if program.newborn.is_some() {
            return sys::exists(program.pid);
        }
        let Some(area) = self.memory.image(id) else { return false };
        let mut asked = HashSet::new();
        (0..self.slots_drawn(id)).any(|index| {
            let base = image::SLOTS + index * slot::SIZE;
            let pid = area.get(base + slot::PID) as i32;
            let gone = program.gone_by_exec.contains(&index) || area.get(base + slot::SELF) == 0;
            !gone && (pid == 0 || (asked.insert(pid) && sys::exists(pid)))
        })
    }

    /// Programs of which a process may be alive.
    pub(super) fn living(&self) -> usize {
        self.programs.keys().filter(|id| self.is_alive(**id)).count()
    }

    pub(super) fn clock(&self) -> Clock {
        Clock { per_ns: self.ratio.so_far(), own_cycles: self.around.own_cycles, look_ns: self.look_ns }
    }

    /// Adds what a program has counted so far to the table.
    pub(super) fn harvest(&mut self, program: &mut Program) -> Beside {
        let clock = self.clock();
        let snapshot = self.memory.snapshot(program.id);
        let now = self.at(sys::now());
        fill(&mut self.table, program, &snapshot, clock, now)
    }
}

/// The image of process `pid` of a program, taken in if it is new.
fn image_of(program: &mut Program, table: &mut Table, pid: i32, now: u64) -> u32 {
    if pid == 0 || pid == program.pid {
        return program.image;
    }
    let parent = program.image;
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

/// Adds an image's counts to the table.
pub(super) fn fill(table: &mut Table, program: &mut Program, snapshot: &Snapshot, clock: Clock, now: u64) -> Beside {
    let mut regions = HashSet::new();
    let used: Vec<usize> =
        (0..program.files.len()).filter(|i| regions.insert(program.files[*i].known.region)).collect();
    let reading = reading(program, &used, snapshot);
    let at_main = program.at_main.take();
    let startup = at_main.map(|slot| startup_of(program, &used, &snapshot.with_slot(slot)));
    let pids: HashMap<u64, i32> = reading.threads.iter().map(|t| (t.slot, t.pid as i32)).collect();
    let matched = reading.losses.unmatched == 0;
    let mut beside = Beside { losses: reading.losses, ..Beside::default() };
    for row in &reading.rows {
        let site = row.site.and_then(|(file, index)| {
            let file = *used.get(file)?;
            Some((file, index, program.files.get(file)?.code.blob.sites.get(index)?.clone()))
        });
        if site.as_ref().is_some_and(|(_, _, s)| s.vdso) {
            beside.vdso_calls += row.threads.iter().map(|(_, c)| c.entered).sum::<u64>();
            if let Some((file, index, _)) = &site {
                vdso(table, program, (*file, *index), row, &pids, now);
            }
            continue;
        }
        let Some(number) = row.number else { continue };
        let results = site.as_ref().is_none_or(|(_, _, s)| s.results);
        let frames = frames_of(program, site.as_ref().map(|(file, index, _)| (*file, *index)), &row.path);
        for (index, counts) in &row.threads {
            let pid = pids.get(index).copied().unwrap_or(0);
            let image = image_of(program, table, pid, now);
            let (id, _) = table.row(image, Sysno(number), &frames);
            let execed = (number == EXECVE || number == EXECVEAT) && program.gone_by_exec.contains(index);
            let seen = Seen { results, matched, execed, has_rseq: has_rseq(snapshot, *index) };
            let mut add = counts_of(number, counts, seen, clock);
            if !results && number != RT_SIGRETURN && add.calls > 0 {
                *beside.blind.entry(Sysno(number)).or_default() += add.calls;
            }
            if *index == 0 && pid == program.pid {
                let before = startup.as_ref().map_or(Some((add.calls, add.waited_ns.unwrap_or(0))), |s| {
                    s.get(&(row.site, row.number, row.path.clone())).map(|c| {
                        let c = counts_of(number, c, Seen { execed: false, ..seen }, clock);
                        (c.calls, c.waited_ns.unwrap_or(0))
                    })
                });
                let (calls, waited) = before.unwrap_or((0, 0));
                add.startup_calls = calls.min(add.calls);
                add.startup_waited_ns = waited.min(add.waited_ns.unwrap_or(0));
            }
            table.calls += add.calls;
            if let Some(raw) = table.rows.get_mut(id as usize) {
                raw.entered += counts.entered;
                raw.counts.merge(&add);
            }
        }
    }
    note_threads(table, program, &reading, now);
    beside.unopened = program.unopened.iter().filter(|node| is_met(snapshot, &reading, **node)).count() as u64;
    let image = |program: &mut Program, table: &mut Table, pid| image_of(program, table, pid, now);
    beside.asking_ns = super::cpu::add(table, program, snapshot, &reading, clock.look_ns, image);
    beside
}

/// Adds a row of calls into the vDSO to the table.
fn vdso(table: &mut Table, program: &mut Program, at: (usize, usize), row: &Row, pids: &HashMap<u64, i32>, now: u64) {
    let function = program.files.get(at.0).and_then(|file| {
        let address = file.code.blob.sites.get(at.1)?.address;
        Some(file.known.plan.entries.iter().find(|e| e.address == address)?.function.name())
    });
    let Some(function) = function else { return };
    let frames = frames_of(program, Some(at), &row.path);
    for (index, counts) in row.threads.iter().filter(|(_, c)| c.entered > 0) {
        let image = image_of(program, table, pids.get(index).copied().unwrap_or(0), now);
        table.vdso(image, function, &frames, counts.entered);
    }
}

fn reading(program: &Program, used: &[usize], snapshot: &Snapshot) -> Reading {
    let files: Vec<_> =
        used.iter().filter_map(|i| program.files.get(*i)).map(|f| (f.known.region, &f.code.blob)).collect();
    read(snapshot, &files)
}

type Key = (Option<(usize, usize)>, Option<u32>, Vec<u64>);

fn startup_of(program: &Program, used: &[usize], snapshot: &Snapshot) -> HashMap<Key, SlotCounts> {
    let rows = reading(program, used, snapshot).rows.into_iter();
    rows.filter_map(|row| {
        let (_, counts) = row.threads.into_iter().find(|(slot, _)| *slot == 0)?;
        Some(((row.site, row.number, row.path), counts))
    })
    .collect()
}

fn note_threads(table: &mut Table, program: &mut Program, reading: &Reading, now: u64) {
    let mut threads: HashMap<u32, u64> = HashMap::new();
    for thread in &reading.threads {
        if thread.slot + 1 < image::SLOT_COUNT && (thread.slot == 0 || thread.pid != 0) {
            let image = image_of(program, table, thread.pid as i32, now);
            *threads.entry(image).or_default() += 1;
        }
    }
    for (image, n) in threads {
        if let Some(image) = table.images.get_mut(image as usize) {
            image.threads = image.threads.max(n);
        }
    }
}

/// Whether any thread has made a call at a node.
fn is_met(snapshot: &Snapshot, reading: &Reading, node: u64) -> bool {
    use super::super::assemble::Words;
    let record = snapshot.word(node.wrapping_sub(IMAGE).wrapping_add(node::RECORD));
    let entered = |slot: u64| snapshot.word(image::SLOTS + slot * slot::SIZE + record + record::ENTERED);
    (slot::RECORDS..slot::SIZE).contains(&record) && reading.threads.iter().any(|t| entered(t.slot) > 0)
}

fn has_rseq(snapshot: &Snapshot, index: u64) -> bool {
    use super::super::assemble::Words;
    snapshot.word(image::SLOTS + index * slot::SIZE + slot::RSEQ) != 0
}

/// The frames of a row: as they were when the context was first seen.
fn frames_of(program: &Program, site: Option<(usize, usize)>, path: &[u64]) -> Vec<RawFrame> {
    let Some((file, index)) = site else { return Vec::new() };
    if let Some(frames) = program.contexts.get(&(file, index, path.to_vec())) {
        return frames.to_vec();
    }
    let leaf = program.leaf(file, index);
    leaf.into_iter().chain(path.iter().map(|a| program.space.frame(*a, true))).collect()
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
        _ if !seen.results && matches!(number, EXIT | EXIT_GROUP) => 0,
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
            *counts.errors.entry(errno).or_default() += n;
        }
    }
    let timed: u64 = slot.histogram.iter().sum();
    if timed == 0 {
        return counts;
    }
    counts.elapsed_ns = clock.ns(slot.cycles as f64);
    counts.max_ns = clock.ns(slot.longest as f64);
    let own = clock.own_cycles * timed as f64;
    let worked = slot.cycles.saturating_sub(slot.waited) as f64 - own;
    counts.toll_ns = Some(clock.ns(worked));
    counts.waited_ns = seen.has_rseq.then(|| clock.ns(slot.waited as f64));
    for (power, n) in (0i32..record::BUCKETS as i32).zip(&slot.histogram) {
        if *n > 0 {
            // The middle of the power's range.
            counts.histogram.add_many(clock.ns(1.5 * 2f64.powi(power)), *n);
        }
    }
    counts
}
