//! Detects going back in a file and reading on to where it stood, only to write there: what is read, the program wrote
//! or read before.

use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, put};
use crate::results::finding::Kind;
use crate::semantics::signs::Signs;
use crate::semantics::{FILE_STATUS, Way};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use std::sync::Arc;

/// Least number of such ways back in a window.
const LEAST: usize = 3;
/// Largest size of a small write, bytes, that a buffer of the program would have held.
const SMALL: u64 = 512;

/// A way back: its calls, the position that it left, and the one that it went to.
struct Back {
    calls: Vec<usize>,
    left: u64,
    to: u64,
}

/// A file that is written to, as the window shows it.
#[derive(Default)]
struct Place {
    /// The position; `None` before the window shows it.
    at: Option<u64>,
    /// Beginning and end of what the program has read or written: it could have kept that.
    known: (u64, u64),
    /// The way back that is under way.
    back: Option<Back>,
    /// A question about the file right before.
    asked: Option<usize>,
    /// The calls of ways back that ended where they began, each with a small write that follows.
    ways: Vec<Vec<usize>>,
    /// The calls of earlier ones: what the program knew then, the window does not show.
    earlier: Vec<usize>,
    name: Option<Arc<str>>,
}

impl Place {
    fn sought(&mut self, step: &Step<'_>) {
        let to = step.observed.call.result.and_then(|at| u64::try_from(at).ok());
        let mut calls = self.back.take().map_or_else(Vec::new, |back| back.calls);
        calls.extend(self.asked.take());
        calls.push(step.index);
        if self.at.is_none() {
            self.earlier.extend(&calls);
        }
        self.back = self.at.zip(to).filter(|(left, to)| to < left).map(|(left, to)| Back { calls, left, to });
        self.at = to;
    }

    fn reads(&mut self, step: &Step<'_>, bytes: u64) {
        self.at = self.at.map(|at| at.saturating_add(bytes));
        if self.ways.is_empty() && self.back.is_none() {
            self.earlier.push(step.index);
        }
        if let Some(back) = &mut self.back {
            back.calls.extend(self.asked.take());
            back.calls.push(step.index);
        }
    }

    fn writes(&mut self, step: &Step<'_>, bytes: u64) {
        let Some(from) = self.at else { return };
        let (begins, ends) = self.known;
        match self.back.take().filter(|back| back.left == from) {
            Some(mut back) if ends == from && begins <= back.to => {
                back.calls.extend((bytes <= SMALL).then_some(step.index));
                self.ways.push(back.calls);
            }
            Some(back) => {
                self.known.0 = back.to;
                self.earlier.extend(back.calls);
                self.earlier.push(step.index);
            }
            None if ends == from => {}
            None => self.known.0 = from,
        }
        self.known.1 = from.saturating_add(bytes);
        self.at = Some(self.known.1);
        self.asked = None;
    }

    fn claim(&self, claims: &mut Claims) {
        if self.ways.len() >= LEAST {
            let object = || self.name.clone();
            self.ways.iter().flatten().for_each(|at| put(claims, *at, Claim { object: object(), ..claim() }));
            self.earlier.iter().for_each(|at| claims.leave_out(*at));
        }
    }
}

/// Claims the way back and what is read on it, and the small writes that it keeps apart. A stream of the C library goes
/// so wherever it is told to seek, even to where it is.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    let mut places: Map<i32, Place> = Map::default();
    for step in steps {
        if step.lets(Barrier::OTHERS_WRITE) {
            // Others may have written meanwhile.
            places.drain().for_each(|(_, place)| place.claim(claims));
            continue;
        }
        let Some(fd) = step.descriptor() else { continue };
        if step.lets_go(fd) {
            places.remove(&fd).into_iter().for_each(|place| place.claim(claims));
            continue;
        }
        let name = step.observed.call.fd.as_deref().filter(|name| name.starts_with('/'));
        let new = || Place { name: name.map(|name| claims.object(name)), ..Place::default() };
        let place = places.entry(fd).or_insert_with(new);
        match step.moved_in_turn() {
            Some((Way::In, got)) => place.reads(step, got),
            Some((Way::Out, got)) => place.writes(step, got),
            None if step.signs.any(Signs::SEEKS) => place.sought(step),
            None if step.asks(&FILE_STATUS) => place.asked = Some(step.index),
            None => {}
        }
    }
    places.into_values().for_each(|place| place.claim(claims));
}

fn claim() -> Claim {
    Claim::of(
        Kind::SlowPath,
        "goes back in a file and reads on to where it stood, to write there",
        "leave the seek out: writing goes on where it ended; a stream throws its buffer away at each seek",
    )
}
