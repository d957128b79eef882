//! The queues of threads that ask something, one in each image.
//!
//! A target may write anything into its queue. The cost of that is bounded: at each turn at most as many entries are
//! read as there are entries and slots, and then the other programs have their turn.

use crate::inproc::monitor::shared::memory::Area;
use crate::inproc::monitor::sys;
use systoll_hooks::layout::image;

/// The launcher's position in a program's queue of questions.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Number of entries read so far.
    pub(crate) tail: u64,
    /// An entry that its thread has not filled yet, and the time at which it was first seen empty.
    empty: Option<Empty>,
}

#[derive(Clone, Copy, Debug)]
struct Empty {
    ticket: u64,
    since_ns: u64,
}

impl Queue {
    /// Creates a queue whose position is unknown: all slots are searched.
    pub(crate) fn overrun() -> Self {
        Self { tail: u64::MAX, empty: None }
    }

    /// Takes the next entry out of the queue in the image `area`.
    pub(crate) fn next(&mut self, area: &Area) -> Found {
        let head = area.get(image::TICKET);
        if head == self.tail {
            return Found::Nothing;
        }
        // The number of tickets only ever rises, so the program has overwritten it.
        if head < self.tail || head - self.tail > image::RING_LEN {
            // Entries are erased here. Their threads, and threads that write one from here on, are found by their
            // slots.
            (0..image::RING_LEN).for_each(|n| area.set(image::RING + 8 * n, 0));
            self.tail = head;
            return Found::Overrun;
        }
        let tag = taken(area, self.tail);
        if tag == 0 && !self.is_given_up() {
            return Found::Unfilled;
        }
        self.tail += 1;
        (tag & 0xffff).checked_sub(1).map_or(Found::Unfilled, Found::Slot)
    }

    /// Returns true if an entry that its thread has not filled never will be filled, because the thread was killed.
    fn is_given_up(&mut self) -> bool {
        const PATIENCE_NS: u64 = 50_000_000;
        let (ticket, now) = (self.tail, sys::now());
        let empty = self.empty.filter(|empty| empty.ticket == ticket).unwrap_or(Empty { ticket, since_ns: now });
        self.empty = Some(empty);
        now.saturating_sub(empty.since_ns) > PATIENCE_NS
    }
}

/// Result of looking into a queue.
pub(crate) enum Found {
    /// There is no new entry.
    Nothing,
    /// The thread with this slot asks.
    Slot(u64),
    /// A thread has drawn the ticket and is about to write its entry; the others don't wait for it.
    Unfilled,
    /// There are more new entries than the queue holds, or fewer tickets than before: only the slots show which threads
    /// wait.
    Overrun,
}

/// Returns the entry of a ticket, and empties it.
fn taken(area: &Area, ticket: u64) -> u64 {
    let entry = image::RING + 8 * (ticket % image::RING_LEN);
    let tag = area.get(entry);
    if tag != 0 {
        area.set(entry, 0);
    }
    tag
}
