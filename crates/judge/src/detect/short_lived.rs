//! Things made and unmade at once, again and again.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::Pair;
use crate::signs::Signs;

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

/// Lengths within one page are the same: the kernel rounds them up.
const PAGE: u64 = 4096;

impl Life {
    /// Whether the step takes away a part of it only.
    fn is_cut_by(&self, step: &Step<'_>) -> bool {
        let length = self.pair.ends_length.filter(|_| self.moved.is_empty()).map(|arg| step.observed.arg(arg));
        length.is_some_and(|length| length.saturating_add(PAGE - 1) < self.sort.1)
    }

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
                let call = step.observed.call;
                let sort = (pair.makes, call.args.get(usize::from(pair.sort)).copied().unwrap_or(0));
                lives.alive.insert(result(step), Life { made: at, moved: Vec::new(), pair, sort });
            } else if step.moves || step.ends {
                lives.goes_on(at, step, forked);
            }
        }
        lives
    }

    fn goes_on(&mut self, at: usize, step: &Step<'_>, forked: bool) {
        match step.observed.call.args.first().and_then(|handle| self.alive.remove(handle)) {
            Some(mut life) if step.moves => {
                life.moved.push(at);
                self.alive.insert(result(step), life);
            }
            // What is cut to where it is to lie goes on.
            Some(life) if life.is_cut_by(step) => {}
            Some(life) if at - life.made <= SHORT_LIFE => self.ended.entry(life.sort).or_default().push((life, at)),
            Some(_) => {}
            None if at <= SHORT_LIFE && !forked => self.older.push(at),
            None => {}
        }
    }

    /// Leaves out what the window's edges cut off: it may be more of what is `repeated`, and may be not.
    fn leave_out(&self, repeated: &[(&'static Pair, Sort)], steps: &[Step<'_>], claims: &mut Claims) {
        let is_of = |step: &Step<'_>, pair: &Pair| {
            let name = step.observed.syscall.name();
            name == Some(pair.ends) || (name.is_some() && name == pair.moves)
        };
        let began_before = self.older.iter().filter_map(|at| steps.get(*at));
        for step in began_before.filter(|step| repeated.iter().any(|(pair, _)| is_of(step, pair))) {
            claims.leave_out(step.index);
        }
        let goes_on = self.alive.values().filter(|life| life.made + SHORT_LIFE >= steps.len());
        for life in goes_on.filter(|life| repeated.iter().any(|(_, sort)| *sort == life.sort)) {
            life.calls().filter_map(|at| steps.get(at)).for_each(|step| claims.leave_out(step.index));
        }
    }
}

impl ShortLived {
    /// Claims all but the first of what a process makes and unmakes again and again: what these are.
    fn claim(&mut self, lives: &Lives, steps: &[Step<'_>], claims: &mut Claims) -> Vec<(&'static Pair, Sort)> {
        let Some(first) = steps.first() else { return Vec::new() };
        let process = first.observed.window.process.0;
        let mut repeated = Vec::new();
        for (sort, ended) in lives.ended.iter().filter(|(_, ended)| ended.len() >= CYCLES) {
            // One of them is needed in all, not one in each window.
            let needed = usize::from(self.known.insert((process, *sort)));
            for (life, end) in ended.iter().skip(needed) {
                for step in life.calls().chain([*end]).filter_map(|at| steps.get(at)) {
                    put(claims, step.index, Claim::of(Kind::Toggle, life.pair.thing, "make it once and keep it"));
                }
            }
            repeated.extend(ended.first().map(|(life, _)| (life.pair, *sort)));
        }
        repeated
    }
}

fn result(step: &Step<'_>) -> u64 {
    step.observed.call.result.unwrap_or(0) as u64
}

impl Detector for ShortLived {
    fn looks_for(&self) -> Signs {
        Signs::MAKES
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        if steps.iter().filter(|step| step.makes.is_some()).count() < CYCLES {
            return;
        }
        let lives = Lives::of(steps);
        let repeated = self.claim(&lives, steps, claims);
        lives.leave_out(&repeated, steps, claims);
    }
}
