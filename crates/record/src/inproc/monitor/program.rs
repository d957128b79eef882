//! A program that is being watched: what an `execve` started, with its threads and forks.

use crate::inproc::monitor::exec::context_reuse::KnownContext;
use crate::inproc::monitor::exec::files::Known;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SiteRef};
use crate::inproc::monitor::outlook;
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
use crate::table::ImageId;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use systoll_hooks::assemble::{Room, number_site};
use systoll_hooks::layout::{call_of_entry, image, table_entry};
use systoll_model::Sysno;
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
    /// Where its code lies in the process, with what is only read behind it.
    pub(crate) fn code_range(&self) -> Range<u64> {
        let start = self.bias.wrapping_add_signed(self.code.blob.delta);
        start..start.saturating_add(self.code.size())
    }

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
    /// Its image in the table.
    pub(crate) image: ImageId,
    /// Its own file, where the kernel has mapped it under the name that it executed.
    pub(crate) file: Option<ModuleKey>,
    /// How many programs of the same file there were before.
    pub(crate) earlier: u32,
    /// For how many calls looks at single ones have stood.
    pub(crate) looked: u64,
    /// What followed the first questions of those programs, and how many this one has asked.
    pub(crate) outlook: Rc<outlook::OfFile>,
    pub(crate) questions: usize,
    /// Whether its processes have the launcher's own credentials and namespaces, as far as is known.
    pub(crate) native: bool,
    pub(crate) space: AddressSpace,
    pub(crate) mem: Mem,
    pub(crate) queue: Queue,
    pub(crate) hooks: Hooks,
    pub(crate) contexts: Contexts,
    pub(crate) threads: Threads,
    pub(crate) processes: Processes,
}

/// How the program's code is hooked.
#[derive(Default)]
pub(crate) struct Hooks {
    /// What it has mapped, while it is new.
    pub(crate) maps: Vec<Mapped>,
    /// Page faults that its first thread has taken for us.
    pub(crate) faults: u64,
    pub(crate) files: Vec<Patched>,
    /// Places among `files` of those that a thread was let go to hook, and has hooked unless it asks again.
    pub(crate) let_go: Vec<usize>,
    /// What is to be patched once the program says that it has mapped its memory.
    pub(crate) starting: Option<Vec<Patched>>,
    /// Addresses of the regions of roots that are in its image.
    pub(crate) regions: HashSet<u64>,
    pub(crate) room: Room,
    /// Whether every call its files make is seen, so that some can be answered in place.
    pub(crate) seen_whole: bool,
    /// Its code that is in no file.
    pub(crate) generated: Generated,
    /// How many of its files the kernel has mapped, the first ones.
    pub(crate) mapped_at_start: usize,
    /// How many files it had mapped without asking when that was looked at.
    pub(crate) unasked: u64,
    /// Which of what it has mapped is as it was then.
    pub(crate) unmoved: Unmoved,
    /// What those of its files that map others do it for.
    pub(crate) roles: MapperRoles,
}

/// Mappings that are as they were, though files came since that were not asked about.
#[derive(Default)]
pub(crate) struct Unmoved {
    /// How many had come when they were looked at.
    pub(crate) unasked: u64,
    /// Where they begin.
    pub(crate) starts: Vec<u64>,
}

/// What is known of the contexts its calls are made in.
#[derive(Default)]
pub(crate) struct Contexts {
    /// When a map of the functions that it compiles was last looked for, ns since the run's start.
    pub(crate) looked_for_map_ns: Option<u64>,
    /// Whether there is such a map, or is likely to be one before its first script runs.
    pub(crate) names_compiled: bool,
    /// Frames of the contexts counted at nodes, by their addresses.
    pub(crate) nodes: foldhash::HashMap<NodeAddr, Rc<[RawFrame]>>,
    /// Roots made for numbers, at sites that do not say which.
    pub(crate) number_roots: foldhash::HashMap<NodeAddr, NumberRoot>,
    pub(crate) failures: HashMap<NodeAddr, u32>,
    /// Pairs of a file's index and a caller's file whose contexts were taken from earlier programs.
    pub(crate) preloaded: foldhash::HashSet<(usize, ModuleKey)>,
    /// What earlier programs know of nodes, and later ones will.
    pub(crate) known: foldhash::HashMap<NodeAddr, Rc<KnownContext>>,
    /// What lies above contexts, by their nodes: whole stacks as threads compare theirs with them.
    pub(crate) trunks: foldhash::HashMap<NodeAddr, Rc<Above>>,
    /// Nodes taken from earlier programs at whose first call `main` has begun.
    pub(crate) main_nodes: Vec<NodeAddr>,
    /// Nodes at whose first call no window could be afforded.
    pub(crate) unopened: Vec<NodeAddr>,
    pub(crate) main_seen: bool,
    /// The first slot's memory when `main` was first seen.
    pub(crate) at_main: Option<Vec<(u64, Vec<u8>)>>,
}

