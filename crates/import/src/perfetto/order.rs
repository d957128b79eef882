//! Puts events in the order of their times. A trace has them processor by processor, or thread by
//! thread.

use crate::frames::TracedFrame;
use crate::hash::Map;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use systoll_model::Sysno;

/// Largest number of events that wait for earlier ones: half a second of a million calls a second.
const MOST: usize = 1 << 19;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A slice of a thread's track of system calls begins; `None` if its name is no call's.
    Begins(Option<Sysno>),
    /// The thread's slice that began last ends.
    Ends,
    /// The kernel's event of a call's entry, with the registers.
    Enters(Option<Sysno>, [u64; 6]),
    /// The kernel's event of a call's return.
    Returns(Option<Sysno>, i64),
}

/// An event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Time of the event, ns on the trace's clock.
    pub(super) at_ns: u64,
    pub(super) tid: u32,
    pub(super) what: What,
}

struct Waiting {
    event: Event,
    /// Position in the file. Of events at one time, the first one written comes first.
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

/// Events that wait for earlier ones, earliest first.
#[derive(Default)]
pub(super) struct Order {
    waiting: BinaryHeap<Reverse<Waiting>>,
    added: u64,
}

impl Order {
    /// Adds an event. Returns the earliest event if more than [`MOST`] wait.
    pub(super) fn add(&mut self, event: Event) -> Option<Event> {
        self.waiting.push(Reverse(Waiting { event, order: self.added }));
        self.added += 1;
        if self.waiting.len() > MOST { self.next() } else { None }
    }

    /// Returns the earliest event that waits, and removes it.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.waiting.pop().map(|waiting| waiting.0.event)
    }
}

/// Largest number of threads whose slices are followed.
const MOST_THREADS: usize = 65_536;
/// Largest depth of slices within each other. Calls have no depth.
const MOST_DEEP: usize = 8;

/// A slice that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// The call; `None` if the slice's name is no call's.
    pub(super) syscall: Option<Sysno>,
    /// Time at which the slice began, ns on the trace's clock.
    pub(super) began_ns: u64,
}

/// The slices of a thread that lie within each other.
#[derive(Default)]
struct Nested {
    slices: Vec<Slice>,
    /// Number of slices that began deeper than slices are kept. They end first.
    deeper: u64,
}

/// Slices that have begun and not ended, by thread.
#[derive(Default)]
pub(super) struct Begun {
    threads: Map<u32, Nested>,
}

impl Begun {
    /// Notes that a slice begins.
    pub(super) fn begin(&mut self, tid: u32, slice: Slice) {
        if self.threads.len() < MOST_THREADS || self.threads.contains_key(&tid) {
            let thread = self.threads.entry(tid).or_default();
            if thread.slices.len() < MOST_DEEP {
                thread.slices.push(slice);
            } else {
                thread.deeper += 1;
            }
        }
    }

    /// Ends the thread's slice that began last and returns it; `None` if it was not kept.
    pub(super) fn end(&mut self, tid: u32) -> Option<Slice> {
        let thread = self.threads.get_mut(&tid)?;
        if thread.deeper > 0 {
            thread.deeper -= 1;
            return None;
        }
        thread.slices.pop()
    }

    /// Returns the number of slices that have not ended.
    pub(super) fn left(&self) -> u64 {
        self.threads.values().map(|thread| thread.slices.len() as u64 + thread.deeper).sum()
    }
}

/// The stack of an event: neither kind of event has one.
pub(super) const NO_STACK: &[TracedFrame] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_ends_with_its_own_end_however_deep_it_lies() {
        let mut begun = Begun::default();
        let slice = |began_ns| Slice { syscall: None, began_ns };
        let deep = MOST_DEEP as u64 + 3;
        (0..deep).for_each(|at| begun.begin(1, slice(at)));
        assert_eq!(begun.left(), deep);
        let ended: Vec<Option<Slice>> = (0..=deep).map(|_| begun.end(1)).collect();
        let kept = (0..MOST_DEEP as u64).rev().map(|at| Some(slice(at)));
        assert_eq!(ended, [None; 3].into_iter().chain(kept).chain([None]).collect::<Vec<_>>());
        assert_eq!((begun.left(), begun.end(2)), (0, None));
    }

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
