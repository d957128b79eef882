//! A program that is being watched: what an `execve` started, with its threads and forks.

use crate::inproc::monitor::exec::context_reuse::KnownContext;
use crate::inproc::monitor::exec::files::Known;
use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::requests::generated::Generated;
use crate::inproc::monitor::requests::mapper_roles::MapperRoles;
use crate::inproc::monitor::requests::queue::Queue;
use crate::inproc::monitor::requests::tickets::Tickets;
use crate::inproc::monitor::results::cpu_time::KnownCpu;
use crate::inproc::monitor::results::tally::Tally;
use crate::inproc::monitor::shared::code::Code;
use crate::inproc::monitor::shared::maps::Mapped;
use crate::inproc::monitor::shared::memory::Area;
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::shared::remote::Mem;
use crate::inproc::monitor::sys;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use systoll_hooks::assemble::{Nodes, Room};
use systoll_hooks::layout::image;
use systoll_symbols::{AddressSpace, ModuleKey, RawFrame};

/// Programs of one file whose known contexts are looked at from the first call on.
const MAX_ALIKE: u32 = 8;

/// A file of the program with its jumps.
#[derive(Clone)]
pub(crate) struct Patched {
    pub(crate) key: ModuleKey,
    pub(crate) known: Rc<Known>,
    pub(crate) code: Rc<Code>,
    pub(crate) bias: u64,
}

impl Patched {
    /// Whether its jumps are there, or some of them.
    pub(crate) fn is_in(&self, mem: &Mem) -> bool {
        mem.has_any(&self.code.jumps, self.bias)
    }
}

/// A program.
pub(crate) struct Program {
    pub(crate) id: ProgramId,
    /// The process that executed it.
    pub(crate) pid: i32,
    /// How many programs of the same file there were before.
    pub(crate) alike: u32,
    /// Its image in the table.
    pub(crate) image: u32,
    pub(crate) space: AddressSpace,
    pub(crate) mem: Mem,
    pub(crate) queue: Queue,
    /// What it has mapped, while it is new.
    pub(crate) maps: Vec<Mapped>,
    /// Page faults that its first thread has taken for us.
    pub(crate) faults: u64,
    pub(crate) files: Vec<Patched>,
    /// What is to be patched once the program says that it has mapped its memory.
    pub(crate) newborn: Option<Vec<Patched>>,
    /// Addresses of the regions of roots that are in its image.
    pub(crate) regions: HashSet<u64>,
    pub(crate) room: Room,
    /// Frames of the contexts counted at nodes, by their addresses.
    pub(crate) nodes: HashMap<u64, Rc<[RawFrame]>>,
    /// Roots made for numbers, and their file and site.
    pub(crate) number_roots: HashMap<u64, (usize, usize)>,
    pub(crate) failures: HashMap<u64, u32>,
    /// Pairs of a file's index and a caller's file whose contexts were taken from earlier programs.
    pub(crate) sown: HashSet<(usize, ModuleKey)>,
    /// What earlier programs know of nodes, and later ones will.
    pub(crate) seeds: HashMap<u64, Rc<KnownContext>>,
    /// Nodes taken from earlier programs at whose first call `main` has begun.
    pub(crate) main_nodes: Vec<u64>,
    /// Nodes at whose first call no window could be afforded.
    pub(crate) unopened: Vec<u64>,
    /// Whether its processes have the launcher's own credentials and namespaces, as far as is known.
    pub(crate) native: bool,
    /// Slots whose thread changed what it may do, in memory that it has in common with its maker.
    pub(crate) changed: HashSet<u64>,
    /// Whether the process that executed it goes on in a copy of its image.
    pub(crate) first_has_parted: bool,
    /// Slots whose thread became another program.
    pub(crate) gone_by_exec: HashSet<u64>,
    pub(crate) tickets: Tickets,
    /// Its trees as last read for some of its slots: what there was of them then, and how many files.
    pub(crate) trees: Option<(Room, usize, Nodes)>,
    /// Threads that are known to be who they say, by slot.
    pub(crate) told: HashMap<u64, i32>,
    /// What slots that were given back came to beside rows.
    pub(crate) recycled: Tally,
    /// Images of the processes forked from it, by process id.
    pub(crate) forks: HashMap<i32, u32>,
    /// Images of the processes that made those that have none yet, by process id of the made one.
    pub(crate) makers: HashMap<i32, u32>,
    /// Processor time its process had used before the program's own first instruction, ns.
    pub(crate) cpu_before: u64,
    /// The same of its first thread alone, by that thread's clock.
    pub(crate) thread_before: u64,
    /// Processor time of its processes as last seen, ns since each one's start.
    pub(crate) cpu_seen: HashMap<i32, u64>,
    /// Whether every call its files make is seen, so that some can be answered in place.
    pub(crate) seen_whole: bool,
    /// Processes of it that have become other programs.
    pub(crate) execed: HashSet<i32>,
    /// Its code that is in no file.
    pub(crate) generated: Generated,
    /// How many of its files the kernel has mapped, the first ones.
    pub(crate) born: usize,
    /// What those of its files that map others do it for.
    pub(crate) roles: MapperRoles,
    pub(crate) main_seen: bool,
    /// The first slot's memory when `main` was first seen.
    pub(crate) at_main: Option<Vec<(u64, Vec<u8>)>>,
    /// Requests that its threads have not come back from in time.
    pub(crate) unheeded: u32,
}

