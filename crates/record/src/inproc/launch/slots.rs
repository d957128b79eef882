//! Slots of threads that have ended: counted, wiped, and given to threads to come.
//!
//! Invariant: no slot is given away while anybody may still touch it: its thread by running, or
//! the thread's maker, who writes there when the call that made it comes back.

use super::engine::Engine;
use super::memory::{Area, Head};
use super::program::Program;
use super::sys;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use systoll_hooks::layout::{image, slot};

/// This part of the slots drawn since some were last given back makes it worth while again.
const WORTH_WHILE: u64 = 4;
/// Entries in a row that may be taken: a slot for which there is no place is not used any more.
const MOST_TAKEN: u64 = 256;
/// Makers of makers looked at.
const GENERATIONS: usize = 64;

/// Tickets for slots: the first ones stand in a new image, the rest is put back.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    /// Tickets drawn at the last look.
    seen: u64,
    /// Tickets drawn when slots were last given back.
    recycled: u64,
    /// Where the next slot is put back; none yet: behind the first ones.
    next: u64,
    /// Tickets put back and not yet drawn, with their slots.
    waiting: VecDeque<(u64, u64)>,
    /// Slots drawn and not known to be over.
    busy: Vec<u64>,
    /// Slots given beside the first ones.
    more: u64,
}

/// Tickets in a new image, for slots 1 and up.
const FIRST: u64 = image::FIRST_SLOTS;
/// Slots there are tickets for, at most: not the first thread's, and not the last.
const MOST: u64 = image::SLOT_COUNT - 2;

impl Tickets {
    /// Slots that may have a thread, the first one's apart, as of the last look.
    pub(super) fn busy(&self) -> &[u64] {
        &self.busy
    }

    /// Of a copy of the image in which only the threads of slots `own` go on: theirs are busy, the other
    /// threads' are put back.
    pub(super) fn of_copy(&mut self, area: &Area, own: &[u64]) -> Self {
        // As many are drawn in the copy as were when it was made, and each is taken note of once.
        self.look(area);
        let busy = own.iter().copied().filter(|slot| *slot != 0).collect();
        let waiting = self.waiting.clone();
        let mut copy = Self { seen: self.seen, recycled: self.seen, next: self.next, waiting, busy, more: self.more };
        for slot in self.busy.iter().filter(|slot| !own.contains(slot)) {
            copy.put_back(area, *slot);
        }
        copy
    }

    /// Puts slots back whose threads go on in a copy of the image.
    pub(super) fn give_back(&mut self, area: &Area, slots: &[u64]) {
        self.busy.retain(|slot| !slots.contains(slot));
        for slot in slots.iter().filter(|slot| **slot != 0) {
            self.put_back(area, *slot);
        }
    }

    /// Takes note of all tickets drawn so far.
    pub(super) fn look(&mut self, area: &Area) {
        let drawn = area.get(image::NEXT_SLOT);
        if !self.is_sensible(drawn) {
            return;
        }
        self.busy.extend((self.seen..drawn.min(FIRST)).map(|ticket| ticket + 1));
        while let Some((_, slot)) = self.waiting.pop_front_if(|(ticket, _)| *ticket < drawn) {
            self.busy.push(slot);
        }
        self.seen = drawn;
    }

    /// A program that wrote there may claim anything; no threads draw so many between two looks.
    fn is_sensible(&self, drawn: u64) -> bool {
        drawn.checked_sub(self.seen).is_some_and(|more| more <= 1 << 32)
    }

    /// Slots there are tickets for, or were.
    fn given(&self) -> u64 {
        FIRST + self.more
    }

    /// Whether so many have been drawn since some were last given back that it is worth while again.
    fn is_brisk(&self, drawn: u64) -> bool {
        self.is_sensible(drawn) && drawn.saturating_sub(self.recycled) >= self.given() / WORTH_WHILE
    }

    /// Gives as many slots again as there are, where fewer than half of them wait to be drawn.
    fn grow_if_short(&mut self, area: &Area) {
        let undrawn = FIRST.saturating_sub(self.seen) + self.waiting.len() as u64;
        let given = self.given();
        if undrawn >= given / 2 {
            return;
        }
        let more = given.min(MOST - given);
        // Before anybody can draw one: whoever reads slots reads so many.
        area.set(image::GIVEN, given + more);
        self.more += more;
        for slot in given + 1..=given + more {
            self.put_back(area, slot);
        }
    }

    /// Puts a slot back, to be drawn after all others.
    fn put_back(&mut self, area: &Area, slot: u64) {
        // An entry is taken where a thread has drawn it and not come for it yet, or the program wrote there.
        for _ in 0..MOST_TAKEN {
            let ticket = self.next.max(area.get(image::NEXT_SLOT)).max(FIRST);
            self.next = ticket.saturating_add(1);
            let Some(entry) = area.half(image::TICKETS + 4 * (ticket % image::TICKETS_LEN)) else { return };
            let put = entry.compare_exchange(0, slot as u32 + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            if !put {
                continue;
            }
            // Whoever drew this ticket meanwhile has found nothing, and nobody will come for it.
            let passed = area.get(image::NEXT_SLOT) > ticket;
            if passed && entry.swap(0, Ordering::SeqCst) != 0 {
                continue;
            }
            if passed {
                self.busy.push(slot);
            } else {
                self.waiting.push_back((ticket, slot));
            }
            return;
        }
    }
}

impl Engine {
    /// Gives back slots of threads that are gone, in programs that have drawn many since: whether
    /// there are any.
    pub(super) fn recycle_some(&mut self) -> bool {
        let drawn = |p: &Program| self.memory.image(p.id).map_or(0, |a| a.get(image::NEXT_SLOT));
        let brisk: Vec<u32> = self.programs.values().filter(|p| p.tickets.is_brisk(drawn(p))).map(|p| p.id).collect();
        for id in &brisk {
            self.recycle(*id, false);
        }
        !brisk.is_empty()
    }

