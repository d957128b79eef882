//! A process that changes what it may do gets an image of its own, before it does.
//!
//! Fork children count in their maker's image. A server that runs as root forks its workers and they
//! give root up: from then on they must not write what root's process reads. So every call that may
//! change credentials, namespaces, the root folder or a confinement asks first; if the image has
//! other processes, the launcher copies it, and the asking thread maps the copy over it:
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
//! Where that fails no process of the image is watched any longer: their jumps are taken out, so that
//! none of them enters code that reads what another may write.

use super::engine::{Engine, LONG_LIMIT};
use super::memory::{Head, Memory, Runs, Snapshot};
use super::peer::{self, Stopped};
use super::program::{Program, Waiter};
use super::queue::Queue;
use super::sys;
use super::target::Mem;
use std::collections::BTreeSet;
use std::fs::File;
use std::time::Duration;
use systoll_hooks::assemble::Words;
use systoll_hooks::layout::{GLOBAL, IMAGE, image, slot, state};
use systoll_hooks::numbers::{CLOSE, MADVISE, MEMFD_CREATE, MMAP};
use systoll_model::ProblemKind;
use systoll_symbols::AddressSpace;

/// Counters of an image's losses and its queue: those of a copy begin anew.
const NOT_COPIED: [u64; 7] =
    [image::HOMELESS, image::UNANSWERED, image::UNHEARD, image::UNMATCHED, image::ASTRAY, image::DEAD, image::TICKET];

/// Bytes of slots that are copied, at most: those of some thousand threads, unless the program has filled
/// them itself.
const MOST_COPIED: u64 = 128 << 20;

/// Who else is in an image.
enum Others {
    /// No other process.
    None,
    /// One that has all memory in common with the asking one: a child of `vfork`, which is about to
    /// become another program.
    SameMemory,
    /// Others, with memory of their own.
    Apart,
    /// It can't be told.
    Unknown,
}

/// Whether a process counts in a copy of its image now.
enum Moved {
    Yes,
    /// Why not.
    No(String),
    /// The thread was asked to map it, and has not come back.
    Perhaps,
}

impl Engine {
    /// A thread is about to make a call that changes what its process may do. The program that it
    /// belongs to from now on.
    pub(super) fn part_ways(&mut self, id: u32, index: u64, waiter: &Waiter) -> u32 {
        let Some(pid) = self.process_of(id, index, waiter.tid) else { return id };
        let others = self.settled_others(id, pid);
        if let Some(program) = self.programs.get_mut(&id) {
            match others {
                Others::None => program.native = false,
                _ => drop(program.changed.insert(index)),
            }
        }
        let parted = match others {
            Others::None | Others::SameMemory => return id,
            Others::Apart => self.move_to_copy(id, pid, (index, waiter.tid)),
            Others::Unknown => Err("who shares its memory can't be told".into()),
        };
        parted.unwrap_or_else(|why| {
            self.give_up_image(id, &why);
            id
        })
    }

    /// The process of a waiting thread, if it is the one that its slot names.
    fn process_of(&self, id: u32, index: u64, tid: i32) -> Option<i32> {
        let pid = self.memory.head(id, index).pid as i32;
        (pid > 0 && sys::thread_exists(pid, tid)).then_some(pid)
    }

    /// Who else is in the image, once those have said who they are that have just been made: they need a
    /// moment of a processor for that.
    fn settled_others(&self, id: u32, pid: i32) -> Others {
        const LOOKS: usize = 500;
        const PAUSE: Duration = Duration::from_millis(1);
        for _ in 0..LOOKS {
            match self.others(id, pid) {
                Others::Unknown => std::thread::sleep(PAUSE),
                told => return told,
            }
        }
        Others::Unknown
    }

