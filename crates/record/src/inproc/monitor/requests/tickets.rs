//! Tickets by which new threads draw their slots, and slots that are put back to be drawn again.

use crate::inproc::monitor::shared::memory::Area;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use systoll_hooks::layout::image;

/// Fraction of the slots (one in this number) that must have been drawn since the last recycling for another to be
/// worth its time.
const WORTH_WHILE: u64 = 4;

/// Slots whose counts stand for those of all, at most: a program may have thousands of threads and of nodes.
const MOST_RECENT: usize = 128;

/// Used entries that are tried in a row, at most. A slot for which no free entry is found is not used any more.
const MOST_TAKEN: u64 = 256;

/// Tickets by which threads draw slots: a new image has the first ones, the others were put back.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    /// Number of tickets drawn at the last check.
    pub(crate) seen: u64,
    /// Number of tickets drawn when slots were last recycled.
    pub(crate) recycled: u64,
    /// Ticket for the next slot that is put back. It is 0 at first, and follows the tickets of the new image.
    next: u64,
    /// Tickets put back and not yet drawn, with their slots.
    waiting: VecDeque<(u64, u64)>,
    /// Slots drawn and not known to be free again.
    pub(crate) busy: Vec<u64>,
    /// Number of slots added since the image was made.
    more: u64,
}

/// Number of tickets in a new image, for slots 1 and up.
const FIRST: u64 = image::FIRST_SLOTS;

/// Slots with tickets, at most: all except the first thread's and the last one.
pub(crate) const MOST: u64 = image::SLOT_COUNT - 2;

impl Tickets {
    /// Returns the slots that may have a thread, except the first one, as of the last check.
    pub(crate) fn busy(&self) -> &[u64] {
        &self.busy
    }

    /// Returns those of the busy slots that were drawn last, [`MOST_RECENT`] at most, in the order in which they were
    /// drawn.
    pub(crate) fn recent(&self) -> &[u64] {
        self.busy.get(self.busy.len().saturating_sub(MOST_RECENT)..).unwrap_or_default()
    }

    /// Returns the tickets for a forked copy of the image. Only the threads in slots `own` run on in it: their slots
    /// stay busy, all other slots are put back.
    pub(crate) fn of_copy(&mut self, area: &Area, own: &[u64]) -> Self {
        // The same number of tickets is drawn in the copy as when it was made, and each is noted once.
        self.note_drawn(area);
        let busy = own.iter().copied().filter(|slot| *slot != 0).collect();
        let waiting = self.waiting.clone();
        let mut copy = Self { seen: self.seen, recycled: self.seen, next: self.next, waiting, busy, more: self.more };
        for slot in self.busy.iter().filter(|slot| !own.contains(slot)) {
            copy.put_back(area, *slot);
        }
        copy
    }

    /// Puts back slots whose threads continue in a copy of the image.
    pub(crate) fn give_back(&mut self, area: &Area, slots: &[u64]) {
        self.busy.retain(|slot| !slots.contains(slot));
        for slot in slots.iter().filter(|slot| **slot != 0) {
            self.put_back(area, *slot);
        }
    }

    /// Notes all tickets drawn so far.
    pub(crate) fn note_drawn(&mut self, area: &Area) {
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

    /// Returns true if the number of tickets is possible. A program may have written anything there, but its threads
    /// draw no more than 2^32 tickets between two checks.
    fn is_sensible(&self, drawn: u64) -> bool {
        drawn.checked_sub(self.seen).is_some_and(|more| more <= 1 << 32)
    }

    /// Returns the number of slots for which tickets were ever made.
    pub(crate) fn given(&self) -> u64 {
        FIRST + self.more
    }

    /// Returns true if so many tickets were drawn since slots were last recycled that recycling is worth its time.
    pub(crate) fn is_brisk(&self, drawn: u64) -> bool {
        self.is_sensible(drawn) && drawn.saturating_sub(self.recycled) >= self.given() / WORTH_WHILE
    }

    /// Doubles the number of slots if fewer than half of them wait to be drawn.
    pub(crate) fn grow_if_short(&mut self, area: &Area) {
        let undrawn = FIRST.saturating_sub(self.seen) + self.waiting.len() as u64;
        let given = self.given();
        if undrawn >= given / 2 {
            return;
        }
        let more = given.min(MOST - given);
        // Set the number before a thread can draw a new slot: it tells how many slots to read.
        area.set(image::GIVEN, given + more);
        self.more += more;
        for slot in given + 1..=given + more {
            self.put_back(area, slot);
        }
    }

    /// Puts a slot back, to be drawn after all others.
    pub(crate) fn put_back(&mut self, area: &Area, slot: u64) {
        // An entry is in use if a thread has drawn it and not read it yet, or if the program wrote there.
        for _ in 0..MOST_TAKEN {
            let ticket = self.next.max(area.get(image::NEXT_SLOT)).max(FIRST);
            self.next = ticket.saturating_add(1);
            let Some(entry) = area.half(image::TICKETS + 4 * (ticket % image::TICKETS_LEN)) else { return };
            let put = entry.compare_exchange(0, slot as u32 + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            if !put {
                continue;
            }
            // A thread that drew this ticket meanwhile has found no slot, and no thread will read the entry.
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
