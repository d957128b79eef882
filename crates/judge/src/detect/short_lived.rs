//! Things made and unmade at once, again and again.

use super::{Claim, Claims, Detector, put};
use crate::Kind;
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::Pair;

/// A thing unmade within so many calls of its making was hardly used.
const SHORT_LIFE: usize = 8;
/// Makings and unmakings of one sort in a window.
const CYCLES: usize = 2;

/// Things of one sort: the call that makes them, and what it was told.
type Sort = (&'static str, u64);

/// Claims makings and unmakings of things that one thing could have stood for.
#[derive(Default)]
pub(super) struct ShortLived {
    /// Sorts a process was seen to make and unmake in an earlier window.
    known: Set<(u32, Sort)>,
}

/// A thing in a window, by the places of the calls.
struct Life {
    made: usize,
    moved: Vec<usize>,
    pair: &'static Pair,
    sort: Sort,
}

impl Life {
    fn calls(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.made).chain(self.moved.iter().copied())
    }
}

/// The things of a window.
#[derive(Default)]
struct Lives {
    /// Made here and not yet unmade, by handle.
    alive: Map<u64, Life>,
    /// Made and soon unmade, with the place of that call.
    ended: Map<Sort, Vec<(Life, usize)>>,
    /// Calls near the window's start about things made before it.
    older: Vec<usize>,
}

impl Lives {
    fn of(steps: &[Step<'_>]) -> Self {
        let mut lives = Self::default();
        let mut forked = false;
        for (at, step) in steps.iter().enumerate() {
            if step.forks {
                lives.alive.clear();
                forked = true;
            } else if let Some(pair) = step.makes {
                let call = step.subject.call;
                let sort = (pair.makes, call.args.get(usize::from(pair.sort)).copied().unwrap_or(0));
                lives.alive.insert(result(step), Life { made: at, moved: Vec::new(), pair, sort });
            } else if step.moves || step.ends {
                lives.goes_on(at, step, forked);
            }
        }
        lives
    }

    fn goes_on(&mut self, at: usize, step: &Step<'_>, forked: bool) {
        match step.subject.call.args.first().and_then(|handle| self.alive.remove(handle)) {
            Some(mut life) if step.moves => {
                life.moved.push(at);
                self.alive.insert(result(step), life);
            }
            Some(life) if at - life.made <= SHORT_LIFE => self.ended.entry(life.sort).or_default().push((life, at)),
            Some(_) => {}
            None if at <= SHORT_LIFE && !forked => self.older.push(at),
            None => {}
        }
    }
}

fn result(step: &Step<'_>) -> u64 {
    step.subject.call.result.unwrap_or(0) as u64
}

impl Detector for ShortLived {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let lives = Lives::of(steps);
        let Some(first) = steps.first() else { return };
        let process = first.subject.window.process.0;
        let mut put_all = |calls: &mut dyn Iterator<Item = usize>, pair: &'static Pair| {
            for step in calls.filter_map(|at| steps.get(at)) {
                put(claims, step.index, Claim::of(Kind::Toggle, pair.thing, "make it once and keep it"));
            }
        };
        let mut repeated: Vec<(&'static Pair, Sort)> = Vec::new();
        for (sort, ended) in lives.ended.iter().filter(|(_, ended)| ended.len() >= CYCLES) {
            // One of them is needed in all, not one in each window.
            let needed = usize::from(self.known.insert((process, *sort)));
            for (life, end) in ended.iter().skip(needed) {
                put_all(&mut life.calls().chain([*end]), life.pair);
            }
            repeated.extend(ended.first().map(|(life, _)| (life.pair, *sort)));
        }
        // What the window's edges cut off may be more of the same, and may be not.
        for at in lives.older {
            let of = |step: &Step<'_>, pair: &Pair| {
                let name = step.subject.syscall.name();
                name == Some(pair.ends) || (name.is_some() && name == pair.moves)
            };
            if let Some(step) = steps.get(at).filter(|step| repeated.iter().any(|(pair, _)| of(step, pair))) {
                claims.leave_out(step.index);
            }
        }
        for life in lives.alive.values().filter(|life| life.made + SHORT_LIFE >= steps.len()) {
            if repeated.iter().any(|(_, sort)| *sort == life.sort) {
                life.calls().filter_map(|at| steps.get(at)).for_each(|step| claims.leave_out(step.index));
            }
        }
    }
}