/// The frames above a context.
#[derive(Debug)]
pub(crate) struct Above {
    pub(crate) frames: Vec<RawFrame>,
    /// Whether the last one is the stack's outermost.
    pub(crate) complete: bool,
    /// For how many there is room behind the node.
    pub(crate) room: usize,
}

impl Contexts {
    /// Says which context is counted at a node, unless that is known: a tree that the program has written over may lead
    /// another one there. Whether it is new.
    pub(crate) fn name(&mut self, node: NodeAddr, frames: Rc<[RawFrame]>) -> bool {
        let Entry::Vacant(new) = self.nodes.entry(node) else { return false };
        new.insert(frames);
        true
    }
}

/// A root made for one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberRoot {
    pub(crate) at: SiteRef,
    /// As a table of numbers tells them apart.
    pub(crate) number: u32,
}

/// Its threads, by their slots.
#[derive(Default)]
pub(crate) struct Threads {
    /// Slots whose thread changed what it may do, in memory that it has in common with its maker.
    pub(crate) changed: HashSet<u64>,
    /// Slots whose thread became another program.
    pub(crate) gone_by_exec: HashSet<u64>,
    /// Whether one was waited for in vain to say who it is.
    pub(crate) has_nameless: bool,
    pub(crate) tickets: Tickets,
    /// Threads that are known to be who they say, by slot.
    pub(crate) told: HashMap<u64, i32>,
    /// What slots that were given back came to beside rows.
    pub(crate) recycled: Tally,
    /// Requests that its threads have not come back from in time.
    pub(crate) unheeded: u32,
    /// How much of a thread's stack the last look at one needed, bytes.
    pub(crate) stack_read: usize,
    /// Windows that they have written, as of when those were last taken.
    pub(crate) written: u64,
}

/// The processes that run it.
#[derive(Default)]
pub(crate) struct Processes {
    /// Images of the processes forked from it, by process id.
    pub(crate) forks: HashMap<i32, ImageId>,
    /// Images of the processes that made those that have none yet, by process id of the made one.
    pub(crate) makers: HashMap<i32, ImageId>,
    /// Processor time its process had used before the program's own first instruction, ns.
    pub(crate) cpu_before: u64,
    /// The same of its first thread alone, by that thread's clock.
    pub(crate) thread_before: u64,
    /// Processor time of its processes as last seen, ns since each one's start.
    pub(crate) cpu_seen: HashMap<i32, u64>,
    /// Processes of it that have become other programs.
    pub(crate) execed: HashSet<i32>,
    /// Whether the process that executed it goes on in a copy of its image.
    pub(crate) first_has_parted: bool,
}

impl Program {
    /// One that has just been started, of which nothing is hooked yet.
    pub(crate) fn new(id: ProgramId, pid: i32, image: ImageId, space: AddressSpace, mem: Mem) -> Self {
        Self {
            id,
            pid,
            image,
            file: None,
            earlier: 0,
            looked: 0,
            outlook: Rc::default(),
            questions: 0,
            native: true,
            space,
            mem,
            queue: Queue::default(),
            hooks: Hooks { starting: Some(Vec::new()), seen_whole: true, ..Hooks::default() },
            contexts: Contexts::default(),
            threads: Threads::default(),
            processes: Processes::default(),
        }
    }

    /// Whether its processes are confined as we are: it was looked at when it began, or came of one that
    /// was, and every call that could have added a filter since would be known of.
    pub(crate) fn has_no_filter_of_its_own(&self, area: &Area) -> bool {
        let told = [image::QUIET, image::UNHEARD, image::UNSEEN, image::WRITES_CODE].map(|word| area.get(word) as u32);
        told == [0; 4] && self.hooks.seen_whole && self.hooks.generated.calls == 0 && !self.hooks.generated.too_much
    }

    /// Asks what processor time its processes have used.
    pub(crate) fn note_cpu(&mut self, memory: &Memory) {
        let Some(area) = memory.image(self.id).filter(|_| self.hooks.starting.is_none()) else { return };
        self.threads.tickets.look(area);
        let slots = self.threads.tickets.busy().iter().chain([&0]);
        let pids = slots.map(|index| memory.head(self.id.slot(*index)).pid as i32).filter(|pid| *pid > 0);
        let pids: HashSet<i32> = pids.collect();
        for pid in pids.difference(&self.processes.execed) {
            if let Some(ns) = sys::process_cpu(*pid) {
                self.processes.cpu_seen.insert(*pid, ns);
            }
        }
    }

    /// Process `pid` is about to be another program: what it has used was this one's.
    pub(crate) fn note_exec_cpu(&mut self, pid: i32) {
        self.processes.execed.insert(pid);
        if let Some(ns) = sys::process_cpu(pid) {
            self.processes.cpu_seen.insert(pid, ns);
        }
    }