    fn others(&self, id: u32, pid: i32) -> Others {
        let Some(program) = self.programs.get(&id) else { return Others::None };
        let homeless = self.memory.image(id).map_or(0, |area| area.get(image::HOMELESS));
        let (mut pids, mut unknown) = (BTreeSet::new(), homeless > 0);
        for index in 0..self.slots_drawn(id) {
            let head = self.memory.head(id, index);
            if head.own == 0 || program.gone_by_exec.contains(&index) || head.pid as i32 == pid {
                continue;
            }
            // One that has not said who it is has just been made, by whom who it is may be known.
            let (said, made_as) = (head.pid as i32, head.made_as as i32);
            unknown |= said == 0 && !head.leaving && made_as == 0;
            if said == 0 && made_as > 0 && sys::thread_exists(pid, made_as) {
                continue;
            }
            pids.insert(if said == 0 { made_as } else { said });
        }
        pids.retain(|other| *other > 0 && sys::exists(*other));
        let same: Vec<Option<bool>> = pids.iter().map(|other| peer::same_memory(pid, *other)).collect();
        match () {
            () if same.contains(&Some(true)) => Others::SameMemory,
            () if unknown || same.contains(&None) => Others::Unknown,
            () if same.is_empty() => Others::None,
            () => Others::Apart,
        }
    }

    /// Gives process `pid`, of which a thread waits in slot `index`, a copy of its image.
    ///
    /// # Errors
    /// In words, where it goes on in the old one.
    fn move_to_copy(&mut self, id: u32, pid: i32, (index, tid): (u64, i32)) -> Result<u32, String> {
        let quiet = self.memory.image(id).is_none_or(|a| a.get(image::QUIET) as u32 != 0);
        if quiet {
            return Err("a filter of its own forbids it memory of its own".into());
        }
        let (file, fd) = self.own_file(id, index, pid).ok_or("it could not be given memory of its own")?;
        let copy = self.memory.adopt_image(file).ok_or("no memory for another program")?;
        let moved = self.fill_and_move(id, copy, pid, (index, tid), fd);
        let close = [CLOSE.into(), fd as u64, 0, 0, 0, 0, 0];
        match moved {
            Moved::Yes => {
                let _ = self.request(copy, index, close);
                Ok(copy)
            }
            Moved::No(why) => {
                self.memory.free_image(copy);
                let _ = self.request(id, index, close);
                Err(why)
            }
            // A thread that comes late finds the copy as it is. One that was refused the mapping waits in the
            // old image, and closes the descriptor; of one that does not, nothing comes back at once.
            Moved::Perhaps => {
                let _ = self.request(id, index, close);
                Err("it could not map memory of its own, or took too long".into())
            }
        }
    }

    /// A file in memory that the waiting thread makes, taken over by the launcher: with the thread's own
    /// rights to it, so that nothing is written that the process could not write itself.
    fn own_file(&mut self, id: u32, index: u64, pid: i32) -> Option<(File, i32)> {
        let flags = u64::from(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        let reply = self.request(id, index, [MEMFD_CREATE.into(), IMAGE + image::NAME, flags, 0, 0, 0, 0])?;
        let fd = i32::try_from(reply as i64).ok().filter(|fd| *fd >= 0)?;
        let file = peer::take_memory_file(pid, fd);
        if file.is_none() {
            self.request(id, index, [CLOSE.into(), reply, 0, 0, 0, 0, 0]);
        }
        file.map(|file| (file, fd))
    }

    fn fill_and_move(&mut self, id: u32, copy: u32, pid: i32, asks: (u64, i32), fd: i32) -> Moved {
        let (index, tid) = asks;
        let (_others, own) = match self.stopped(id, (pid, tid), index) {
            Ok(stopped) => stopped,
            Err(why) => return Moved::No(why),
        };
        if let (Some(area), Some(program)) = (self.memory.image(id), self.programs.get_mut(&id)) {
            program.tickets.look(area);
        }
        let Some(copied) = self.memory.copy(id, copy, &own) else {
            return Moved::No("there is too much in it to be copied".into());
        };
        let base = image::SLOTS + index * slot::SIZE;
        if let Some(state) = self.memory.image(copy).and_then(|area| area.half(base + slot::STATE)) {
            state.store(state::REQUEST, std::sync::atomic::Ordering::SeqCst);
        }
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE) as u64;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let map = [MMAP.into(), IMAGE, image::SIZE, protection, flags, fd as u64, 0];
        match self.request_and_come_back((id, copy), index, map, LONG_LIMIT) {
            Some(IMAGE) => {}
            // It came back by the old image: the launcher looked for it in the copy.
            _ => return Moved::Perhaps,
        }
        self.split(id, copy, pid, (copied, tid));
        // Mapped anew, it would be in core dumps again.
        let dont = [MADVISE.into(), GLOBAL, IMAGE + image::SIZE - GLOBAL, libc::MADV_DONTDUMP as u64, 0, 0, 0];
        let _ = self.request(copy, index, dont);
        Moved::Yes
    }

