//! Gives a process that changes its rights an image of its own, before it does.
//!
//! Forked children count in their maker's image. A server that runs as root forks its workers, and they give up root:
//! from then on they must not write what root's process reads. Therefore every call that may change credentials,
//! namespaces, the root folder or a confinement asks first. If the image has other processes, the launcher copies it,
//! and the asking thread maps the copy over it:
//!
//! ```text
//! thread                                launcher
//! asks, waits                      ->   finds other processes in the image
//! memfd_create                     <-   request; takes the descriptor over (pidfd_getfd)
//!                                       stops the process's other threads, copies trees and its slots
//! mmap(copy) over the image        <-   request
//! waits in the copy                     empties its slots in the old image, lets the others go on
//! madvise, close                   <-   requests
//! makes its call                   <-   answer
//! ```
//!
//! If that fails, no process of the image is watched any longer: their jumps are removed, so that none of them enters
//! code that reads what another may write.

use crate::inproc::monitor::handles::{ProgramId, SlotRef};
use crate::inproc::monitor::polling::LONG_LIMIT;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::open_windows::OpenWindows;
use crate::inproc::monitor::requests::queue::Queue;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::requests::{leave_alone, request};
use crate::inproc::monitor::results::images;
use crate::inproc::monitor::session::{Provisioning, Session, Targets};
use crate::inproc::monitor::shared::maps::Maps;
use crate::inproc::monitor::shared::memory::{Head, Memory, Runs};
use crate::inproc::monitor::shared::peer::{self, Stopped};
use crate::inproc::monitor::shared::remote::Mem;
use crate::inproc::monitor::shared::snapshot::Snapshot;
use crate::inproc::monitor::sys;
use crate::inproc::monitor::tracees::Tracees;
use crate::problems::Problems;
use crate::table::ImageId;
use std::collections::BTreeSet;
use std::fs::File;
use std::time::{Duration, Instant};
use systoll_hooks::assemble::Words;
use systoll_hooks::layout::{GLOBAL, IMAGE, image, slot, state};
use systoll_hooks::numbers::{CLOSE, MADVISE, MEMFD_CREATE, MMAP};
use systoll_model::ProblemKind;
use systoll_symbols::AddressSpace;

/// Counters of an image's losses, and its queue. They begin anew in a copy.
const NOT_COPIED: [u64; 8] = [
    image::HOMELESS,
    image::UNANSWERED,
    image::UNHEARD,
    image::UNMATCHED,
    image::ASTRAY,
    image::DEAD,
    image::TICKET,
    image::LOADER,
];

/// Bytes of slots that are copied, at most: those of some thousand threads, unless the program has filled them itself.
const MOST_COPIED: u64 = 128 << 20;

/// The other processes of an image.
enum Others {
    /// There is no other process.
    None,
    /// Another process shares all memory with the asking one: a child of `vfork`, which is about to exec.
    SameMemory,
    /// There are other processes, with memory of their own.
    Apart,
    /// A process that was just made has not noted its identity yet.
    NotYet,
    /// The processes can't be determined.
    Unknown,
}

/// The outcome of moving a process to a copy of its image.
enum Moved {
    Yes,
    /// The process still counts in the old image, for this reason.
    No(String),
    /// The thread was asked to map the copy, and has not come back.
    Perhaps,
    /// The process still counts in the old image. It has put another file where the copy's was, which is not the
    /// launcher's to close.
    Swapped,
}

/// A slot as it was when it was copied.
struct CopiedSlot {
    index: u64,
    /// Contents of the slot: offsets in the image, and bytes.
    data: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    /// Copies the trees of an image and the slots `own` to a new one. Returns `None` if they are too large, or if the
    /// new one can't be written.
    fn copy(&self, from: ProgramId, to: ProgramId, own: &BTreeSet<u64>) -> Option<Vec<CopiedSlot>> {
        for (at, bytes) in self.trees(from) {
            self.write(to, &Runs::of(at, bytes)).then_some(())?;
        }
        let (mut left, mut slots) = (MOST_COPIED, Vec::new());
        for index in own {
            let data = self.slot_data(from.slot(*index), left);
            left = left.checked_sub(data.iter().map(|(_, bytes)| bytes.len() as u64).sum()).filter(|left| *left > 0)?;
            slots.push(CopiedSlot { index: *index, data });
        }
        for (at, bytes) in slots.iter().flat_map(|slot| &slot.data) {
            self.write(to, &Runs::of(*at, bytes.clone())).then_some(())?;
        }
        let Some(area) = self.image(to) else { return Some(slots) };
        area.set(image::ID, u64::from(to.0));
        NOT_COPIED.into_iter().for_each(|word| area.set(word, 0));
        (0..image::RING_LEN).for_each(|n| area.set(image::RING + 8 * n, 0));
        let last = image::SLOT_COUNT - 1;
        area.set(to.slot(last).offset() + slot::SELF, IMAGE + to.slot(last).offset());
        for index in own.iter().chain([&last]) {
            area.set(to.slot(*index).offset() + slot::TAG, to.slot(*index).tag());
        }
        Some(slots)
    }

