//! A program that is being watched: what an `execve` started, with its threads and forks.

use super::code::Code;
use super::comes::Generated;
use super::files::Known;
use super::guests::Hands;
use super::harvest::Beside;
use super::maps::Mapped;
use super::memory::Area;
use super::queue::Queue;
use super::seeds::{Seed, Seeds};
use super::slots::Tickets;
use super::target::Mem;
use crate::sys::read_memory;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use systoll_hooks::assemble::{Base, Nodes, Room, TreeError, grow};
use systoll_hooks::layout::{Saved, image, may_hold_node, node, slot};
use systoll_model::FrameClass;
use systoll_symbols::{AddressSpace, ModuleKey, PlacedFrame, RawFrame, Registers, Symbols, Thread, Until};

/// Contexts that could not be told apart at one site before it is asked for no more.
const MAX_FAILURES: u32 = 16;

/// Programs of one file whose known contexts are looked at from the first call on.
const MAX_ALIKE: u32 = 8;

/// A file of the program with its jumps.
#[derive(Clone)]
pub(super) struct Patched {
    pub(super) key: ModuleKey,
    pub(super) known: Rc<Known>,
    pub(super) code: Rc<Code>,
    pub(super) bias: u64,
}

impl Patched {
    /// Whether its jumps are there, or some of them.
    pub(super) fn is_in(&self, mem: &Mem) -> bool {
        mem.has_any(&self.code.jumps, self.bias)
    }
}

/// A program.
pub(super) struct Program {
    pub(super) id: u32,
    /// The process that executed it.
    pub(super) pid: i32,
    /// How many programs of the same file there were before.
    pub(super) alike: u32,
    /// Its image in the table.
    pub(super) image: u32,
    pub(super) space: AddressSpace,
    pub(super) mem: Mem,
    pub(super) queue: Queue,
    /// What it has mapped, while it is new.
    pub(super) maps: Vec<Mapped>,
    /// Page faults that its first thread has taken for us.
    pub(super) faults: u64,
    pub(super) files: Vec<Patched>,
    /// What is to be patched once the program says that it has mapped its memory.
    pub(super) newborn: Option<Vec<Patched>>,
    /// Addresses of the regions of roots that are in its image.
    pub(super) regions: HashSet<u64>,
    pub(super) room: Room,
    /// Frames of the contexts counted at nodes, by their addresses.
    pub(super) nodes: HashMap<u64, Rc<[RawFrame]>>,
    /// Roots made for numbers, and their file and site.
    pub(super) number_roots: HashMap<u64, (usize, usize)>,
    failures: HashMap<u64, u32>,
    /// Pairs of a file's index and a caller's file whose contexts were taken from earlier programs.
    pub(super) sown: HashSet<(usize, ModuleKey)>,
    /// What earlier programs know of nodes, and later ones will.
    pub(super) seeds: HashMap<u64, Rc<Seed>>,
    /// Nodes taken from earlier programs at whose first call `main` has begun.
    pub(super) main_nodes: Vec<u64>,
    /// Nodes at whose first call no window could be afforded.
    pub(super) unopened: Vec<u64>,
    /// Whether its processes have the launcher's own credentials and namespaces, as far as is known.
    pub(super) native: bool,
    /// Slots whose thread changed what it may do, in memory that it has in common with its maker.
    pub(super) changed: HashSet<u64>,
    /// Whether the process that executed it goes on in a copy of its image.
    pub(super) first_has_parted: bool,
    /// Slots whose thread became another program.
    pub(super) gone_by_exec: HashSet<u64>,
    pub(super) tickets: Tickets,
    /// Its trees as last read for some of its slots: what there was of them then, and how many files.
    pub(super) trees: Option<(Room, usize, Nodes)>,
    /// Threads that are known to be who they say, by slot.
    pub(super) told: HashMap<u64, i32>,
    /// What slots that were given back came to beside rows.
    pub(super) recycled: Beside,
    /// Images of the processes forked from it, by process id.
    pub(super) forks: HashMap<i32, u32>,
    /// Images of the processes that made those that have none yet, by process id of the made one.
    pub(super) makers: HashMap<i32, u32>,
    /// Processor time its process had used before the program's own first instruction, ns.
    pub(super) cpu_before: u64,
    /// The same of its first thread alone, by that thread's clock.
    pub(super) thread_before: u64,
    /// Processor time of its processes as last seen, ns since each one's start.
    pub(super) cpu_seen: HashMap<i32, u64>,
    /// Whether every call its files make is seen, so that some can be answered in place.
    pub(super) seen_whole: bool,
    /// Processes of it that have become other programs.
    pub(super) execed: HashSet<i32>,
    /// Its code that is in no file.
    pub(super) generated: Generated,
    /// How many of its files the kernel has mapped, the first ones.
    pub(super) born: usize,
    /// What those of its files that map others do it for.
    pub(super) hands: Hands,
    pub(super) main_seen: bool,
    /// The first slot's memory when `main` was first seen.
    pub(super) at_main: Option<Vec<(u64, Vec<u8>)>>,
    /// Requests that its threads have not come back from in time.
    pub(super) unheeded: u32,
}