    /// Stops all threads of a process but the one that asks, of slot `index`; and the slots of all of them.
    ///
    /// # Errors
    /// Where they can't be stopped, or not at a moment at which each has its slot.
    fn stopped(&self, id: u32, (pid, tid): (i32, i32), index: u64) -> Result<(Stopped, BTreeSet<u64>), String> {
        const ATTEMPTS: usize = 50;
        const PAUSE: Duration = Duration::from_millis(1);
        for _ in 0..ATTEMPTS {
            let others = Stopped::all_but(pid, tid, &mut |tid| self.seized.contains_key(&tid))
                .ok_or("its other threads could not be stopped")?;
            // Only now do they stay as they are.
            if let Some(own) = others.slots().and_then(|of_others| self.slots_of(id, pid, (index, of_others))) {
                return Ok((others, own));
            }
            drop(others);
            std::thread::sleep(PAUSE);
        }
        Err("its threads come and go too quickly".into())
    }

    /// Slots of process `pid`: those that say so, and those its threads are in, who may not have said yet.
    /// `None` while there is one whose thread or process is being made, so that it is not known whose it
    /// will be.
    fn slots_of(&self, id: u32, pid: i32, (index, of_others): (u64, Vec<u64>)) -> Option<BTreeSet<u64>> {
        let heads: Vec<(u64, Head)> = (0..self.slots_drawn(id)).map(|n| (n, self.memory.head(id, n))).collect();
        let said = heads.iter().filter(|(_, head)| head.own != 0 && head.pid as i32 == pid).map(|(n, _)| *n);
        let threads = of_others.len() + 1;
        let mut own: BTreeSet<u64> = of_others.into_iter().chain([index]).collect();
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

    /// What is known of a program, divided: process `pid` with the slots `copied` is a program of its own now.
    fn split(&mut self, id: u32, copy: u32, pid: i32, (copied, tid): (Vec<CopiedSlot>, i32)) {
        let own: Vec<u64> = copied.iter().map(|slot| slot.index).collect();
        let own = own.as_slice();
        let now = self.at(sys::now());
        let Some(mut old) = self.programs.remove(&id) else { return };
        let (image, mem) = (self.image_for(&mut old, pid, now), Mem::open(pid));
        let mut space = AddressSpace::new();
        let maps = super::maps::Maps::of(pid);
        space.update_by(&mut self.symbols, pid, &maps.text);
        if let Ok(mem) = mem {
            let mut new = old.parted((copy, pid, image), space, mem);
            // Who waits in the copy has asked in the old one's queue.
            new.queue = Queue::overrun();
            if let Some(area) = self.memory.image(copy) {
                new.tickets = old.tickets.of_copy(area, own);
            }
            for index in own {
                self.rename_slot((id, copy), *index);
            }
            new.told.extend(own.iter().filter_map(|n| Some((*n, old.told.remove(n)?))));
            self.programs.insert(copy, new);
        } else {
            self.problem(
                ProblemKind::Unwatched,
                format!("process {pid} could not be followed when it changed its user"),
            );
        }
        for slot in &copied {
            self.memory.settle_moved(id, copy, slot);
        }
        if let Some(area) = self.memory.image(id) {
            old.tickets.give_back(area, own);
        }
        self.programs.insert(id, old);
        self.forget_thread(tid);
    }

    /// A thread's slot is in another program now.
    fn rename_slot(&mut self, (from, to): (u32, u32), index: u64) {
        if let Some(open) = self.open.remove(&(from, index)) {
            self.open.insert((to, index), open);
        }
        if let Some(ordinal) = self.ordinals.remove(&(from, index)) {
            self.ordinals.insert((to, index), ordinal);
        }
        for seized in self.seized.values_mut().filter(|s| s.from == Some((from, index))) {
            seized.from = Some((to, index));
        }
    }

    fn forget_thread(&mut self, tid: i32) {
        self.unwound = None;
        if self.maps_file.as_ref().is_some_and(|(_, of, _)| *of == tid) {
            self.maps_file = None;
        }
    }

    /// Takes all jumps out of every process of an image that one of them shares with others it should not.
    fn give_up_image(&mut self, id: u32, why: &str) {
        let pids: BTreeSet<i32> = (0..self.slots_drawn(id)).map(|n| self.memory.head(id, n).pid as i32).collect();
        // The program writes there: it may name processes that are none of its own.
        for pid in pids.into_iter().filter(|pid| *pid > 0 && peer::maps_image(*pid, id)) {
            self.leave_alone(id, pid, &format!("shares its maker's memory and changes what it may do, and {why}"));
        }
    }
}

/// A slot as it was when it was copied.
struct CopiedSlot {
    index: u64,
    /// Offset in the image, and bytes.
    data: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    /// Copies the trees of an image and the slots `own` to a new one; `None` where they hold too much.
    fn copy(&self, from: u32, to: u32, own: &BTreeSet<u64>) -> Option<Vec<CopiedSlot>> {
        for (at, bytes) in self.trees(from) {
            self.write(to, &Runs::of(at, bytes));
        }
        let (mut left, mut slots) = (MOST_COPIED, Vec::new());
        for index in own {
            let data = self.slot_data(from, *index, left);
            left = left.checked_sub(data.iter().map(|(_, bytes)| bytes.len() as u64).sum()).filter(|left| *left > 0)?;
            slots.push(CopiedSlot { index: *index, data });
        }
        for (at, bytes) in slots.iter().flat_map(|slot| &slot.data) {
            self.write(to, &Runs::of(*at, bytes.clone()));
        }
        let Some(area) = self.image(to) else { return Some(slots) };
        area.set(image::ID, u64::from(to));
        NOT_COPIED.into_iter().for_each(|word| area.set(word, 0));
        (0..image::RING_LEN).for_each(|n| area.set(image::RING + 8 * n, 0));
        let last = image::SLOT_COUNT - 1;
        area.set(image::SLOTS + last * slot::SIZE + slot::SELF, IMAGE + image::SLOTS + last * slot::SIZE);
        for index in own.iter().chain([&last]) {
            area.set(image::SLOTS + index * slot::SIZE + slot::TAG, u64::from(to) << 16 | (index + 1));
        }
        Some(slots)
    }

