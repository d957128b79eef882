//! The queues of threads that ask something, one in each image.
//!
//! A target may write anything into its queue. What that costs is bounded: at each turn no more is
//! looked at than there are entries and slots, and the other programs have their turn.

use super::engine::Engine;
use super::memory::Area;
use super::program::Program;
use super::sys;
use systoll_hooks::layout::{image, slot, state};

/// How much of a program's queue has been looked at.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Entries looked at so far.
    tail: u64,
    /// An entry whose thread has not filled it yet, and since when.
    empty: Option<Empty>,
}

#[derive(Clone, Copy, Debug)]
struct Empty {
    ticket: u64,
    since_ns: u64,
}

impl Queue {
    /// One of which nothing is known, so that all slots are looked at.
    pub(super) fn overrun() -> Self {
        Self { tail: u64::MAX, empty: None }
    }

    /// Whether an entry that its thread has not filled never will be: the thread was killed meanwhile.
    fn is_given_up(&mut self) -> bool {
        const PATIENCE_NS: u64 = 50_000_000;
        let (ticket, now) = (self.tail, sys::now());
        let empty = self.empty.filter(|empty| empty.ticket == ticket).unwrap_or(Empty { ticket, since_ns: now });
        self.empty = Some(empty);
        now.saturating_sub(empty.since_ns) > PATIENCE_NS
    }
}

/// What is in a queue.
enum Found {
    /// Nothing new.
    Nothing,
    /// The thread of this slot asks.
    Slot(u64),
    /// A thread has drawn the ticket and is about to write; the others don't wait.
    Unfilled,
    /// More than there are entries, or less than there were: only the slots tell who waits.
    Overrun,
}

impl Engine {
    /// Says that something is begun now, which may take long.
    pub(super) fn begin_item(&mut self) {
        self.item = sys::tsc();
        let global = self.memory.global();
        global.set(systoll_hooks::layout::global::BUSY, self.item);
        global.set(systoll_hooks::layout::global::PROCESSOR, sys::processor().into());
    }

    /// Whether any queue has something new.
    pub(super) fn is_asked(&self) -> bool {
        self.programs.values().any(|p| self.has_new(p))
    }

    fn has_new(&self, program: &Program) -> bool {
        self.memory.image(program.id).is_some_and(|a| a.get(image::TICKET) != program.queue.tail)
    }

    /// Answers what is in the queues; whether there was anything.
    pub(super) fn serve(&mut self) -> bool {
        let asked = |p: &&Program| self.quiet || self.has_new(p);
        let ids: Vec<u32> = self.programs.values().filter(asked).map(|p| p.id).collect();
        let mut did = false;
        for id in ids {
            let answered = self.serve_program(id);
            let area = self.memory.image(id).filter(|_| answered);
            if let Some(area) = area.filter(|a| a.get(image::DEAD) as u32 != 0) {
                // A thread lost patience while we were at something long; we are back.
                area.set(image::DEAD, 0);
            }
            did |= answered;
        }
        did
    }

    /// Answers what is in a program's queue, one round of it at most.
    fn serve_program(&mut self, id: u32) -> bool {
        let (mut did, mut all) = (false, self.quiet);
        for _ in 0..image::RING_LEN {
            match self.next_in_queue(id) {
                Found::Nothing => break,
                Found::Slot(index) => {
                    self.begin_item();
                    // An entry of a thread that does not wait was left by one that lost patience, or
                    // stands where another's was overwritten.
                    all |= !self.answer(id, index);
                    did = true;
                }
                Found::Unfilled | Found::Overrun => {
                    all = true;
                    break;
                }
            }
        }
        did | (all && self.serve_slots(id))
    }

    /// Takes the next entry out of a program's queue.
    fn next_in_queue(&mut self, id: u32) -> Found {
        let (Some(area), Some(program)) = (self.memory.image(id), self.programs.get_mut(&id)) else {
            return Found::Nothing;
        };
        let (head, queue) = (area.get(image::TICKET), &mut program.queue);
        if head == queue.tail {
            return Found::Nothing;
        }
        // Tickets only ever rise: a program that wrote there has put them back.
        if head < queue.tail || head - queue.tail > image::RING_LEN {
            // Who writes an entry from here on is found by its slot, as are those whose entry goes now.
            (0..image::RING_LEN).for_each(|n| area.set(image::RING + 8 * n, 0));
            queue.tail = head;
            return Found::Overrun;
        }
        let tag = taken(area, queue.tail);
        if tag == 0 && !queue.is_given_up() {
            return Found::Unfilled;
        }
        queue.tail += 1;
        (tag & 0xffff).checked_sub(1).map_or(Found::Unfilled, Found::Slot)
    }

    /// Looks at every slot of a program; whether any of its threads waited.
    fn serve_slots(&mut self, id: u32) -> bool {
        let mut did = false;
        for index in 0..self.slots_drawn(id) {
            let state = image::SLOTS + index * slot::SIZE + slot::STATE;
            let waits = self.memory.image(id).is_some_and(|a| a.get(state) as u32 == state::WAITING);
            if waits {
                self.begin_item();
                did |= self.answer(id, index);
            }
        }
        did
    }
}

/// The entry of a ticket, which is emptied if it was filled.
fn taken(area: &Area, ticket: u64) -> u64 {
    let entry = image::RING + 8 * (ticket % image::RING_LEN);
    let tag = area.get(entry);
    if tag != 0 {
        area.set(entry, 0);
    }
    tag
}