    /// Empties a slot whose thread continues in a copy. Adds to the copy the calls that a signal handler has counted in
    /// the slot since then.
    fn settle_moved(&self, from: ProgramId, to: ProgramId, slot: &CopiedSlot) {
        let then = Snapshot::of(slot.data.clone());
        let base = from.slot(slot.index).offset();
        if let (Some(old), Some(new)) = (self.image(from), self.image(to)) {
            for (at, bytes) in &slot.data {
                let records = (*at..*at + bytes.len() as u64)
                    .step_by(8)
                    .filter(|at| (base + slot::RECORDS..base + slot::LONG_CALLS).contains(at));
                for at in records {
                    let more = old.get(at).wrapping_sub(then.word(at));
                    if more != 0 {
                        new.set(at, new.get(at).wrapping_add(more));
                    }
                }
            }
        }
        self.clean_slot(from.slot(slot.index));
    }
}

impl Program {
    /// Creates the program of process `pid`, which has a copy of this program's image. It knows the same files and
    /// contexts.
    fn parted(&mut self, (id, pid, image): (ProgramId, i32, ImageId), space: AddressSpace, mem: Mem) -> Self {
        let first = pid == self.pid;
        let mut new = Self::new(id, pid, image, space, mem);
        new.native = false;
        new.processes.only = self.processes.only;
        new.hooks.starting = None;
        (new.file, new.earlier) = (self.file, self.earlier);
        new.hooks.files = self.hooks.files.clone();
        new.hooks.regions = self.hooks.regions.clone();
        new.hooks.room = self.hooks.room.clone();
        new.contexts.nodes = self.contexts.nodes.clone();
        new.contexts.number_roots = self.contexts.number_roots.clone();
        new.contexts.preloaded = self.contexts.preloaded.clone();
        new.contexts.known = self.contexts.known.clone();
        new.contexts.trunks = self.contexts.trunks.clone();
        new.hooks.seen_whole = self.hooks.seen_whole;
        new.hooks.generated = self.hooks.generated.clone();
        (new.hooks.mapped_at_start, new.hooks.roles) = (self.hooks.mapped_at_start, self.hooks.roles.clone());
        new.contexts.main_seen = self.contexts.main_seen;
        new.contexts.names_compiled = self.contexts.names_compiled;
        new.processes.cpu_seen.extend(self.processes.cpu_seen.remove_entry(&pid));
        new.processes.makers.extend(self.processes.makers.remove_entry(&pid));
        if first {
            (new.processes.cpu_before, new.hooks.faults) = (self.processes.cpu_before, self.hooks.faults);
            (new.contexts.at_main, new.contexts.main_nodes) =
                (self.contexts.at_main.take(), std::mem::take(&mut self.contexts.main_nodes));
            self.processes.first_has_parted = true;
        }
        new
    }
}

/// Handles a thread that is about to change its process's rights. Returns the program that the thread belongs to from
/// now on.
pub(crate) fn part_ways(session: &mut Session, waiter: &Waiter) -> ProgramId {
    let Some(pid) = process_of(&session.targets.memory, waiter.slot, waiter.tid) else { return waiter.slot.program };
    let others = settled_others(&mut session.targets, waiter.slot.program, pid);
    if let Some(program) = session.targets.programs.get_mut(&waiter.slot.program) {
        match others {
            Others::None => program.native = false,
            _ => drop(program.threads.changed.insert(waiter.slot.index)),
        }
    }
    let parted = match others {
        Others::None | Others::SameMemory => return waiter.slot.program,
        Others::Apart => move_to_copy(session, waiter, pid),
        Others::NotYet | Others::Unknown => Err("who shares its memory is unknown".into()),
    };
    parted.unwrap_or_else(|why| {
        give_up_image(&session.targets, &mut session.draft.problems, waiter.slot.program, &why);
        waiter.slot.program
    })
}

