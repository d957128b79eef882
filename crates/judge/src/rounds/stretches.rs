//! Stretches of consecutive calls of one thread, cut from windows. Their number and length are bounded for any
//! recording.

use super::kinds::{KindId, Kinds};
use crate::collections::hash::{Map, Set};
use systoll_model::{Recording, WindowCall};

/// Largest number of stretches chosen for one kind.
const OF_A_KIND: u32 = 64;
/// Largest number of calls in all stretches together.
const MOST_CALLS: usize = 1 << 18;
/// Largest number of calls in one stretch: a trace is one long window.
const LONGEST: usize = 4_096;

/// The numbers of a process and of one of its threads.
pub(super) type ThreadId = (u32, u32);

/// Consecutive calls of one thread.
pub(super) struct Stretch<'a> {
    pub(super) thread: ThreadId,
    /// The kind whose row opened the window.
    pub(super) opener: KindId,
    pub(super) calls: &'a [WindowCall],
    pub(super) kinds: Vec<KindId>,
}

/// The chosen stretches of a recording.
pub(super) struct Stretches<'a> {
    pub(super) all: Vec<Stretch<'a>>,
    /// Indices of the stretches that hold calls of a kind, in order.
    of_kind: Map<KindId, Vec<u32>>,
    /// The kinds that the stretches of a thread show.
    of_thread: Map<ThreadId, Set<KindId>>,
    /// Time of a kind's first call, ns, if a window shows it.
    first_at: Map<KindId, u64>,
}

impl<'a> Stretches<'a> {
    /// Chooses stretches that hold calls of the kinds `wanted` (by kind), the latest first: a run spends most time in
    /// its steady part.
    pub(super) fn of(recording: &'a Recording, kinds: &Kinds, wanted: &[bool]) -> Self {
        let mut have: Map<KindId, u32> = Map::default();
        let (mut all, mut calls_left) = (Vec::new(), MOST_CALLS);
        let is_wanted = |kind: KindId| wanted.get(kind as usize).copied().unwrap_or(false);
        let pieces = recording.windows.iter().rev().flat_map(|window| {
            let thread = (window.process.0, window.thread);
            let opener = kinds.of_row(window.row);
            window.calls.rchunks(LONGEST).map(move |calls| (thread, opener, calls))
        });
        for (thread, opener, calls) in pieces {
            let missed = |call: &WindowCall| {
                let kind = kinds.of_row(call.row);
                is_wanted(kind) && have.get(&kind).copied().unwrap_or(0) < OF_A_KIND
            };
            if calls.len() > calls_left || !calls.iter().any(missed) {
                continue;
            }
            calls_left -= calls.len();
            let kinds: Vec<KindId> = calls.iter().map(|call| kinds.of_row(call.row)).collect();
            let mut once: Vec<KindId> = kinds.iter().copied().filter(|kind| is_wanted(*kind)).collect();
            once.sort_unstable();
            once.dedup();
            once.into_iter().for_each(|kind| *have.entry(kind).or_default() += 1);
            all.push(Stretch { thread, opener, calls, kinds });
        }
        all.reverse();
        let mut made = Self { all, of_kind: Map::default(), of_thread: Map::default(), first_at: Map::default() };
        made.index();
        made
    }

    fn index(&mut self) {
        for (at, stretch) in (0u32..).zip(&self.all) {
            self.of_thread.entry(stretch.thread).or_default().extend(stretch.kinds.iter().copied());
            for (kind, call) in stretch.kinds.iter().zip(stretch.calls) {
                let places = self.of_kind.entry(*kind).or_default();
                if places.last() != Some(&at) {
                    places.push(at);
                }
                if call.nth == 1 {
                    let first = self.first_at.entry(*kind).or_insert(call.entry_ns);
                    *first = (*first).min(call.entry_ns);
                }
            }
        }
    }

    /// Returns the indices of the stretches that hold calls of a kind, in order.
    pub(super) fn with(&self, kind: KindId) -> &[u32] {
        self.of_kind.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Returns the kinds that the stretches of a thread show.
    pub(super) fn of_thread(&self, thread: ThreadId) -> Option<&Set<KindId>> {
        self.of_thread.get(&thread)
    }

    /// Returns the stretch with this index.
    pub(super) fn get(&self, at: u32) -> Option<&Stretch<'a>> {
        self.all.get(at as usize)
    }

    /// Returns the time of a kind's first call, ns; `u64::MAX` if no window shows it.
    pub(super) fn first_at(&self, kind: KindId) -> u64 {
        self.first_at.get(&kind).copied().unwrap_or(u64::MAX)
    }
}