    /// What is known of the processor time of its process `pid`.
    pub(crate) fn cpu_of(&self, pid: i32) -> KnownCpu {
        KnownCpu {
            seen: self.processes.cpu_seen.get(&pid).copied().unwrap_or(0),
            before: if pid == self.pid { self.processes.cpu_before } else { 0 },
            execed: self.processes.execed.contains(&pid),
        }
    }

    /// Whether its contexts that earlier programs had too are looked at from their first call on: in
    /// the thousandth short program of a kind they are nothing new.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.earlier < MAX_ALIKE
    }

    /// Which of its questions is the next one, among those of programs of its file.
    pub(crate) fn next_question(&mut self) -> (Rc<outlook::OfFile>, usize) {
        self.questions += 1;
        (Rc::clone(&self.outlook), self.questions - 1)
    }

    /// The root of a call made with `number` in eax at a site that does not say which, made if it is new. `None` where there
    /// is no room, and where the program has written another into the site's table.
    pub(crate) fn number_root(&mut self, area: &Area, at: SiteRef, number: u32) -> Option<NodeAddr> {
        let file = self.hooks.files.get(at.file)?;
        let site = file.code.blob.sites.get(at.site)?;
        let (table, offset) = (file.known.region + u64::from(site.table?), u64::from(site.offset.unwrap_or(0)));
        let given = |room: &Room| (room.contexts(), room.roots());
        let before = given(&self.hooks.room);
        let root = number_site(area.words(), &mut self.hooks.room, table, number, offset).map(NodeAddr).ok()?;
        let made = NumberRoot { at, number: call_of_entry(table_entry(number)).0 };
        if given(&self.hooks.room) != before {
            self.contexts.number_roots.insert(root, made);
        }
        (self.contexts.number_roots.get(&root) == Some(&made)).then_some(root)
    }

    /// The system call that is counted at `root`, where that is one's alone.
    pub(crate) fn number_of(&self, root: NodeAddr) -> Option<u32> {
        if let Some(made) = self.contexts.number_roots.get(&root) {
            return Some(made.number);
        }
        let at = self.site_of(root)?;
        let number = self.hooks.files.get(at.file)?.code.blob.sites.get(at.site)?.number;
        number.map(|number| Sysno::made(number).0)
    }

    /// Which call is counted at `node`, in the tree of `root`, and its frames as far as they are known; `None`
    /// where it is a call into the vDSO. `rax`: its number where the site does not say.
    pub(crate) fn call_at(&self, node: NodeAddr, root: NodeAddr, rax: u32) -> Option<(Sysno, Vec<RawFrame>)> {
        let at = self.site_of(root);
        let site = at.and_then(|at| self.hooks.files.get(at.file)?.code.blob.sites.get(at.site));
        if site.is_some_and(|site| site.vdso) {
            return None;
        }
        let leaf = || at.and_then(|at| self.leaf(at)).into_iter().collect();
        let frames = self.contexts.nodes.get(&node).map_or_else(leaf, |frames| frames.to_vec());
        Some((Sysno::made(self.number_of(root).unwrap_or(rax)), frames))
    }

    /// The site that counts at `root`.
    pub(crate) fn site_of(&self, root: NodeAddr) -> Option<SiteRef> {
        if let Some(made) = self.contexts.number_roots.get(&root) {
            return Some(made.at);
        }
        self.hooks.files.iter().enumerate().find_map(|(file, f)| {
            let index = usize::try_from(root.0.checked_sub(f.known.region)? / systoll_hooks::layout::NODE_SIZE).ok()?;
            (index < f.code.blob.sites.len()).then_some(SiteRef { file, site: index })
        })
    }

    /// The site whose table of numbers is at address `table`.
    pub(crate) fn site_of_table(&self, table: u64) -> Option<SiteRef> {
        self.hooks.files.iter().enumerate().find_map(|(file, f)| {
            let offset = u32::try_from(table.checked_sub(f.known.region)?).ok()?;
            let index = f.code.blob.sites.iter().position(|s| s.table == Some(offset))?;
            Some(SiteRef { file, site: index })
        })
    }

    /// The frame of a site's own `syscall`.
    pub(crate) fn leaf(&self, SiteRef { file, site }: SiteRef) -> Option<RawFrame> {
        let file = self.hooks.files.get(file)?;
        let address = file.code.blob.sites.get(site)?.address;
        Some(RawFrame { module: Some(file.key), address, is_return: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_first_name() {
        let frame = |address| RawFrame { module: None, address, is_return: true };
        let mut contexts = Contexts::default();
        assert!(contexts.name(NodeAddr(64), Rc::new([frame(1)])));
        assert!(!contexts.name(NodeAddr(64), Rc::new([frame(2)])));
        assert_eq!(*contexts.nodes[&NodeAddr(64)], [frame(1)]);
    }
}
