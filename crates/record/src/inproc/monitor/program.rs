//! A watched program: the processes that one `execve` started, with their threads and forks.

use crate::inproc::monitor::exec::context_reuse::KnownContext;
use crate::inproc::monitor::exec::files::PlannedFile;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SiteRef};
use crate::inproc::monitor::next_question;
use crate::inproc::monitor::requests::generated::Generated;
use crate::inproc::monitor::requests::mapper_roles::MapperRoles;
use crate::inproc::monitor::requests::queue::Queue;
use crate::inproc::monitor::requests::tickets::Tickets;
use crate::inproc::monitor::results::cpu_time::CpuReadings;
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
use systoll_hooks::layout::{call_of_entry, image, may_hold_node, node, record, table_entry};
use systoll_model::Sysno;
use systoll_symbols::{AddressSpace, ModuleKey, RawFrame};

/// Number of programs of one file whose known contexts are sampled from their first call on.
const MAX_ALIKE: u32 = 8;

/// A file of a program, with the jumps written into it.
#[derive(Clone)]
pub(crate) struct Patched {
    pub(crate) key: ModuleKey,
    pub(crate) known: Rc<PlannedFile>,
    pub(crate) code: Rc<Code>,
    pub(crate) bias: u64,
}

impl Patched {
    /// Returns the range of the file's counting code in the process, including the read-only data behind it.
    pub(crate) fn code_range(&self) -> Range<u64> {
        let start = self.bias.wrapping_add_signed(self.code.blob.delta);
        start..start.saturating_add(self.code.size())
    }

    /// Returns true if any of the file's jumps are in place.
    pub(crate) fn is_in(&self, mem: &Mem) -> bool {
        mem.has_any(&self.code.jumps, self.bias)
    }
}

/// The watched programs, by their ids.
pub(crate) type Programs = foldhash::HashMap<ProgramId, Program>;

/// A watched program: everything that the launcher knows about it.
pub(crate) struct Program {
    pub(crate) id: ProgramId,
    /// Id of the process that executed the program.
    pub(crate) pid: i32,
    /// Index of the program's image in the table.
    pub(crate) image: ImageId,
    /// Key of the program's own file, if the kernel has mapped the file under the executed name.
    pub(crate) file: Option<ModuleKey>,
    /// Number of earlier programs of the same file.
    pub(crate) earlier: u32,
    /// Number of calls that the program's samples of single calls stand for.
    pub(crate) looked: u64,
    /// History of the first questions of earlier programs of the same file.
    pub(crate) outlook: Rc<next_question::FileHistory>,
    pub(crate) questions: usize,
    /// True if the program's processes have, as far as is known, the launcher's own credentials and namespaces.
    pub(crate) native: bool,
    pub(crate) space: AddressSpace,
    pub(crate) mem: Mem,
    pub(crate) queue: Queue,
    pub(crate) hooks: Hooks,
    pub(crate) contexts: Contexts,
    pub(crate) threads: Threads,
    pub(crate) processes: Processes,
}

/// Hooks of the program's code.
#[derive(Default)]
pub(crate) struct Hooks {
    /// Mappings of the program while it is new.
    pub(crate) maps: Vec<Mapped>,
    /// Page faults that the program's first thread has taken for us.
    pub(crate) faults: u64,
    pub(crate) files: Vec<Patched>,
    /// Indexes in `files` of the files that a released thread was to hook. If the thread does not ask again, it has
    /// hooked them.
    pub(crate) let_go: Vec<usize>,
    /// Files to patch once the program says that it has mapped its memory.
    pub(crate) starting: Option<Vec<Patched>>,
    /// Addresses of the regions of roots in the program's image.
    pub(crate) regions: HashSet<u64>,
    pub(crate) room: Room,
    /// True if every call of the program's files is seen, so that some can be answered in place.
    pub(crate) seen_whole: bool,
    /// The program's code that is in no file.
    pub(crate) generated: Generated,
    /// Number of files that the kernel mapped at the start; they come first in `files`.
    pub(crate) mapped_at_start: usize,
    /// Number of files that the program had mapped without asking, when that was last read.
    pub(crate) unasked: u64,
    /// Mappings that had not changed when `unasked` was read.
    pub(crate) unmoved: CheckedMappings,
    /// Purposes for which the program's files map others.
    pub(crate) roles: MapperRoles,
}

