//! Tells apart the rounds of threads that share only some calls, as waiting for one lock: no thread makes the calls of
//! both.

use super::anchor::Instance;
use super::kinds::KindId;
use super::stretches::Stretches;
use crate::hash::{Map, Set};

/// Numbers of a process and of a thread in it.
pub(super) type ThreadId = (u32, u32);

/// Number of stretches with two kinds, if their threads made them without regard to each other, from which on it tells
/// something that there are fewer.
const EXPECTED: f64 = 8.0;
/// Largest share of the expected stretches, 0 to 1, with which no thread makes both kinds: one of Python's
/// `multiprocessing`, the main thread, makes calls of all others when the pool ends.
const HARDLY_ANY: f64 = 0.25;

/// The stretches with instances of rounds, by thread.
#[derive(Default)]
struct OfThread {
    stretches: f64,
    /// Number of these stretches that have a kind.
    with: Map<KindId, f64>,
}

/// Returns the threads whose rounds are others than those of the costliest kinds. `kinds` are the kinds in the rounds, the
/// costliest first.
pub(super) fn others(instances: &[Instance], stretches: &Stretches<'_>, kinds: &[KindId]) -> Set<ThreadId> {
    let threads = by_thread(instances, stretches);
    let mut others: Set<ThreadId> = Set::default();
    if threads.len() < 2 {
        return others;
    }
    let all: f64 = threads.values().map(|of| of.stretches).sum();
    let number = |kind| threads.values().map(|of| of.number(kind)).sum::<f64>();
    let is_apart = |one: KindId, other: KindId| {
        let expected = number(one) * number(other) / all;
        let both: f64 = threads.values().map(|of| of.number(one) * of.number(other) / of.stretches).sum();
        expected >= EXPECTED && both <= HARDLY_ANY * expected
    };
    let mut kept: Vec<KindId> = Vec::new();
    for kind in kinds {
        let before = kept.iter().copied().find(|other| is_apart(*kind, *other));
        match before {
            Some(other) => {
                let of_kind = threads.iter().filter(|(_, of)| of.number(*kind) > of.number(other));
                others.extend(of_kind.map(|(thread, _)| *thread));
            }
            None => kept.push(*kind),
        }
    }
    others
}

impl OfThread {
    /// Returns the number of the thread's stretches that have a kind.
    fn number(&self, kind: KindId) -> f64 {
        self.with.get(&kind).copied().unwrap_or(0.0)
    }
}

/// Returns the thread of an instance.
pub(super) fn thread_of(instance: &Instance, stretches: &Stretches<'_>) -> Option<ThreadId> {
    let (at, _) = instance.pieces.first()?;
    Some(stretches.get(*at)?.thread)
}

fn by_thread(instances: &[Instance], stretches: &Stretches<'_>) -> Map<ThreadId, OfThread> {
    let mut shown: Map<u32, Set<KindId>> = Map::default();
    for instance in instances {
        if let Some((at, _)) = instance.pieces.first() {
            shown.entry(*at).or_default().extend(instance.kinds(stretches));
        }
    }
    let mut threads: Map<ThreadId, OfThread> = Map::default();
    for (at, kinds) in shown {
        let Some(stretch) = stretches.get(at) else { continue };
        let of = threads.entry(stretch.thread).or_default();
        of.stretches += 1.0;
        kinds.into_iter().for_each(|kind| *of.with.entry(kind).or_default() += 1.0);
    }
    threads
}
