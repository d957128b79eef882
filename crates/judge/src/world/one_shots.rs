//! Interests that the next event takes away (EPOLLONESHOT): they are as set until an event of theirs is delivered.

use crate::collections::hash::{Map, Set};
use crate::semantics::{Key, ObservedCall, Semantics, Value};
use systoll_model::constants::EPOLLONESHOT;
use systoll_model::{Moment, Recording};

/// Bytes of `struct epoll_event`: the events, then the data.
const EVENT: usize = 12;
/// Largest number of interests remembered.
const MOST: usize = 64;

/// Returns true if the bytes of a `struct epoll_event` ask for one event only.
pub(crate) fn is_one_shot(event: &[u8]) -> bool {
    event.first_chunk().is_some_and(|events| u32::from_le_bytes(*events) & EPOLLONESHOT != 0)
}

/// An interest that waits for its event.
struct Armed<'a> {
    process: u32,
    /// The epoll descriptor.
    epoll: i32,
    key: Key,
    value: Value<'a>,
}

/// The interests of a window that wait for their events.
#[derive(Default)]
pub(crate) struct OneShots<'a>(Vec<Armed<'a>>);

impl<'a> OneShots<'a> {
    /// Notes that an interest was set.
    pub(crate) fn set(&mut self, call: &ObservedCall<'_>, key: Key, value: Value<'a>) {
        self.0.retain(|armed| armed.key != key);
        if self.0.len() < MOST {
            self.0.push(Armed { process: call.window.process.0, epoll: call.descriptor(0), key, value });
        }
    }

    /// Forgets the interests whose events a wait delivered, or may have delivered. Returns the others of the same
    /// descriptor, each with its value: they are still as they were set.
    pub(crate) fn delivered(&mut self, call: &ObservedCall<'_>, events: u8) -> Vec<(Key, Value<'a>)> {
        let of = |armed: &Armed<'_>| (armed.process, armed.epoll) == (call.window.process.0, call.descriptor(0));
        let told = match call.call.result {
            Some(0) => Some(&[][..]),
            _ => call.data(events, Moment::Exit),
        };
        let is_told = |value: &[u8]| {
            told.is_none_or(|told| told.chunks(EVENT).any(|event| event.get(4..) == value.get(4..EVENT)))
        };
        self.0.retain(|armed| !of(armed) || !is_told(&armed.value));
        self.0.iter().filter(|armed| of(armed)).map(|armed| (armed.key, armed.value.clone())).collect()
    }

    /// Forgets all interests.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns the processes in which several threads wait for events: the event of an interest that one thread has set may
/// be delivered to another.
pub(crate) fn awaited_by_several(recording: &Recording, semantics: &Semantics) -> Set<u32> {
    let waits: Vec<bool> = recording.rows.iter().map(|row| semantics.lines_of(row.syscall).delivers()).collect();
    let mut threads: Map<u32, u32> = Map::default();
    let mut several = Set::default();
    if !waits.contains(&true) {
        return several;
    }
    for window in &recording.windows {
        if window.calls.iter().any(|call| waits.get(call.row.0 as usize) == Some(&true))
            && *threads.entry(window.process.0).or_insert(window.thread) != window.thread
        {
            several.insert(window.process.0);
        }
    }
    several
}