/// Mappings that have not changed, though further files were mapped without asking.
#[derive(Default)]
pub(crate) struct CheckedMappings {
    /// Number of files mapped without asking when the mappings were checked.
    pub(crate) unasked: u64,
    /// Start addresses of the mappings.
    pub(crate) starts: Vec<u64>,
}

/// Facts about the contexts of a program's calls.
#[derive(Default)]
pub(crate) struct Contexts {
    /// Time of the last search for a map of the functions that the program compiles, ns since the run's start.
    pub(crate) looked_for_map_ns: Option<u64>,
    /// True if the program keeps a map of its compiled functions, or will probably keep one before its first script
    /// runs.
    pub(crate) names_compiled: bool,
    /// Frames of the contexts counted at nodes, by the nodes' addresses.
    pub(crate) nodes: foldhash::HashMap<NodeAddr, Rc<[RawFrame]>>,
    /// Roots that each count the calls of one number, at sites that do not tell the number.
    pub(crate) number_roots: foldhash::HashMap<NodeAddr, NumberRoot>,
    pub(crate) failures: HashMap<NodeAddr, u32>,
    /// Number of a thread's call at a node at which it last asked because a sample was due.
    pub(crate) asked_at: foldhash::HashMap<NodeAddr, u64>,
    /// Nodes that count all further contexts of their level, until new contexts may be looked up again.
    pub(crate) shortened: Vec<NodeAddr>,
    /// Number of times that a level was shortened so.
    pub(crate) times_shortened: u64,
    /// Pairs of a file's index and a caller's file whose contexts were taken from earlier programs.
    pub(crate) preloaded: foldhash::HashSet<(usize, ModuleKey)>,
    /// Contexts of nodes that earlier programs have had and later programs will reuse.
    pub(crate) known: foldhash::HashMap<NodeAddr, Rc<KnownContext>>,
    /// Whole stacks above contexts, by node; threads compare their stacks with these.
    pub(crate) trunks: foldhash::HashMap<NodeAddr, Rc<Above>>,
    /// Nodes taken from earlier programs at whose first call `main` has begun.
    pub(crate) main_nodes: Vec<NodeAddr>,
    /// Nodes at whose first call the budget allowed no window.
    pub(crate) unopened: Vec<NodeAddr>,
    pub(crate) main_seen: bool,
    /// Time at which the contexts of each level are next sorted, and how long after that again, ns.
    pub(crate) sort_at: Option<(u64, u64)>,
    /// The first slot's memory at the moment when `main` was first seen.
    pub(crate) at_main: Option<Vec<(u64, Vec<u8>)>>,
}

/// The frames above a context.
#[derive(Debug)]
pub(crate) struct Above {
    pub(crate) frames: Vec<RawFrame>,
    /// True if the last frame is the stack's outermost.
    pub(crate) complete: bool,
    /// Number of frames for which there is room behind the node.
    pub(crate) room: usize,
}

impl Contexts {
    /// Sets the context that is counted at a node, unless it is set already: a tree that the program has overwritten
    /// may lead another context there. Returns true if it was set now.
    pub(crate) fn name(&mut self, node: NodeAddr, frames: Rc<[RawFrame]>) -> bool {
        let Entry::Vacant(new) = self.nodes.entry(node) else { return false };
        new.insert(frames);
        true
    }

    /// Lets threads ask again about the contexts that were counted at fewer callers to save time.
    pub(crate) fn ask_again(&mut self, area: Option<&Area>) {
        for node in self.shortened.drain(..) {
            let area = area.filter(|_| may_hold_node(node.offset()));
            if let Some(area) = area.filter(|area| area.get(node.offset() + node::SIBLING) == node::REST) {
                area.set(node.offset() + node::SIBLING, 0);
            }
        }
    }
}

/// The site and the number of a root that counts the calls of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberRoot {
    pub(crate) at: SiteRef,
    /// Number of the call, encoded as in the site's table of numbers.
    pub(crate) number: u32,
}