/// Returns the process of a waiting thread, if the thread is the one that its slot names.
fn process_of(memory: &Memory, thread: SlotRef, tid: i32) -> Option<i32> {
    let pid = memory.head(thread).pid as i32;
    (pid > 0 && sys::thread_exists(pid, tid)).then_some(pid)
}

/// Returns the other processes of the image, after waiting until new processes have noted their identity, for which
/// they need a moment of a processor. A process killed before that never does, so we wait only once per program:
/// everything else waits for the launcher meanwhile.
fn settled_others(targets: &mut Targets, id: ProgramId, pid: i32) -> Others {
    // Of a program with thousands of threads, asking once takes some 20 ms: the time is bounded, not the number of questions.
    const PATIENCE: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(1);
    let waited = targets.programs.get(&id).is_some_and(|program| program.threads.has_nameless);
    let begun = Instant::now();
    loop {
        match others(targets, id, pid) {
            Others::NotYet if waited || begun.elapsed() >= PATIENCE => break,
            Others::NotYet => std::thread::sleep(PAUSE),
            known => return known,
        }
    }
    if let Some(program) = targets.programs.get_mut(&id) {
        program.threads.has_nameless = true;
    }
    Others::Unknown
}

/// Returns true if another process may share all memory with process `pid` of an image.
pub(crate) fn may_share_memory(targets: &Targets, id: ProgramId, pid: i32) -> bool {
    matches!(others(targets, id, pid), Others::SameMemory | Others::Unknown | Others::NotYet)
}

fn others(targets: &Targets, id: ProgramId, pid: i32) -> Others {
    let Some(program) = targets.programs.get(&id) else { return Others::None };
    let homeless = targets.memory.image(id).map_or(0, |area| area.get(image::HOMELESS));
    let (mut pids, mut nameless) = (BTreeSet::new(), false);
    for index in 0..targets.memory.slots_drawn(id) {
        let head = targets.memory.head(id.slot(index));
        if head.own == 0 || program.threads.gone_by_exec.contains(&index) || head.pid as i32 == pid {
            continue;
        }
        // A process that has not noted its identity was just made; its maker may know it.
        let (said, made_as) = (head.pid as i32, head.made_as as i32);
        nameless |= said == 0 && !head.leaving && made_as == 0;
        if said == 0 && made_as > 0 && sys::thread_exists(pid, made_as) {
            continue;
        }
        pids.insert(if said == 0 { made_as } else { said });
    }
    pids.retain(|other| *other > 0 && sys::exists(*other));
    let same: Vec<Option<bool>> = pids.iter().map(|other| peer::same_memory(pid, *other)).collect();
    match () {
        () if same.contains(&Some(true)) => Others::SameMemory,
        // The owner of the last slot is unknown, as many threads share it.
        () if homeless > 0 || same.contains(&None) => Others::Unknown,
        () if nameless => Others::NotYet,
        () if same.is_empty() => Others::None,
        () => Others::Apart,
    }
}

/// Gives process `pid`, one of whose threads waits, a copy of its image. Returns its new program.
///
/// # Errors
/// A text, if it stays in the old image.
fn move_to_copy(session: &mut Session, waiter: &Waiter, pid: i32) -> Result<ProgramId, String> {
    let thread = waiter.slot;
    let quiet = session.targets.memory.image(thread.program).is_none_or(|a| a.get(image::QUIET) as u32 != 0);
    if quiet {
        return Err("a filter of its own forbids it memory of its own".into());
    }
    let (file, fd) = own_file(&mut session.targets, thread, pid).ok_or("it could not be given memory of its own")?;
    let copy = session.targets.memory.adopt_image(file).ok_or("no memory for another program")?;
    let moved = fill_and_move(session, waiter, pid, OwnImage { copy, fd });
    let close = [CLOSE.into(), fd as u64, 0, 0, 0, 0, 0];
    match moved {
        Moved::Yes => {
            let _ = request::request(&mut session.targets, copy.slot(thread.index), close);
            Ok(copy)
        }
        Moved::No(why) => {
            session.targets.memory.free_image(copy);
            let _ = request::request(&mut session.targets, thread, close);
            Err(why)
        }
        Moved::Swapped => {
            session.targets.memory.free_image(copy);
            Err("its descriptors change too quickly".into())
        }
        // A thread that comes late finds the copy as it is. A thread whose mapping failed waits in the old image and
        // closes the descriptor; a thread that does not wait leaves this request undone.
        Moved::Perhaps => {
            let _ = request::request(&mut session.targets, thread, close);
            Err("it could not map memory of its own, or took too long".into())
        }
    }
}

