//! Crews: the kinds of threads that make an anchor's calls. A round is what one thread does, so the calls that a
//! producer and a consumer make between two calls of the same lock belong to two rounds.
//!
//! The threads of a pool are one crew, and so are many threads that live for one task each: threads are put together
//! first by what they do, since windows show only little of most of them, and then told apart by what windows of one
//! crew show often and windows of the other hardly ever.

use super::instance::{Instance, LONGEST, MOST_CALLS, OFTEN};
use super::kinds::KindId;
use super::stretches::{Stretches, ThreadId};
use crate::collections::hash::{Map, Set};

/// Largest number of crews of an anchor; what more kinds of threads do is not told.
const MOST: usize = 16;
/// Likeness from which on two threads are put together, 0 to 1.
const ALIKE: f64 = 0.5;
/// Share of a crew's stretches, 0 to 1, from which on a call is usual for it; and of its usual calls that a thread of
/// the crew makes.
const USUAL: f64 = 0.5;
/// Probability below which it is no chance that windows of a crew lack a call.
const CHANCE: f64 = 0.01;

/// Threads that do the same between two calls of an anchor.
#[derive(Clone, Debug, Default)]
pub(super) struct Crew {
    pub(super) threads: Set<ThreadId>,
    /// Number of stretches that show instances.
    stretches: u32,
    instances: u32,
    /// Number of calls in all instances.
    calls: u64,
    /// For each kind but the anchor, the numbers of stretches and of instances that have it.
    kinds: Map<KindId, (u32, u32)>,
}

impl Crew {
    /// Returns the share of the crew's stretches that have a kind, 0 to 1.
    fn share(&self, kind: KindId) -> f64 {
        f64::from(self.kinds.get(&kind).map_or(0, |(stretches, _)| *stretches)) / f64::from(self.stretches.max(1))
    }

    /// Returns true if so many instances have a kind that it could be a member of the round.
    fn often_has(&self, kind: KindId) -> bool {
        let instances = self.kinds.get(&kind).map_or(0, |(_, instances)| *instances);
        f64::from(instances) >= OFTEN * f64::from(self.instances)
    }

    /// Returns how alike the calls of two crews are, 0 to 1.
    fn likeness(&self, other: &Self) -> f64 {
        let (mut both, mut any) = (0.0, 0.0);
        let of_other = other.kinds.keys().filter(|kind| !self.kinds.contains_key(*kind));
        for kind in self.kinds.keys().chain(of_other) {
            let (mine, theirs) = (self.share(*kind), other.share(*kind));
            both += mine.min(theirs);
            any += mine.max(theirs);
        }
        if any > 0.0 { both / any } else { 1.0 }
    }

    /// Returns true if this crew often makes a call that the other lacks, and that is no chance.
    fn has_more_than(&self, other: &Self, odds: &Odds) -> bool {
        self.kinds.iter().any(|(kind, (mine, _))| {
            let theirs = other.kinds.get(kind).map_or(0, |(stretches, _)| *stretches);
            self.often_has(*kind)
                && other.share(*kind) < OFTEN
                && odds.at_most(theirs, other.stretches, mine + theirs, self.stretches + other.stretches) < CHANCE
        })
    }

    /// Returns the likeness of two crews; `None` if they are different kinds of threads.
    fn joins(&self, other: &Self, odds: &Odds) -> Option<f64> {
        let is_other = self.has_more_than(other, odds) || other.has_more_than(self, odds);
        (!is_other).then(|| self.likeness(other))
    }

    /// Returns the share of the crew's usual calls that are among `calls`, 0 to 1; `None` if no whole round has place
    /// there.
    fn usual_among(&self, calls: &[KindId]) -> Option<f64> {
        let usual: Vec<KindId> = self.kinds.keys().copied().filter(|kind| self.share(*kind) >= USUAL).collect();
        if usual.is_empty() {
            return Some(1.0);
        }
        let has = usual.iter().filter(|kind| calls.contains(kind)).count() as f64 / usual.len() as f64;
        (has >= USUAL || calls.len() as u64 * u64::from(self.instances) >= self.calls).then_some(has)
    }

    fn add(&mut self, more: Self) {
        self.threads.extend(more.threads);
        self.stretches += more.stretches;
        self.instances += more.instances;
        self.calls += more.calls;
        for (kind, (stretches, instances)) in more.kinds {
            let sum = self.kinds.entry(kind).or_default();
            *sum = (sum.0 + stretches, sum.1 + instances);
        }
    }
}

