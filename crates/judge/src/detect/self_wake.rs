//! Detects wakes that a thread sends to itself, and reads of a wake's descriptor whose events come by edges.

use super::awake::Rung;
use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{PIPES, WAKE_COUNTERS, Way};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use systoll_model::Moment;

/// Least number of wakes in a window that their own thread took back.
const LEAST: usize = 3;

/// Claims writes to an event descriptor or a pipe, and the read that takes exactly them back, where one thread makes
/// both: it is awake.
pub(super) struct SelfWake<'a> {
    pub(super) rung: &'a Rung<'a>,
}

/// An event descriptor, by its number, or a pipe, by its name.
type Bell<'s> = (Option<i32>, &'s str);

/// The wakes since a descriptor was last read empty.
#[derive(Default)]
struct Own {
    /// Their sum: an event descriptor's value, or a pipe's bytes.
    sum: u64,
    /// Indices of the writes.
    writes: Vec<usize>,
    /// True if nothing was in it before them.
    from_empty: bool,
}

impl Detector for SelfWake<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let Some(process) = steps.first().map(|step| step.observed.window.process.0) else { return };
        let mut bells: Map<Bell<'_>, Own> = Map::default();
        let mut taken_back: Vec<Vec<usize>> = Vec::new();
        let mut by_edge = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            if step.lets(Barrier::OTHERS_SEND) && !claims.is_off(ReasonId::SentByOthers) {
                // A handler may have written it to end the wait of the thread that it interrupted.
                for at in bells.drain().flat_map(|(_, own)| own.writes) {
                    claims.excuse(at, ReasonId::SentByOthers, true);
                }
                continue;
            }
            let Some((bell, way, bytes)) = wake(step) else { continue };
            match (way, bytes) {
                (Way::Out, Some(value)) => {
                    let own = bells.entry(bell).or_default();
                    own.sum = own.sum.saturating_add(value);
                    own.writes.push(at);
                }
                (Way::In, Some(value)) => {
                    let mut own = bells.remove(&bell).unwrap_or_default();
                    // A read that waited found nothing: somebody else had taken the wakes, or sent this one.
                    let at_once = step.observed.call.waited_ns.is_none_or(|ns| ns == 0);
                    if own.from_empty && at_once && own.sum == value && self.rung.is_wake(process, bell.1) {
                        own.writes.push(at);
                        taken_back.push(own.writes);
                    } else if bell.0.is_some_and(|fd| self.rung.is_by_edge(process, fd)) {
                        by_edge.push(at);
                    }
                    if empties(step) {
                        bells.insert(bell, Own { from_empty: true, ..Own::default() });
                    }
                }
                // It was empty, or the value is not known.
                (Way::In, None) if step.nothing => {
                    bells.insert(bell, Own { from_empty: true, ..Own::default() });
                }
                _ => drop(bells.remove(&bell)),
            }
        }
        if taken_back.len() >= LEAST {
            taken_back.iter().flatten().for_each(|at| put(claims, *at, to_itself()));
        }
        if by_edge.len() >= LEAST {
            by_edge.iter().for_each(|at| put(claims, *at, read_by_edge()));
        }
    }
}

/// Returns what a step moves through an event descriptor or a pipe: the way, and the value or the number of bytes.
fn wake<'s>(step: &'s Step<'_>) -> Option<(Bell<'s>, Way, Option<u64>)> {
    let (moved, name) = (step.moved?, step.observed.call.fd.as_deref()?);
    let way = moved.line.way;
    if name == WAKE_COUNTERS {
        let at = if way == Way::In { Moment::Exit } else { Moment::Entry };
        let value = step.observed.data(1, at).and_then(|bytes| bytes.first_chunk()).map(|b| u64::from_le_bytes(*b));
        return Some(((moved.fd, name), way, value.filter(|_| moved.got.is_some())));
    }
    name.starts_with(PIPES).then_some(((None, name), way, moved.got))
}

/// Returns true if nothing is left after the read: an event descriptor gives all that it has, a pipe had less than was
/// asked for.
fn empties(step: &Step<'_>) -> bool {
    let counter = step.observed.call.fd.as_deref() == Some(WAKE_COUNTERS);
    counter || step.moved.is_some_and(|moved| moved.asked.zip(moved.got).is_some_and(|(asked, got)| got < asked))
}

fn to_itself() -> Claim {
    Claim::of(
        Kind::NoOp,
        "a wake for the thread that sends it, which takes it back itself",
        "look whether the thread is the one that is to be woken, and leave it a note (a flag, a list) instead",
    )
}

fn read_by_edge() -> Claim {
    Claim::of(
        Kind::SlowPath,
        "reads an event descriptor that is waited for by its edges: the next write wakes the thread anyway",
        "leave the value where it is (EPOLLET): it tells nothing",
    )
}