impl Program {
    pub(super) fn new(id: u32, pid: i32, image: u32, space: AddressSpace, mem: Mem) -> Self {
        Self {
            id,
            pid,
            alike: 0,
            image,
            space,
            mem,
            queue: Queue::default(),
            maps: Vec::new(),
            faults: 0,
            files: Vec::new(),
            newborn: Some(Vec::new()),
            regions: HashSet::new(),
            room: Room::default(),
            nodes: HashMap::new(),
            number_roots: HashMap::new(),
            failures: HashMap::new(),
            sown: HashSet::new(),
            seeds: HashMap::new(),
            main_nodes: Vec::new(),
            unopened: Vec::new(),
            native: true,
            changed: HashSet::new(),
            first_has_parted: false,
            gone_by_exec: HashSet::new(),
            tickets: Tickets::default(),
            trees: None,
            told: HashMap::new(),
            recycled: Beside::default(),
            forks: HashMap::new(),
            makers: HashMap::new(),
            cpu_before: 0,
            thread_before: 0,
            cpu_seen: HashMap::new(),
            seen_whole: true,
            execed: HashSet::new(),
            generated: Generated::default(),
            born: 0,
            hands: Hands::default(),
            main_seen: false,
            at_main: None,
            unheeded: 0,
        }
    }

    /// Whether its contexts that earlier programs had too are looked at from their first call on: in
    /// the thousandth short program of a kind they are nothing new.
    pub(super) fn is_looked_at(&self) -> bool {
        self.alike < MAX_ALIKE
    }

    /// The file and site that count at the root at address `root`.
    pub(super) fn site_of(&self, root: u64) -> Option<(usize, usize)> {
        if let Some(site) = self.number_roots.get(&root) {
            return Some(*site);
        }
        self.files.iter().enumerate().find_map(|(file, f)| {
            let index = usize::try_from(root.checked_sub(f.known.region)? / systoll_hooks::layout::NODE_SIZE).ok()?;
            (index < f.code.blob.sites.len()).then_some((file, index))
        })
    }

    /// The file and site whose table of numbers is at address `table`.
    pub(super) fn site_of_table(&self, table: u64) -> Option<(usize, usize)> {
        self.files.iter().enumerate().find_map(|(file, f)| {
            let offset = u32::try_from(table.checked_sub(f.known.region)?).ok()?;
            let index = f.code.blob.sites.iter().position(|s| s.table == Some(offset))?;
            Some((file, index))
        })
    }

    /// The frame of a site's own `syscall`.
    pub(super) fn leaf(&self, file: usize, site: usize) -> Option<RawFrame> {
        let file = self.files.get(file)?;
        let address = file.code.blob.sites.get(site)?.address;
        Some(RawFrame { module: Some(file.key), address, is_return: false })
    }