    /// Gives back slots of a program's threads that are gone, and more of them where they are short.
    /// `pressed`: somebody waits for one.
    pub(super) fn recycle(&mut self, id: u32, pressed: bool) {
        let Some(mut program) = self.programs.remove(&id) else { return };
        let pressed = pressed && program.tickets.given() >= MOST;
        if let Some(area) = self.memory.image(id) {
            program.tickets.look(area);
            program.tickets.recycled = program.tickets.seen;
        }
        let busy = std::mem::take(&mut program.tickets.busy);
        let heads: Vec<(u64, Head)> = busy.iter().map(|index| (*index, self.memory.head(id, *index))).collect();
        let (over, rest): (Vec<_>, Vec<_>) =
            heads.into_iter().partition(|(index, head)| self.is_over(&program, *index, head, pressed));
        program.tickets.busy = rest.iter().map(|(index, _)| *index).collect();
        if !over.is_empty() {
            let slots: Vec<u64> = over.iter().map(|(index, _)| *index).collect();
            self.harvest_slots(&mut program, &slots);
            for index in slots {
                self.memory.clean_slot(id, index);
                program.gone_by_exec.remove(&index);
                program.changed.remove(&index);
                if let Some(area) = self.memory.image(id) {
                    program.tickets.put_back(area, index);
                }
            }
            let lives = |pid: u32| pid as i32 == program.pid || rest.iter().any(|(_, head)| head.pid == pid);
            let mut ended: Vec<u32> = over.iter().map(|(_, head)| head.pid).filter(|pid| !lives(*pid)).collect();
            ended.dedup();
            self.end_forks(&mut program, &ended);
        }
        if let Some(area) = self.memory.image(id) {
            program.tickets.grow_if_short(area);
        }
        self.programs.insert(id, program);
    }

    /// Whether a slot's thread is gone for good, and its maker done with it.
    fn is_over(&self, program: &Program, index: u64, head: &Head, pressed: bool) -> bool {
        if head.own == 0 || program.newborn.is_some() {
            return false;
        }
        let quiet = self.memory.image(program.id).is_none_or(|a| a.get(image::QUIET) as u32 != 0);
        if head.tid == 0 {
            // It was never made. Where threads don't say who they are it may also be about to end.
            return head.leaving && head.made_as == 0 && !quiet;
        }
        // In another PID namespace numbers mean others: the maker's word and the thread's own differ
        // there, or did when somebody further up was made.
        if head.tid != head.made_as || !self.is_of_our_namespace(program.id, head) {
            return false;
        }
        let gone = program.gone_by_exec.contains(&index);
        gone || !sys::thread_exists(head.pid as i32, head.tid as i32) || pressed && is_zombie(head)
    }

    fn is_of_our_namespace(&self, id: u32, head: &Head) -> bool {
        let mut parent = head.parent;
        for _ in 0..GENERATIONS {
            // The first slot's thread was looked at when its program began.
            let Some(index) = parent.filter(|index| *index != 0) else { return parent == Some(0) };
            let head = self.memory.head(id, index);
            if head.own == 0 {
                // Looked at, when it was given back.
                return true;
            }
            if head.tid == 0 || head.tid != head.made_as {
                return false;
            }
            parent = head.parent;
        }
        false
    }

    /// Processes of a program that have no slot any more.
    fn end_forks(&mut self, program: &mut Program, pids: &[u32]) {
        let now = self.at(sys::now());
        for pid in pids.iter().map(|pid| *pid as i32) {
            let Some(image) = program.forks.remove(&pid) else { continue };
            if let Some(used) = program.recycled.used.remove(&pid) {
                program.recycled.asking.add(used.settle(&mut self.table, program, (pid, image), self.asking));
            }
            program.cpu_seen.remove(&pid);
            program.execed.remove(&pid);
            self.end_image(image, now);
        }
    }
}

/// Whether a process has ended and only waits to be noticed by its parent.
fn is_zombie(head: &Head) -> bool {
    let stat = crate::procfs::read(format!("/proc/{}/task/{}/stat", head.pid, head.tid)).unwrap_or_default();
    // Behind the name, which may hold anything.
    let state = stat.iter().rposition(|b| *b == b')').and_then(|end| stat.get(end + 2));
    matches!(state, Some(b'Z' | b'X'))
}

impl Head {
    /// From the words of a slot from [`slot::SELF`] on.
    pub(super) fn new(words: &[u64]) -> Self {
        let word = |offset: u64| words.get(((offset - slot::SELF) / 8) as usize).copied().unwrap_or(0);
        Self {
            own: word(slot::SELF),
            parent: systoll_hooks::layout::slot_index(word(slot::PARENT)),
            leaving: word(slot::LEAVING) != 0,
            made_as: word(slot::MADE_AS) as u32,
            tid: word(slot::TID) as u32,
            pid: word(slot::PID) as u32,
        }
    }

    /// Words it is made of.
    pub(super) const WORDS: usize = ((slot::CLEARED - slot::SELF) / 8) as usize;
}
