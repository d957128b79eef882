//! Finds rounds: sequences of calls that threads make again and again. They are reported even if no call in them is
//! known to be needless.
//!
//! The costliest call is taken, and each call near it in windows is tried as the beginning of a round ([`anchor`]):
//! which calls come between two of its calls, how regularly, and how much of the price they explain. The best such
//! round is reported, its calls are set aside, and the costliest of the remaining calls is next. The number of rounds
//! is counted exactly; their content is known from windows.
//!
//! A round is what one thread does. Where several kinds of threads call the anchor, each kind makes a round of its own
//! ([`crews`]), and the number of its rounds is an estimate unless a call that only this kind makes counts them.
//!
//! Time and memory are bounded for any recording, by limits on the costly calls, on the stretches of windows and
//! anchors for each of these, and on the calls examined for each anchor.

mod alike;
mod anchor;
mod begin;
mod by_thread;
mod crews;
mod instance;
mod kinds;
mod overlap;
mod part;
mod pattern_of;
mod place;
mod rest;
mod round;
mod scene;
mod shape;
mod stretches;

pub use round::{Numbers, Objects, Round, RoundCall, RoundClaimed, RoundPlace, RoundRow, RoundStep, Times, Variety};

use crate::evidence::phases::Phases;
use crate::results::finding::Finding;
use crate::semantics::Semantics;
use anchor::{Anchored, LEAST, Scales, conforms};
use instance::LITTLE;
use kinds::{KindId, Kinds};
use std::cmp::Reverse;
use stretches::Stretches;
use systoll_model::Recording;

/// Largest number of costly calls for which rounds are searched.
const SEEDS: usize = 64;
/// Share of the run's processor time, or of its wall time for waits, from which on a call is costly, 0 to 1.
const DEAR: f64 = 0.002;
/// Largest number of anchors tried for a costly call.
const ANCHORS: usize = 12;
/// Largest number of stretches searched for anchors.
const AROUND: usize = 32;
/// Least share of the costly call's calls that a round must hold, 0 to 1.
const OF_SEED: f64 = 0.3;
/// Factor by which an anchor's score must exceed that of one that came earlier in the run.
const BETTER: f64 = 1.02;
/// Factor by which the score of a round that may be several must exceed that of a simple one.
const COARSER: f64 = 1.05;
/// Least number of whole rounds in windows for an anchor: fewer may be chance.
const SEEN: usize = 2;

/// Times of the run, to which calls are compared.
struct Measures {
    /// The run's processor time, ns.
    cpu: f64,
    /// The run's wall time, ns; `None` if several threads or processes ran at the same time.
    wall: Option<f64>,
}

impl Measures {
    fn of(recording: &Recording, phases: &Phases) -> Self {
        let images: u64 = recording.processes.iter().fold(0, |sum, p| sum.saturating_add(p.instances.max(1)));
        let alone = images <= 1 && recording.header.threads <= 1;
        let observer = recording.header.observer_wall_ns_per_call;
        let observer = if observer.is_finite() { observer.max(0.0) * recording.calls() as f64 } else { 0.0 };
        let wall = (recording.header.wall_ns as f64 - observer).max(0.0);
        Self { cpu: phases.all_cpu(), wall: Some(wall).filter(|wall| alone && *wall > 0.0) }
    }

    /// Returns the share of the run that calls take, as the sum of their shares of processor time and wall time.
    fn price(&self, toll: f64, waited: f64) -> f64 {
        let of_cpu = if self.cpu > 0.0 { (toll / self.cpu).min(1.0) } else { 0.0 };
        let of_wall = self.wall.map_or(0.0, |wall| (waited / wall).min(1.0));
        of_cpu + of_wall
    }
}

/// Returns the rounds of a recording, costliest first. `findings` tell how much of them is claimed.
pub(crate) fn rounds(
    recording: &Recording,
    semantics: &Semantics,
    phases: &Phases,
    findings: &[Finding],
) -> Vec<Round> {
    let measures = Measures::of(recording, phases);
    let kinds = Kinds::of(recording);
    let price = |id: KindId| kinds.get(id).map_or(0.0, |kind| measures.price(kind.toll, kind.waited));
    let seeds = seeds(&kinds, price);
    if seeds.is_empty() {
        return Vec::new();
    }
    let mut wanted = vec![false; kinds.all.len()];
    for seed in &seeds {
        if let Some(wanted) = wanted.get_mut(*seed as usize) {
            *wanted = true;
        }
    }
    let stretches = Stretches::of(recording, &kinds, &wanted);
    let by_thread = by_thread::ByThread::of(recording);
    let state = State::new(&kinds, &stretches);
    let mut search = Search { kinds: &kinds, stretches: &stretches, by_thread: &by_thread, price: &price, state };
    let claimed = scene::claimed(recording, findings);
    let scene = scene::Scene {
        recording,
        kinds: &kinds,
        stretches: &stretches,
        claimed: &claimed,
        semantics,
        wall_ns: measures.wall,
        own_cpu_ns: recording.own_cpu_ns(),
    };
    let mut rounds = Vec::new();
    for seed in seeds {
        if search.state.left(seed) < LITTLE || price(seed) * search.state.left(seed) < DEAR {
            continue;
        }
        let Some(found) = search.best(seed) else { continue };
        rounds.extend(scene.round(&found));
        search.set_aside(&found);
    }
    let mut rounds = alike::joined(rounds);
    let dear = |round: &Round| measures.price(round.toll_ns as f64, round.waited_ns.unwrap_or(0) as f64);
    rounds.sort_by(|a, b| dear(b).total_cmp(&dear(a)));
    rest::mark(&mut rounds, recording, &claimed, measures.wall);
    rounds
}