/// Makes the waiting thread create a file in memory, and takes its descriptor over. We have the thread's own rights to
/// it, so that we write nothing that the process could not write itself.
fn own_file(targets: &mut Targets, thread: SlotRef, pid: i32) -> Option<(File, i32)> {
    let flags = u64::from(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
    let reply = request::request(targets, thread, [MEMFD_CREATE.into(), IMAGE + image::NAME, flags, 0, 0, 0, 0])?;
    let fd = i32::try_from(reply as i64).ok().filter(|fd| *fd >= 0)?;
    let file = peer::take_memory_file(pid, fd);
    if file.is_none() {
        request::request(targets, thread, [CLOSE.into(), reply, 0, 0, 0, 0, 0]);
    }
    file.map(|file| (file, fd))
}

/// A copy of an image, made for one of its processes.
struct OwnImage {
    copy: ProgramId,
    /// The process's descriptor of the copy's file.
    fd: i32,
}

fn fill_and_move(session: &mut Session, waiter: &Waiter, pid: i32, OwnImage { copy, fd }: OwnImage) -> Moved {
    let (id, moved) = (waiter.slot.program, copy.slot(waiter.slot.index));
    let (_others, own) = match stopped(&session.targets.memory, &session.traced.tracees, waiter, pid) {
        Ok(stopped) => stopped,
        Err(why) => return Moved::No(why),
    };
    if let (Some(area), Some(program)) = (session.targets.memory.image(id), session.targets.programs.get_mut(&id)) {
        program.threads.tickets.note_drawn(area);
    }
    let Some(copied) = session.targets.memory.copy(id, copy, &own) else {
        return Moved::No("there is too much in it to be copied, or no memory to copy it to".into());
    };
    // Another thread may have put another file there before it was stopped. Mapping that could fail after the old image
    // is unmapped (a socket's mapping does), and the thread would have no slot to continue in.
    if !session.targets.memory.is_file_of(copy, pid, fd) {
        return Moved::Swapped;
    }
    if let Some(state) = session.targets.memory.image(copy).and_then(|area| area.half(moved.offset() + slot::STATE)) {
        state.store(state::REQUEST, std::sync::atomic::Ordering::SeqCst);
    }
    let flags = (libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE) as u64;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let map = [MMAP.into(), IMAGE, image::SIZE, protection, flags, fd as u64, 0];
    match request::request_and_come_back(&mut session.targets, waiter.slot, copy, map, LONG_LIMIT) {
        Some(IMAGE) => {}
        // The thread came back through the old image, while the launcher expected it in the copy.
        _ => return Moved::Perhaps,
    }
    split(session, id, copy, pid, &copied);
    forget_thread(&mut session.knowledge.provisioning, &mut session.draft.windows, waiter.tid);
    // Exclude the new mapping from core dumps, as the old one was.
    let dont = [MADVISE.into(), GLOBAL, IMAGE + image::SIZE - GLOBAL, libc::MADV_DONTDUMP as u64, 0, 0, 0];
    let _ = request::request(&mut session.targets, moved, dont);
    Moved::Yes
}

/// Stops all threads of process `pid` except the one that waits. Returns them, and the slots of all threads.
///
/// # Errors
/// If they can't be stopped, or not at a moment at which each has its slot.
fn stopped(memory: &Memory, tracees: &Tracees, waiter: &Waiter, pid: i32) -> Result<(Stopped, BTreeSet<u64>), String> {
    const ATTEMPTS: usize = 50;
    const PAUSE: Duration = Duration::from_millis(1);
    for _ in 0..ATTEMPTS {
        let others = Stopped::all_but(pid, waiter.tid, &mut |tid| tracees.seized.contains_key(&tid))
            .ok_or("its other threads could not be stopped")?;
        // Threads that are stopped keep their slots.
        if let Some(own) = others.slots().and_then(|of_others| slots_of(memory, waiter.slot, pid, of_others)) {
            return Ok((others, own));
        }
        drop(others);
        std::thread::sleep(PAUSE);
    }
    Err("its threads come and go too quickly".into())
}

/// Returns the slots of process `pid`: those that name the process, and those its threads are in, which may not name it
/// yet. Returns `None` while a thread or process is being made whose slot has no known owner.
fn slots_of(memory: &Memory, asks: SlotRef, pid: i32, of_others: Vec<u64>) -> Option<BTreeSet<u64>> {
    let id = asks.program;
    let heads: Vec<(u64, Head)> = (0..memory.slots_drawn(id)).map(|n| (n, memory.head(id.slot(n)))).collect();
    let said = heads.iter().filter(|(_, head)| head.own != 0 && head.pid as i32 == pid).map(|(n, _)| *n);
    let threads = of_others.len() + 1;
    let mut own: BTreeSet<u64> = of_others.into_iter().chain([asks.index]).collect();
    // A thread that has just begun is still in its maker's slot.
    if own.len() < threads {
        return None;
    }
    own.extend(said);
    let is_made = |(n, head): &(u64, Head)| {
        let unsaid = head.own != 0 && head.pid == 0 && head.made_as == 0 && !head.leaving;
        unsaid && !own.contains(n) && head.parent.is_some_and(|maker| own.contains(&maker))
    };
    (!heads.iter().any(is_made)).then_some(own)
}

/// Divides a program: process `pid` with the slots `copied` is a program of its own from now on.
fn split(session: &mut Session, id: ProgramId, copy: ProgramId, pid: i32, copied: &[CopiedSlot]) {
    let own: Vec<u64> = copied.iter().map(|slot| slot.index).collect();
    let own = own.as_slice();
    let now = session.draft.clock.at(sys::now());
    let Some(mut old) = session.targets.programs.remove(&id) else { return };
    let (image, mem) = (images::image_for(&mut session.draft.table, &mut old, pid, now), Mem::open(pid));
    let mut space = AddressSpace::new();
    let maps = Maps::of(pid);
    space.update_by(&mut session.knowledge.symbols, pid, &maps.text);
    if let Ok(mem) = mem {
        let mut new = old.parted((copy, pid, image), space, mem);
        // Threads that wait in the copy have asked through the queue of the old image.
        new.queue = Queue::overrun();
        if let Some(area) = session.targets.memory.image(copy) {
            new.threads.tickets = old.threads.tickets.of_copy(area, own);
        }
        for index in own {
            rename_slot(&mut session.draft.windows, &mut session.traced.tracees, id.slot(*index), copy.slot(*index));
        }
        new.threads.told.extend(own.iter().filter_map(|n| Some((*n, old.threads.told.remove(n)?))));
        session.targets.programs.insert(copy, new);
    } else {
        session
            .draft
            .problems
            .note(ProblemKind::Unwatched, format!("process {pid} could not be followed when it changed its user"));
    }
    for slot in copied {
        session.targets.memory.settle_moved(id, copy, slot);
    }
    if let Some(area) = session.targets.memory.image(id) {
        old.threads.tickets.give_back(area, own);
    }
    session.targets.programs.insert(id, old);
}

/// Notes that a thread's slot is in another program now.
fn rename_slot(windows: &mut OpenWindows, tracees: &mut Tracees, from: SlotRef, to: SlotRef) {
    windows.move_thread(from, to);
    for seized in tracees.seized.values_mut().filter(|s| s.from == Some(from)) {
        seized.from = Some(to);
    }
}

fn forget_thread(provisioning: &mut Provisioning, windows: &mut OpenWindows, tid: i32) {
    windows.unwound = None;
    if provisioning.maps_file.as_ref().is_some_and(|last| last.tid == tid) {
        provisioning.maps_file = None;
    }
}

/// Removes all jumps from every process of an image, because processes share it that must not.
fn give_up_image(targets: &Targets, problems: &mut Problems, id: ProgramId, why: &str) {
    let pids: BTreeSet<i32> =
        (0..targets.memory.slots_drawn(id)).map(|n| targets.memory.head(id.slot(n)).pid as i32).collect();
    // The program writes this list: it may name processes that are none of its own.
    for pid in pids.into_iter().filter(|pid| *pid > 0 && peer::maps_image(*pid, id)) {
        leave_alone::leave_alone(
            &targets.programs,
            problems,
            id,
            pid,
            &format!("shares its maker's memory and changes what it may do, and {why}"),
        );
    }
}