impl Program {
    pub(crate) fn new(id: ProgramId, pid: i32, image: u32, space: AddressSpace, mem: Mem) -> Self {
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
            recycled: Tally::default(),
            forks: HashMap::new(),
            makers: HashMap::new(),
            cpu_before: 0,
            thread_before: 0,
            cpu_seen: HashMap::new(),
            seen_whole: true,
            execed: HashSet::new(),
            generated: Generated::default(),
            born: 0,
            roles: MapperRoles::default(),
            main_seen: false,
            at_main: None,
            unheeded: 0,
        }
    }

    /// Whether its processes are confined as we are: it was looked at when it began, or came of one that
    /// was, and every call that could have added a filter since would be known of.
    pub(crate) fn has_no_filter_of_its_own(&self, area: &Area) -> bool {
        let told = [image::QUIET, image::UNHEARD, image::UNSEEN, image::WRITES_CODE].map(|word| area.get(word) as u32);
        told == [0; 4] && self.seen_whole && self.generated.calls == 0 && !self.generated.too_much
    }

    /// Asks what processor time its processes have used.
    pub(crate) fn note_cpu(&mut self, memory: &Memory) {
        let Some(area) = memory.image(self.id).filter(|_| self.newborn.is_none()) else { return };
        self.tickets.look(area);
        let slots = self.tickets.busy().iter().chain([&0]);
        let pids = slots.map(|index| memory.head(self.id.slot(*index)).pid as i32).filter(|pid| *pid > 0);
        let pids: HashSet<i32> = pids.collect();
        for pid in pids.difference(&self.execed) {
            if let Some(ns) = sys::process_cpu(*pid) {
                self.cpu_seen.insert(*pid, ns);
            }
        }
    }

    /// Process `pid` is about to be another program: what it has used was this one's.
    pub(crate) fn note_exec_cpu(&mut self, pid: i32) {
        self.execed.insert(pid);
        if let Some(ns) = sys::process_cpu(pid) {
            self.cpu_seen.insert(pid, ns);
        }
    }

    /// What is known of the processor time of its process `pid`.
    pub(crate) fn cpu_of(&self, pid: i32) -> KnownCpu {
        KnownCpu {
            seen: self.cpu_seen.get(&pid).copied().unwrap_or(0),
            before: if pid == self.pid { self.cpu_before } else { 0 },
            execed: self.execed.contains(&pid),
        }
    }

    /// Whether its contexts that earlier programs had too are looked at from their first call on: in
    /// the thousandth short program of a kind they are nothing new.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.alike < MAX_ALIKE
    }

    /// The file and site that count at the root at address `root`.
    pub(crate) fn site_of(&self, root: u64) -> Option<(usize, usize)> {
        if let Some(site) = self.number_roots.get(&root) {
            return Some(*site);
        }
        self.files.iter().enumerate().find_map(|(file, f)| {
            let index = usize::try_from(root.checked_sub(f.known.region)? / systoll_hooks::layout::NODE_SIZE).ok()?;
            (index < f.code.blob.sites.len()).then_some((file, index))
        })
    }

    /// The file and site whose table of numbers is at address `table`.
    pub(crate) fn site_of_table(&self, table: u64) -> Option<(usize, usize)> {
        self.files.iter().enumerate().find_map(|(file, f)| {
            let offset = u32::try_from(table.checked_sub(f.known.region)?).ok()?;
            let index = f.code.blob.sites.iter().position(|s| s.table == Some(offset))?;
            Some((file, index))
        })
    }

    /// The frame of a site's own `syscall`.
    pub(crate) fn leaf(&self, file: usize, site: usize) -> Option<RawFrame> {
        let file = self.files.get(file)?;
        let address = file.code.blob.sites.get(site)?.address;
        Some(RawFrame { module: Some(file.key), address, is_return: false })
    }
}