/// Returns the costly calls, costliest first.
fn seeds(kinds: &Kinds, price: impl Fn(KindId) -> f64) -> Vec<KindId> {
    let dear = |(id, kind): (KindId, &kinds::Kind)| {
        let price = price(id);
        (price >= DEAR && kind.calls >= LEAST).then_some((price, id))
    };
    let mut all: Vec<(f64, KindId)> = (0..).zip(&kinds.all).filter_map(dear).collect();
    all.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(x.cmp(y)));
    all.truncate(SEEDS);
    all.into_iter().map(|(_, id)| id).collect()
}

/// The calls that are in rounds so far.
struct State {
    /// Share of each kind's calls that is in no round yet, 0 to 1.
    left: Vec<f64>,
    /// For each call of each stretch, true if it is in a round.
    told: Vec<Vec<bool>>,
}

impl State {
    fn new(kinds: &Kinds, stretches: &Stretches<'_>) -> Self {
        let told = stretches.all.iter().map(|stretch| vec![false; stretch.kinds.len()]).collect();
        Self { left: vec![1.0; kinds.all.len()], told }
    }

    fn left(&self, kind: KindId) -> f64 {
        self.left.get(kind as usize).copied().unwrap_or(0.0)
    }

    fn is_told(&self, stretch: u32, at: usize) -> bool {
        self.told.get(stretch as usize).and_then(|told| told.get(at)).copied().unwrap_or(false)
    }
}

/// The search for rounds.
struct Search<'a> {
    kinds: &'a Kinds,
    stretches: &'a Stretches<'a>,
    by_thread: &'a by_thread::ByThread,
    price: &'a dyn Fn(KindId) -> f64,
    state: State,
}

impl Search<'_> {
    /// Returns the best round that contains the costly call `seed`, by [`Anchored::score`].
    fn best(&self, seed: KindId) -> Option<Anchored> {
        let (left, is_told) = (|kind| self.state.left(kind), |stretch, at| self.state.is_told(stretch, at));
        let scales = Scales {
            kinds: self.kinds,
            stretches: self.stretches,
            by_thread: self.by_thread,
            price: self.price,
            left: &left,
            is_told: &is_told,
        };
        let dearest = |one: Anchored, other: Anchored| if other.score > one.score { other } else { one };
        // The costly call itself is the first candidate: it remains a round of one call if no other anchor is better.
        let mut best = scales.weigh(seed).into_iter().reduce(dearest)?;
        let first_at = |kind: KindId| (self.stretches.first_at(kind), kind);
        let mut from = first_at(seed);
        let weighed = |anchor: KindId| scales.weigh(anchor).into_iter().map(move |found| (anchor, found));
        for (anchor, found) in self.anchors(seed).into_iter().flat_map(weighed) {
            let of_seed = found.members.iter().find(|member| member.kind == seed);
            let has_it = of_seed.is_some_and(|m| m.of_round >= OF_SEED * self.state.left(seed));
            let earlier = first_at(anchor) < from;
            let enough = match (found.is_several, best.is_several) {
                (true, false) => best.score * COARSER,
                (false, true) => best.score / COARSER,
                _ if earlier => best.score / BETTER,
                _ => best.score * BETTER,
            };
            if has_it && found.instances.len() >= SEEN && found.score > enough {
                from = first_at(anchor);
                best = found;
            }
        }
        Some(best)
    }

    /// Returns the kinds most often near a costly call, in the order in which the run first calls them.
    fn anchors(&self, seed: KindId) -> Vec<KindId> {
        let mut near: crate::collections::hash::Map<KindId, u64> = crate::collections::hash::Map::default();
        for stretch in self.stretches.with(seed).iter().rev().take(AROUND).filter_map(|at| self.stretches.get(*at)) {
            let mut here = stretch.kinds.clone();
            here.sort_unstable();
            here.dedup();
            here.into_iter().for_each(|kind| *near.entry(kind).or_default() += 1);
        }
        let calls = |kind: KindId| self.kinds.get(kind).map_or(0, |kind| kind.calls) as f64 * self.state.left(kind);
        let could = |(kind, _): &(KindId, u64)| {
            *kind != seed && calls(*kind) >= LEAST as f64 && self.state.left(*kind) >= LITTLE
        };
        let mut near: Vec<(KindId, u64)> = near.into_iter().filter(could).collect();
        near.sort_by_key(|(kind, times)| (Reverse(*times), *kind));
        near.truncate(ANCHORS);
        let mut anchors: Vec<KindId> = near.into_iter().map(|(kind, _)| kind).collect();
        anchors.sort_by_key(|kind| (self.stretches.first_at(*kind), *kind));
        anchors
    }

    /// Sets the calls of a round aside.
    fn set_aside(&mut self, found: &Anchored) {
        for member in &found.members {
            if let Some(left) = self.state.left.get_mut(member.kind as usize) {
                *left = (*left - member.of_round).max(0.0);
            }
        }
        for instance in &found.instances {
            if !conforms(found, instance, self.stretches) {
                continue;
            }
            for (at, range) in &instance.pieces {
                let Some(stretch) = self.stretches.get(*at) else { continue };
                let Some(told) = self.state.told.get_mut(*at as usize) else { continue };
                for place in range.clone() {
                    let kind = stretch.kinds.get(place);
                    if let Some(told) = told.get_mut(place) {
                        *told |= kind.is_some_and(|kind| found.members.iter().any(|m| m.kind == *kind));
                    }
                }
            }
        }
    }
}