    /// Empties a slot whose thread goes on in a copy. What a signal's handler has counted there since the
    /// copy was made is added to it.
    fn settle_moved(&self, from: u32, to: u32, slot: &CopiedSlot) {
        let then = Snapshot::of(slot.data.clone());
        let base = image::SLOTS + slot.index * slot::SIZE;
        if let (Some(old), Some(new)) = (self.image(from), self.image(to)) {
            for (at, bytes) in &slot.data {
                let records = (*at..*at + bytes.len() as u64).step_by(8).filter(|at| *at >= base + slot::RECORDS);
                for at in records {
                    let more = old.get(at).wrapping_sub(then.word(at));
                    if more != 0 {
                        new.set(at, new.get(at).wrapping_add(more));
                    }
                }
            }
        }
        self.clean_slot(from, slot.index);
    }
}

impl Program {
    /// A program with what is known of this one's files and contexts, for process `pid` of it, which has
    /// a copy of its image.
    fn parted(&mut self, (id, pid, image): (u32, i32, u32), space: AddressSpace, mem: Mem) -> Self {
        let first = pid == self.pid;
        let mut new = Self::new(id, pid, image, space, mem);
        new.native = false;
        new.newborn = None;
        new.alike = self.alike;
        new.files = self.files.clone();
        new.regions = self.regions.clone();
        new.room = self.room.clone();
        new.nodes = self.nodes.clone();
        new.number_roots = self.number_roots.clone();
        new.sown = self.sown.clone();
        new.seeds = self.seeds.clone();
        new.seen_whole = self.seen_whole;
        new.generated = self.generated.clone();
        (new.born, new.hands) = (self.born, self.hands.clone());
        new.main_seen = self.main_seen;
        new.cpu_seen.extend(self.cpu_seen.remove_entry(&pid));
        new.makers.extend(self.makers.remove_entry(&pid));
        if first {
            (new.cpu_before, new.faults) = (self.cpu_before, self.faults);
            (new.at_main, new.main_nodes) = (self.at_main.take(), std::mem::take(&mut self.main_nodes));
            self.first_has_parted = true;
        }
        self.trees = None;
        new
    }
}