    /// Unwinds a thread that waits at a site's hook. Frames from the site on, with their places.
    pub(super) fn unwind(
        &mut self,
        symbols: &mut Symbols,
        thread: &Waiter,
        at: (usize, usize),
    ) -> (Vec<PlacedFrame>, bool) {
        let mut frames = Vec::new();
        let Some(file) = self.files.get(at.0) else { return (frames, false) };
        let Some(site) = file.code.blob.sites.get(at.1) else { return (frames, false) };
        let planned = file.known.plan.sites.iter().find(|s| s.address == site.address);
        let cfa = if site.vdso { Some(8) } else { planned.and_then(|s| s.cfa).map(|c| u64::from(c.0)) };
        let sp = match (cfa, site.offset) {
            // What the hook's rsp is at the call itself.
            (Some(cfa), Some(offset)) if site.base == Base::Rsp => {
                thread.sp.wrapping_add(u64::from(offset) + 8).wrapping_sub(cfa)
            }
            _ => thread.sp,
        };
        let ip = file.bias.wrapping_add(site.address).wrapping_add(if site.vdso { 0 } else { 2 });
        let regs = Registers { ip, sp, ..thread.registers };
        if !self.space.maps_executable(ip) {
            self.space.update(symbols, thread.tid);
        }
        let mut stack = Stack { tid: thread.tid, start: sp, bytes: Vec::new() };
        let mut complete = self.space.unwind_placed(symbols, &regs, &mut |a| stack.word(a), Until::Root, &mut frames);
        let known = |f: &PlacedFrame| f.frame.module.is_some();
        if !frames.iter().all(known) {
            // Code that came meanwhile; once more with what is mapped now.
            frames.clear();
            self.space.update(symbols, thread.tid);
            complete = self.space.unwind_placed(symbols, &regs, &mut |a| stack.word(a), Until::Root, &mut frames);
        }
        (frames, complete)
    }

    /// Frames of a waiting thread with the lines of scripts between them.
    pub(super) fn with_scripts(
        &mut self,
        symbols: &mut Symbols,
        thread: &Waiter,
        placed: &[PlacedFrame],
    ) -> Vec<RawFrame> {
        let tid = thread.tid;
        let mut read = |address: u64, buffer: &mut [u8]| read_memory(tid, address, buffer);
        self.space.with_scripts(symbols, placed, Thread { tid, fs_base: None }, &mut read)
    }

    /// The node for a context at a site, made if it is new and kept in `seeds`; the root where
    /// contexts can't be told apart. And whether `main` is on the stack.
    pub(super) fn context(
        &mut self,
        (symbols, seeds): (&mut Symbols, &mut Seeds),
        area: &Area,
        thread: &Waiter,
        root: u64,
        at: (usize, usize),
        frames: &[PlacedFrame],
    ) -> (u64, bool) {
        let user = frames.iter().position(|f| matches!(symbols.class(f.frame), FrameClass::User | FrameClass::Unknown));
        let context = frames.get(..user.map_or(frames.len(), |u| u + 1)).unwrap_or_default();
        let site = self.files.get(at.0).and_then(|f| f.code.blob.sites.get(at.1));
        let offset = site.and_then(|s| s.offset);
        let base = match site.map(|s| s.base) {
            Some(Base::Rbp) => thread.registers.bp,
            _ => thread.sp,
        };
        let place = |f: &PlacedFrame| f.sp.wrapping_sub(8).wrapping_sub(base);
        let agrees = context.get(1).is_some_and(|f| Some(place(f)) == offset.map(u64::from));
        let mut steps: Vec<systoll_hooks::assemble::Step> = Vec::new();
        for (i, frame) in context.iter().enumerate().skip(1) {
            if !agrees || !frame.frame.is_return || (i > 1 && !frame.constant) {
                break;
            }
            if let Some(last) = steps.last_mut() {
                last.next = place(frame);
            }
            steps.push(systoll_hooks::assemble::Step { word: frame.ip, next: 0 });
        }
        let stack: Vec<RawFrame> = frames.iter().map(|f| f.frame).collect();
        let main = symbols.reaches_main(&stack);
        let grown =
            if steps.is_empty() { Err(TreeError::Depth) } else { grow(area.words(), &mut self.room, root, &steps) };
        match grown {
            Ok(node) => {
                let raw: Rc<[RawFrame]> = context.iter().take(steps.len() + 1).map(|f| f.frame).collect();
                let number = self.number_roots.contains_key(&root).then_some(thread.registers.ax as u32);
                if let Some(seed) = seeds.keep(self, (at, number), &steps, &raw, main) {
                    self.seeds.insert(node, seed);
                }
                self.nodes.insert(node, raw);
                (node, main)
            }
            Err(why) => {
                let failures = self.failures.entry(root).or_default();
                *failures += 1;
                if *failures >= MAX_FAILURES || steps.is_empty() || why == TreeError::Full {
                    close(area, root);
                }
                (root, main)
            }
        }
    }
}

