//! Events in the order of their times. A trace has them processor by processor, or thread by thread.

use crate::frames::Told;
use crate::hash::Map;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use systoll_model::Sysno;

/// Events that wait for earlier ones: half a second of a million calls a second.
const MOST: usize = 1 << 19;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A slice of a thread's track of system calls begins; the name is none of a call's where there is no number.
    Begins(Option<Sysno>),
    /// The last one that began ends.
    Ends,
    /// The kernel's event of a call's entry, with the registers.
    Enters(Option<Sysno>, [u64; 6]),
    /// That of its return.
    Returns(Option<Sysno>, i64),
}

/// An event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// ns, on the trace's clock.
    pub(super) at_ns: u64,
    pub(super) tid: u32,
    pub(super) what: What,
}

struct Waiting {
    event: Event,
    /// Of events at one time the first one written is the first.
    order: u64,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.event.at_ns, self.order).cmp(&(other.event.at_ns, other.order))
    }
}

/// Events that wait.
#[derive(Default)]
pub(super) struct Order {
    waiting: BinaryHeap<Reverse<Waiting>>,
    added: u64,
}

impl Order {
    /// Adds an event; the earliest of all, where more wait than may.
    pub(super) fn add(&mut self, event: Event) -> Option<Event> {
        self.waiting.push(Reverse(Waiting { event, order: self.added }));
        self.added += 1;
        if self.waiting.len() > MOST { self.next() } else { None }
    }

    /// The earliest of those that wait.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.waiting.pop().map(|waiting| waiting.0.event)
    }
}

/// Threads whose slices are followed.
const MOST_THREADS: usize = 65_536;
/// Slices within each other, of which calls have none.
const MOST_DEEP: usize = 8;

/// Slices that have begun and not ended, by thread.
#[derive(Default)]
pub(super) struct Begun {
    slices: Map<u32, Vec<(Option<Sysno>, u64)>>,
}

impl Begun {
    /// A slice begins.
    pub(super) fn begin(&mut self, tid: u32, name: Option<Sysno>, at_ns: u64) {
        if self.slices.len() < MOST_THREADS || self.slices.contains_key(&tid) {
            let of_thread = self.slices.entry(tid).or_default();
            if of_thread.len() < MOST_DEEP {
                of_thread.push((name, at_ns));
            }
        }
    }

    /// The last one of the thread ends: what it was, and since when.
    pub(super) fn end(&mut self, tid: u32) -> Option<(Option<Sysno>, u64)> {
        self.slices.get_mut(&tid)?.pop()
    }

    /// How many have not ended.
    pub(super) fn left(&self) -> u64 {
        self.slices.values().map(|slices| slices.len() as u64).sum()
    }
}

/// No stack: neither kind of event has one.
pub(super) const NO_STACK: &[Told] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_written() {
        let mut order = Order::default();
        let event = |at_ns, tid| Event { at_ns, tid, what: What::Ends };
        for (at, tid) in [(5, 1), (3, 2), (5, 3), (1, 4)] {
            assert_eq!(order.add(event(at, tid)), None);
        }
        let tids: Vec<u32> = std::iter::from_fn(|| order.next()).map(|e| e.tid).collect();
        assert_eq!(tids, [4, 2, 1, 3]);
        let early = (0..=MOST as u64).filter_map(|at| order.add(event(at, 9))).count();
        assert_eq!((early, order.waiting.len()), (1, MOST));
    }
}