/// A program's threads, by their slots.
#[derive(Default)]
pub(crate) struct Threads {
    /// Slots whose thread changed its rights while it shared its memory with the thread that made it.
    pub(crate) changed: HashSet<u64>,
    /// Slots whose thread executed another program.
    pub(crate) gone_by_exec: HashSet<u64>,
    /// True if we waited in vain for a thread to note its identity.
    pub(crate) has_nameless: bool,
    pub(crate) tickets: Tickets,
    /// Number of drawn slots, thus of threads, from which on calls of short threads are sampled again.
    pub(crate) sample_at: u64,
    /// True if threads were seen that end before they have made as many calls as a window waits for.
    pub(crate) come_and_go: bool,
    /// Ids of the threads whose identity was verified, by slot.
    pub(crate) told: HashMap<u64, i32>,
    /// Figures of recycled slots that belong to no row.
    pub(crate) recycled: Tally,
    /// Number of requests from which the threads have not come back in time.
    pub(crate) unheeded: u32,
    /// Bytes of a thread's stack that the last unwinding needed.
    pub(crate) stack_read: usize,
    /// Time of the monotonic clock, ns, when mappings were last read because a stack ended outside the known ones.
    pub(crate) read_maps_ns: Option<u64>,
    /// Number of windows written when windows were last taken.
    pub(crate) written: u64,
}

/// The processes that run the program.
#[derive(Default)]
pub(crate) struct Processes {
    /// Images of the processes that were forked from the program, by process id.
    pub(crate) forks: HashMap<i32, ImageId>,
    /// Images of the makers of new processes that have no image yet, by the id of the new process.
    pub(crate) makers: HashMap<i32, ImageId>,
    /// Processor time of the program's process before its first instruction, ns.
    pub(crate) cpu_before: u64,
    /// Processor time of the program's first thread before its first instruction, by the thread's clock.
    pub(crate) thread_before: u64,
    /// Processor time of the program's processes as last read, ns since each one's start.
    pub(crate) cpu_seen: HashMap<i32, u64>,
    /// Ids of processes that have executed another program.
    pub(crate) execed: HashSet<i32>,
    /// True if the process that executed it continues in a copy of its image.
    pub(crate) first_has_parted: bool,
    /// The only process whose calls are reported; `None` if those of all processes are.
    pub(crate) only: Option<i32>,
}

impl Processes {
    /// Returns true if the calls of process `pid` are reported. A slot without a process is the first thread's.
    pub(crate) fn tells(&self, pid: i32) -> bool {
        self.only.is_none_or(|only| pid == 0 || pid == only)
    }
}

impl Program {
    /// Creates a program that was just started and is not hooked yet.
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

    /// Returns true if the program's processes are confined exactly as we are: the first was checked when it began, or
    /// descends from one that was, and we have seen every call that could have added a filter since.
    pub(crate) fn has_no_filter_of_its_own(&self, area: &Area) -> bool {
        let told = [image::QUIET, image::UNHEARD, image::UNSEEN, image::WRITES_CODE].map(|word| area.get(word) as u32);
        told == [0; 4] && self.hooks.seen_whole && self.hooks.generated.calls == 0 && !self.hooks.generated.too_much
    }

    /// Reads the processor time of the program's processes.
    pub(crate) fn note_cpu(&mut self, memory: &Memory) {
        let Some(area) = memory.image(self.id).filter(|_| self.hooks.starting.is_none()) else { return };
        self.threads.tickets.note_drawn(area);
        let slots = self.threads.tickets.busy().iter().chain([&0]);
        let pids = slots.map(|index| memory.head(self.id.slot(*index)).pid as i32).filter(|pid| *pid > 0);
        let pids: HashSet<i32> = pids.collect();
        for pid in pids.difference(&self.processes.execed) {
            if let Some(ns) = sys::process_cpu(*pid) {
                self.processes.cpu_seen.insert(*pid, ns);
            }
        }
    }

    /// Returns the process and thread ids of the program's threads, as their slots tell them.
    pub(crate) fn living_threads(&self, memory: &Memory) -> impl Iterator<Item = (u32, u32)> {
        let slots = self.threads.tickets.busy().iter().chain([&0]).filter(|_| self.hooks.starting.is_none());
        let heads = slots.map(|index| memory.head(self.id.slot(*index)));
        heads.filter(|head| head.pid > 0 && head.tid > 0).map(|head| (head.pid, head.tid))
    }

    /// Returns the processor time that the program's processes had used when it was last read, since it was entered, ns.
    pub(crate) fn cpu_ns(&self) -> u64 {
        let all = self.processes.cpu_seen.keys().map(|pid| self.cpu_of(*pid));
        all.fold(0, |sum, read| sum.saturating_add(read.seen.saturating_sub(read.before)))
    }