/// Lets no more contexts be asked for at a root.
fn close(area: &Area, root: u64) {
    let base = systoll_hooks::layout::IMAGE;
    let offset = |at: u64| at.wrapping_sub(base);
    let mut at = area.get(offset(root) + node::CHILD);
    for _ in 0..1 << 16 {
        if !may_hold_node(offset(at)) {
            return;
        }
        match area.get(offset(at) + node::SIBLING) {
            0 => return area.set(offset(at) + node::SIBLING, node::OTHERS),
            node::OTHERS => return,
            next => at = next,
        }
    }
}

/// A thread that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) tid: i32,
    /// Stack pointer at the hook.
    pub(super) sp: u64,
    pub(super) registers: Registers,
}

impl Waiter {
    /// As slot `index` of `area` says.
    pub(super) fn read(area: &Area, index: u64) -> Self {
        let base = image::SLOTS + index * slot::SIZE;
        let saved = |r: Saved| area.get(base + r.offset());
        let registers = Registers {
            ax: saved(Saved::Rax),
            di: saved(Saved::Rdi),
            si: saved(Saved::Rsi),
            dx: saved(Saved::Rdx),
            r10: saved(Saved::R10),
            r8: saved(Saved::R8),
            r9: saved(Saved::R9),
            bx: saved(Saved::Rbx),
            bp: saved(Saved::Rbp),
            r12: saved(Saved::R12),
            r13: saved(Saved::R13),
            r14: saved(Saved::R14),
            r15: saved(Saved::R15),
            ..Registers::default()
        };
        Self { tid: area.get(base + slot::TID) as i32, sp: saved(Saved::Rsp), registers }
    }

    /// The call's arguments.
    pub(super) fn args(&self) -> [u64; 6] {
        let r = &self.registers;
        [r.di, r.si, r.dx, r.r10, r.r8, r.r9]
    }
}

/// A target's stack, read in growing pieces from its top on.
struct Stack {
    tid: i32,
    start: u64,
    bytes: Vec<u8>,
}

impl Stack {
    const PIECE: usize = 2048;
    const MOST: usize = 1 << 20;

    fn word(&mut self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.start).and_then(|o| usize::try_from(o).ok());
        let Some(offset) = offset.filter(|o| *o < Self::MOST) else { return self.elsewhere(address) };
        let end = offset.checked_add(8)?;
        if end > self.bytes.len() {
            let have = self.bytes.len();
            let want = end.next_multiple_of(Self::PIECE).max(have * 2).min(Self::MOST);
            self.bytes.resize(want, 0);
            let got = read_memory(self.tid, self.start.wrapping_add(have as u64), self.bytes.get_mut(have..)?);
            self.bytes.truncate(have + got);
        }
        match self.bytes.get(offset..end) {
            Some(word) => Some(u64::from_ne_bytes(word.try_into().ok()?)),
            None => self.elsewhere(address),
        }
    }

    fn elsewhere(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (read_memory(self.tid, address, &mut word) == 8).then(|| u64::from_ne_bytes(word))
    }
}