/// Logarithms of factorials, from which the probabilities of samples are computed.
struct Odds(Vec<f64>);

impl Odds {
    /// Returns the odds of samples among up to `most` things.
    fn up_to(most: usize) -> Self {
        let mut sum = 0.0;
        let of = |n: usize| {
            sum += (n.max(1) as f64).ln();
            sum
        };
        Self((0..=most).map(of).collect())
    }

    fn choose(&self, of: u32, some: u32) -> f64 {
        let of_n = |n: u32| self.0.get(n as usize).copied().unwrap_or(0.0);
        if some > of { f64::NEG_INFINITY } else { of_n(of) - of_n(some) - of_n(of - some) }
    }

    /// Returns the probability that at most `few` of `sample` things, drawn from `all`, are among `marked` ones.
    fn at_most(&self, few: u32, sample: u32, marked: u32, all: u32) -> f64 {
        let of = |hits: u32| {
            let (rest, others) = (sample.saturating_sub(hits), all.saturating_sub(marked));
            (self.choose(marked, hits) + self.choose(others, rest) - self.choose(all, sample)).exp()
        };
        (0..=few.min(sample)).map(of).sum()
    }
}

/// Returns the crews whose threads have instances of an anchor, the one with most windows first.
pub(super) fn crews(stretches: &Stretches<'_>, anchor: KindId, instances: &[Instance]) -> Vec<Crew> {
    let mut of_thread: Map<ThreadId, (Crew, Map<KindId, u32>)> = Map::default();
    for instance in instances {
        let Some((at, thread)) = instance.thread(stretches) else { continue };
        let (crew, last) = of_thread.entry(thread).or_default();
        crew.threads.insert(thread);
        crew.instances += 1;
        // The instances of a stretch follow each other.
        crew.stretches += u32::from(last.insert(anchor, at) != Some(at));
        crew.calls += instance.kinds(stretches).count() as u64;
        let mut kinds: Vec<KindId> = instance.kinds(stretches).filter(|kind| *kind != anchor).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let sum = crew.kinds.entry(kind).or_default();
            sum.1 += 1;
            sum.0 += u32::from(last.insert(kind, at) != Some(at));
        }
    }
    let mut threads: Vec<(ThreadId, Crew)> = of_thread.into_iter().map(|(thread, (crew, _))| (thread, crew)).collect();
    if threads.len() < 2 {
        return threads.into_iter().map(|(_, crew)| crew).collect();
    }
    threads.sort_by_key(|(thread, crew)| (std::cmp::Reverse(crew.stretches), *thread));
    let odds = Odds::up_to(threads.iter().map(|(_, crew)| crew.stretches as usize).sum());
    let mut crews: Vec<Crew> = Vec::new();
    for (_, thread) in threads {
        let least = if crews.len() < MOST { ALIKE } else { 0.0 };
        let likest = likest(crews.iter().map(|crew| crew.joins(&thread, &odds)), least);
        if let Some((at, _)) = likest {
            crews.get_mut(at).into_iter().for_each(|crew| crew.add(thread.clone()));
        } else if crews.len() < MOST {
            crews.push(thread);
        }
    }
    joined(crews, &odds)
}

/// Returns the index of the largest likeness of at least `least`, with the likeness.
fn likest(all: impl Iterator<Item = Option<f64>>, least: f64) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for (at, likeness) in all.enumerate() {
        if let Some(likeness) = likeness.filter(|l| *l >= least && best.is_none_or(|(_, most)| *l > most)) {
            best = Some((at, likeness));
        }
    }
    best
}

/// Joins crews, the most alike first, until the remaining ones are different kinds of threads.
fn joined(mut crews: Vec<Crew>, odds: &Odds) -> Vec<Crew> {
    loop {
        let mut best: Option<(f64, usize, usize)> = None;
        for (at, crew) in crews.iter().enumerate() {
            let before = crews.iter().take(at).map(|other| other.joins(crew, odds));
            if let Some((with, likeness)) = likest(before, 0.0).filter(|(_, l)| best.is_none_or(|(most, ..)| *l > most))
            {
                best = Some((likeness, with, at));
            }
        }
        let Some((_, with, at)) = best else { return crews };
        let more = crews.remove(at);
        if let Some(crew) = crews.get_mut(with) {
            crew.add(more);
        }
    }
}