    /// Notes that process `pid` is about to execute another program: its processor time so far belongs to this one.
    pub(crate) fn note_exec_cpu(&mut self, pid: i32) {
        self.processes.execed.insert(pid);
        if let Some(ns) = sys::process_cpu(pid) {
            self.processes.cpu_seen.insert(pid, ns);
        }
    }

    /// Returns the readings of the processor time of process `pid`.
    pub(crate) fn cpu_of(&self, pid: i32) -> CpuReadings {
        CpuReadings {
            seen: self.processes.cpu_seen.get(&pid).copied().unwrap_or(0),
            before: if pid == self.pid { self.processes.cpu_before } else { 0 },
            execed: self.processes.execed.contains(&pid),
        }
    }

    /// Returns true if contexts that earlier programs had too are sampled from their first call on: in the thousandth
    /// short program of a kind such contexts bring nothing new.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.earlier < MAX_ALIKE
    }

    /// Returns the number of calls of a row that were not made by the thread in slot `own`, where threads come and go;
    /// otherwise 0. `node` counts calls of the row, and `ended` of its calls are those of threads that are gone. It is an
    /// estimate: other nodes may count calls of the row too.
    pub(crate) fn calls_of_others(&self, area: &Area, node: NodeAddr, own: u64, ended: u64) -> u64 {
        let record = self.threads.come_and_go.then(|| area.record_of(node)).flatten();
        let Some(record) = record else { return 0 };
        let (busy, read) = (self.threads.tickets.busy(), self.threads.tickets.recent());
        let calls = |slot: &u64| area.get(self.id.slot(*slot).offset() + record + record::ENTERED);
        let others = std::iter::once(&0).chain(read).filter(|slot| **slot != own);
        let sum = others.map(calls).fold(0u64, u64::saturating_add);
        let sum = sum as f64 * busy.len().max(1) as f64 / read.len().max(1) as f64;
        ended.saturating_add(sum as u64)
    }

    /// Returns the history of the file's questions, and the number of the program's next question in it.
    pub(crate) fn next_question(&mut self) -> (Rc<next_question::FileHistory>, usize) {
        self.questions += 1;
        (Rc::clone(&self.outlook), self.questions - 1)
    }

    /// Returns the root of a call made with `number` in eax at a site that does not tell the number; makes it if it is
    /// new. Returns `None` if there is no room, or if the program has overwritten the site's table.
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

    /// Returns the system call that is counted at `root`; `None` if several are.
    pub(crate) fn number_of(&self, root: NodeAddr) -> Option<u32> {
        if let Some(made) = self.contexts.number_roots.get(&root) {
            return Some(made.number);
        }
        let at = self.site_of(root)?;
        let number = self.hooks.files.get(at.file)?.code.blob.sites.get(at.site)?.number;
        number.map(|number| Sysno::made(number).0)
    }

    /// Returns the call that is counted at `node`, in the tree of `root`, and its frames as far as they are known;
    /// `None` if it is a call into the vDSO. `rax` is its number if the site does not tell it.
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

    /// Returns true if a record counts calls into the vDSO, which are no system calls.
    pub(crate) fn is_of_vdso(&self, record: u64) -> bool {
        let root = self.hooks.room.place(record).map(|place| NodeAddr(place.root));
        let at = root.and_then(|root| self.site_of(root));
        at.and_then(|at| self.hooks.files.get(at.file)?.code.blob.sites.get(at.site)).is_some_and(|site| site.vdso)
    }

    /// Returns the site that counts at `root`.
    pub(crate) fn site_of(&self, root: NodeAddr) -> Option<SiteRef> {
        if let Some(made) = self.contexts.number_roots.get(&root) {
            return Some(made.at);
        }
        self.hooks.files.iter().enumerate().find_map(|(file, f)| {
            let index = usize::try_from(root.0.checked_sub(f.known.region)? / systoll_hooks::layout::NODE_SIZE).ok()?;
            (index < f.code.blob.sites.len()).then_some(SiteRef { file, site: index })
        })
    }

    /// Returns the site whose table of numbers is at address `table`.
    pub(crate) fn site_of_table(&self, table: u64) -> Option<SiteRef> {
        self.hooks.files.iter().enumerate().find_map(|(file, f)| {
            let offset = u32::try_from(table.checked_sub(f.known.region)?).ok()?;
            let index = f.code.blob.sites.iter().position(|s| s.table == Some(offset))?;
            Some(SiteRef { file, site: index })
        })
    }

    /// Returns the frame of a site's own `syscall`.
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