/// A call of an anchor in a thread of which no window shows two.
pub(super) struct Lone {
    /// The index of the stretch and the place of the call in it.
    pub(super) at: (u32, usize),
    /// The index of the crew that the thread belongs to; `None` if it belongs to none.
    pub(super) crew: Option<usize>,
}

/// Returns the anchor's calls in threads of which no window shows two of them. Such a thread belongs to a crew if it
/// makes at least half of the crew's usual calls behind the anchor. If few of the threads belong to none, that may be
/// chance, and they are left out.
pub(super) fn lone(stretches: &Stretches<'_>, anchor: KindId, crews: &[Crew]) -> Vec<Lone> {
    let (mut once, mut calls_left): (Map<ThreadId, Option<(u32, usize)>>, usize) = (Map::default(), MOST_CALLS);
    for at in stretches.with(anchor) {
        let Some(stretch) = stretches.get(*at) else { continue };
        if stretch.kinds.len() > calls_left {
            break;
        }
        calls_left -= stretch.kinds.len();
        if crews.iter().any(|crew| crew.threads.contains(&stretch.thread)) {
            continue;
        }
        let mut places = stretch.kinds.iter().enumerate().filter(|(_, kind)| **kind == anchor).map(|(at, _)| at);
        let place = places.next().filter(|_| places.next().is_none()).map(|place| (*at, place));
        once.entry(stretch.thread).and_modify(|one| *one = one.and(place)).or_insert(place);
    }
    let mut all: Vec<(ThreadId, (u32, usize))> = once.into_iter().filter_map(|(t, place)| Some((t, place?))).collect();
    all.sort_unstable();
    let of = |(_, (at, place)): (ThreadId, (u32, usize))| {
        let behind = stretches.get(at)?.kinds.get(place + 1..)?;
        let behind = behind.get(..LONGEST.min(behind.len()))?;
        let shares = || crews.iter().map(|crew| crew.usual_among(behind));
        let crew = likest(shares(), USUAL).map(|(crew, _)| crew);
        (crew.is_some() || shares().all(|share| share.is_some())).then_some(Lone { at: (at, place), crew })
    };
    let mut all: Vec<Lone> = all.into_iter().filter_map(of).collect();
    let strangers = all.iter().filter(|lone| lone.crew.is_none()).count() as u32;
    let most = crews.iter().map(|crew| crew.stretches).max().unwrap_or(0);
    let odds = Odds::up_to((most + strangers) as usize);
    if odds.at_most(0, strangers, most, most + strangers) >= CHANCE {
        all.retain(|lone| lone.crew.is_some());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_without_what_is_common_is_no_chance() {
        let odds = Odds::up_to(40);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(odds.at_most(0, 2, 2, 4), 1.0 / 6.0));
        assert!(near(odds.at_most(2, 2, 2, 4), 1.0));
        assert!(near(odds.at_most(0, 1, 39, 40), 1.0 / 40.0));
        assert!(odds.at_most(1, 20, 20, 40) < 1e-8);
        // More are marked than can be outside the sample.
        assert_eq!(odds.at_most(0, 30, 20, 40), 0.0);
    }

    #[test]
    fn crews_differ_by_what_one_of_them_often_makes() {
        let crew = |stretches: u32, kinds: &[(KindId, u32)]| Crew {
            stretches,
            instances: stretches,
            kinds: kinds.iter().map(|(kind, seen)| (*kind, (*seen, *seen))).collect(),
            ..Crew::default()
        };
        let odds = Odds::up_to(100);
        let differ = |a: &Crew, b: &Crew| a.joins(b, &odds).is_none();
        let (writes, reads) = (crew(20, &[(1, 20), (9, 6)]), crew(20, &[(2, 19), (9, 7)]));
        assert!(differ(&writes, &reads) && differ(&reads, &writes));
        // One of them does so by chance now and then.
        assert!(differ(&writes, &crew(20, &[(1, 1), (2, 19), (9, 7)])));
        // The same at other rates.
        assert!(!differ(&crew(20, &[(1, 20), (2, 4)]), &crew(20, &[(1, 9), (2, 17)])));
        // What is rare in one may be missing in the other, and few windows tell nothing.
        assert!(!differ(&crew(20, &[(1, 20), (2, 1)]), &crew(20, &[(1, 20)])));
        assert!(!differ(&crew(2, &[(1, 2)]), &crew(3, &[(2, 3)])));
    }
}
