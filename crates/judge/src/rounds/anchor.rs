//! One kind taken as the beginning of a round: what comes between its calls, and how regularly.

use super::kinds::{KindId, Kinds};
use super::stretches::{Stretch, Stretches};
use crate::hash::Map;
use crate::octave::octaves;
use std::ops::Range;

/// Times that something is done before it is a habit.
pub(super) const LEAST: u64 = 10;
/// Calls of one round, at most.
const LONGEST: usize = 512;
/// Calls looked at for one anchor.
const MOST_CALLS: usize = 1 << 15;
/// A call is of the round where so much of the rounds have it.
const OFTEN: f64 = 0.1;
/// Nearly each of them.
pub(super) const NEARLY_ALWAYS: f64 = 0.95;
/// Times that a call which not all rounds have comes in those that do, in the mean: where it comes more often it is a
/// habit of its own between two rounds.
const ONCE: f64 = 1.5;
/// A kind whose calls come so often in a row, in the mean, is a run.
const RUN: f64 = 1.3;
/// What windows tell of a kind's number of calls, against the exact count: nearer than this, all of them are of the round.
const NEAR: f64 = 0.8;
/// Runs of a call in a round, in the mean, by which it comes at several places of it.
const SEVERAL: f64 = 1.5;
/// Counts nearer than this are of the same rounds, but for some calls made elsewhere.
const NEARLY_ALL: f64 = 0.9;
/// A part of a kind's calls that is all of them.
pub(super) const WHOLE: f64 = 1.0 - 1e-9;
/// So many times more runs may end in windows than counts say, and so many more.
const MORE_ENDS: f64 = 4.0;
const FEW_ENDS: f64 = 3.0;
/// Rounds seen whole from which no more are put together of pieces.
const FEW: usize = 3;
/// Calls alike at the end of one piece and at the begin of another by which both are of the same run.
const SAME_RUN: usize = 4;

/// A round as a window shows it.
pub(super) struct Instance {
    /// The stretches, and which of their calls: one, or two pieces of a round that is longer than a window.
    pub(super) pieces: Vec<(u32, Range<usize>)>,
    /// For how many rounds it stands.
    pub(super) weight: f64,
}

impl Instance {
    /// Its calls' kinds, in order.
    pub(super) fn kinds<'a>(&'a self, stretches: &'a Stretches<'_>) -> impl Iterator<Item = KindId> + 'a {
        self.pieces.iter().flat_map(|(at, range)| {
            let kinds = stretches.get(*at).and_then(|stretch| stretch.kinds.get(range.clone()));
            kinds.unwrap_or_default().iter().copied()
        })
    }
}

/// What instances say of one kind.
#[derive(Clone, Debug, Default)]
struct Tally {
    /// Weight of the instances that have it.
    present: f64,
    /// Calls, weighted.
    calls: f64,
    /// Runs, weighted.
    runs: f64,
    /// Weight of instances by their number of runs.
    by_runs: Vec<(u32, f64)>,
    /// Instances that have it, and how many calls of it each has at least and at most.
    seen: (usize, u32, u32),
    /// In the instance at hand.
    here: (u32, u32),
}

/// A kind whose calls are of the round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) kind: KindId,
    /// The part of rounds that have it.
    pub(super) share: f64,
    /// The part of its calls that are of these rounds.
    pub(super) of_round: f64,
    /// How many calls of it each round has that has any, where all that were seen have as many and nearly all have some.
    each: Option<u32>,
    /// The part of rounds that have the usual number of its runs.
    stable: f64,
}

impl Member {
    /// Whether nearly each round has it.
    pub(super) fn is_always(&self) -> bool {
        self.share >= NEARLY_ALWAYS
    }

    /// Whether most rounds have it.
    pub(super) fn is_usual(&self) -> bool {
        self.share >= 0.5
    }
}

/// What the calls between two of the anchor's are.
pub(super) struct Anchored {
    /// The kind that each round has once.
    pub(super) anchor: KindId,
    pub(super) instances: Vec<Instance>,
    /// The anchor first.
    pub(super) members: Vec<Member>,
    /// How many rounds there are.
    pub(super) rounds: f64,
    /// Whether exact counts tell that.
    pub(super) is_counted: bool,
    /// Whether a call that each has comes at several places of it: it may be several rounds.
    pub(super) is_several: bool,
    /// What it explains: price, how pure and how regular the rounds are.
    pub(super) score: f64,
}

/// What anchors are weighed by.
pub(super) struct Scales<'a> {
    pub(super) kinds: &'a Kinds,
    pub(super) stretches: &'a Stretches<'a>,
    /// What a kind's calls cost, as a share of the run.
    pub(super) price: &'a dyn Fn(KindId) -> f64,
    /// The part of a kind's calls that no round has yet.
    pub(super) left: &'a dyn Fn(KindId) -> f64,
    /// Whether a call is of a round already.
    pub(super) is_told: &'a dyn Fn(u32, usize) -> bool,
}

impl Scales<'_> {
    /// Returns what is between the calls of `anchor`.
    pub(super) fn weigh(&self, anchor: KindId) -> Anchored {
        let mut instances = self.instances(anchor);
        if instances.len() < FEW {
            instances.extend(self.pieced(anchor));
        }
        self.weights(&mut instances);
        let all: f64 = instances.iter().map(|instance| instance.weight).sum();
        let tallies = self.tallies(&instances);
        let left = (self.left)(anchor);
        let alone = Member { kind: anchor, share: 1.0, of_round: left, each: Some(1), stable: 1.0 };
        let rounds = self.calls_left(anchor);
        if all <= 0.0 {
            let (score, is_counted) = ((self.price)(anchor) * left, left >= WHOLE);
            let (members, is_several) = (vec![alone], false);
            return Anchored { anchor, instances, members, rounds, is_counted, is_several, score };
        }
        let mut members = vec![alone];
        let mut others: Vec<KindId> = tallies.keys().copied().filter(|kind| *kind != anchor).collect();
        others.sort_unstable();
        for kind in others {
            let Some(tally) = tallies.get(&kind) else { continue };
            let (seen, runs) = (tally.present / all, tally.runs / all);
            // Windows crowd where rare calls are: no more rounds have it than there are calls of it.
            let share = seen.min(self.calls_left(kind) / rounds.max(1.0));
            if share < OFTEN || (seen < NEARLY_ALWAYS && runs > ONCE * seen) {
                continue;
            }
            let same = tally.by_runs.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
            let stable = (same / all).max(1.0 - share);
            let (_, least, most) = tally.seen;
            let each = (seen >= NEARLY_ALWAYS && least == most).then_some(most);
            members.push(Member { kind, share, of_round: tally.calls / all * rounds, each, stable });
        }
        let (rounds, is_counted) = self.rounds(&members, rounds);
        self.shares_of_calls(&mut members, &tallies, rounds);
        let score = self.score(&members, &tallies);
        let several = |m: &Member| m.is_always() && tallies.get(&m.kind).is_some_and(|t| t.runs >= SEVERAL * all);
        let is_several = members.iter().any(several);
        Anchored { anchor, instances, members, rounds, is_counted, is_several, score }
    }

    /// Calls of a kind that no round has yet.
    fn calls_left(&self, kind: KindId) -> f64 {
        self.kinds.get(kind).map_or(0, |kind| kind.calls) as f64 * (self.left)(kind)
    }

    /// How many rounds there are, of `most` calls of the anchor: the anchor may be called elsewhere too, and what each round
    /// has so many times tells how many there are at most. With it, whether that was counted exactly.
    fn rounds(&self, members: &[Member], most: f64) -> (f64, bool) {
        let of = |member: &Member| {
            let each = member.each.filter(|each| *each > 0)?;
            Some(((self.calls_left(member.kind) / f64::from(each)).floor(), (self.left)(member.kind) >= WHOLE))
        };
        let all = members.iter().filter(|member| member.is_always()).filter_map(of);
        let near = all.filter(|(rounds, _)| *rounds >= NEARLY_ALL * most);
        near.min_by(|(a, _), (b, _)| a.total_cmp(b)).unwrap_or((most, false))
    }

    /// The calls from one of the anchor's to the next, where a window shows both.
    fn instances(&self, anchor: KindId) -> Vec<Instance> {
        let mut instances = Vec::new();
        let mut calls_left = MOST_CALLS;
        for at in self.stretches.with(anchor) {
            let Some(stretch) = self.stretches.get(*at) else { continue };
            if stretch.kinds.len() > calls_left {
                break;
            }
            calls_left -= stretch.kinds.len();
            let places = places(stretch, anchor);
            for pair in places.windows(2) {
                let &[from, to] = pair else { continue };
                if to - from <= LONGEST && !(self.is_told)(*at, from) {
                    instances.push(Instance { pieces: vec![(*at, from..to)], weight: 1.0 });
                }
            }
        }
        instances
    }

    /// Rounds put together of the end of one window and the begin of another, which both lie in a run of the same kind.
    fn pieced(&self, anchor: KindId) -> Vec<Instance> {
        let (mut ends, mut begins) = (Vec::new(), Vec::new());
        for at in self.stretches.with(anchor) {
            let Some(stretch) = self.stretches.get(*at) else { continue };
            let places = places(stretch, anchor);
            let (Some(first), Some(last)) = (places.first(), places.last()) else { continue };
            let len = stretch.kinds.len();
            if len > LONGEST || (self.is_told)(*at, *last) {
                continue;
            }
            if let Some(kind) = run_at_end(&stretch.kinds) {
                begins.push((kind, (*at, *last..len)));
            }
            if let Some(kind) = run_at_begin(&stretch.kinds) {
                ends.push((kind, (*at, 0..*first)));
            }
        }
        begins
            .into_iter()
            .zip(ends)
            .filter(|((a, _), (b, _))| a == b && *a != anchor)
            .map(|((_, begin), (_, end))| Instance { pieces: vec![begin, end], weight: 1.0 })
            .collect()
    }

    /// Windows crowd where a row begins: each instance stands for its octave's part of the row's calls.
    fn weights(&self, instances: &mut [Instance]) {
        type Place = (u32, u32);
        let place = |instance: &Instance| -> Option<Place> {
            let (at, range) = instance.pieces.first()?;
            let call = self.stretches.get(*at)?.calls.get(range.start)?;
            Some((call.row.0, call.nth.checked_ilog2()?))
        };
        let mut seen: Map<Place, u64> = Map::default();
        instances.iter().filter_map(place).for_each(|place| *seen.entry(place).or_default() += 1);
        let mut by_row: Map<u32, Vec<u32>> = Map::default();
        seen.keys().for_each(|(row, octave)| by_row.entry(*row).or_default().push(*octave));
        let mut sizes: Map<Place, f64> = Map::default();
        for (row, seen) in &by_row {
            let calls = self.calls_of_row(*row);
            for (size, nearest) in octaves(calls, seen.iter().copied()) {
                *sizes.entry((*row, nearest)).or_default() += size as f64;
            }
        }
        for instance in instances {
            let weight = place(instance).and_then(|place| Some(sizes.get(&place)? / *seen.get(&place)? as f64));
            instance.weight = weight.unwrap_or(0.0);
        }
    }

    fn calls_of_row(&self, row: u32) -> u64 {
        let kind = self.kinds.get(self.kinds.of_row(systoll_model::RowId(row)));
        kind.and_then(|kind| kind.calls_of(systoll_model::RowId(row))).unwrap_or(0)
    }

    fn tallies(&self, instances: &[Instance]) -> Map<KindId, Tally> {
        let mut tallies: Map<KindId, Tally> = Map::default();
        let mut here: Vec<KindId> = Vec::new();
        for instance in instances {
            let mut before = KindId::MAX;
            for kind in instance.kinds(self.stretches) {
                let tally = tallies.entry(kind).or_default();
                if tally.here.0 == 0 {
                    here.push(kind);
                }
                tally.here.0 += 1;
                tally.here.1 += u32::from(before != kind);
                before = kind;
            }
            for kind in here.drain(..) {
                let Some(tally) = tallies.get_mut(&kind) else { continue };
                let (calls, runs) = std::mem::take(&mut tally.here);
                tally.present += instance.weight;
                tally.seen = match tally.seen {
                    (0, ..) => (1, calls, calls),
                    (seen, least, most) => (seen + 1, least.min(calls), most.max(calls)),
                };
                tally.calls += instance.weight * f64::from(calls);
                tally.runs += instance.weight * f64::from(runs);
                match tally.by_runs.iter_mut().find(|(n, _)| *n == runs) {
                    Some((_, weight)) => *weight += instance.weight,
                    None => tally.by_runs.push((runs, instance.weight)),
                }
            }
        }
        tallies
    }

    /// Which part of each member's calls is of these rounds: where windows and exact counts agree, all.
    fn shares_of_calls(&self, members: &mut [Member], tallies: &Map<KindId, Tally>, rounds: f64) {
        let kinds: Vec<KindId> = members.iter().map(|member| member.kind).collect();
        for member in members {
            let (left, calls) = ((self.left)(member.kind), self.calls_left(member.kind));
            let counted = member.each.map_or(0.0, |each| rounds * f64::from(each));
            if calls > 0.0 && counted >= NEAR * calls {
                member.of_round = left * (counted / calls).min(1.0);
                continue;
            }
            let expected = member.of_round;
            let is_run = tallies.get(&member.kind).is_some_and(|tally| tally.calls > RUN * tally.runs);
            // A window shows short rounds rather than long ones: of runs it shows too little.
            let near = expected >= NEAR * calls
                || is_run && self.is_only_among(member.kind, &kinds) && self.runs_so_long(member.kind, calls / rounds);
            member.of_round = left * if near || calls <= 0.0 { 1.0 } else { (expected / calls).min(1.0) };
        }
    }

    /// Whether the stretches with a kind's calls hold hardly any but these.
    fn is_only_among(&self, kind: KindId, members: &[KindId]) -> bool {
        let (mut among, mut calls_left) = (0, MOST_CALLS);
        let places = self.stretches.with(kind);
        for stretch in places.iter().filter_map(|at| self.stretches.get(*at)) {
            if stretch.kinds.len() > calls_left {
                break;
            }
            calls_left -= stretch.kinds.len();
            let of_round = stretch.kinds.iter().filter(|kind| members.contains(kind)).count();
            among += usize::from(of_round as f64 >= NEAR * stretch.kinds.len() as f64);
        }
        among as f64 >= NEAR * places.len() as f64
    }

    /// Whether runs of a kind are as long as counts say, by the windows that its own count opened: others crowd where runs
    /// end.
    fn runs_so_long(&self, kind: KindId, calls_of_run: f64) -> bool {
        let (mut calls, mut ends) = (0, 0);
        let places = self.stretches.with(kind).iter().filter_map(|at| self.stretches.get(*at));
        for stretch in places.filter(|stretch| stretch.opener == kind).take(MOST_CALLS / LONGEST) {
            for pair in stretch.kinds.windows(2) {
                calls += usize::from(pair.first() == Some(&kind));
                ends += usize::from(pair.first() == Some(&kind) && pair.last() != Some(&kind));
            }
        }
        ends as f64 <= MORE_ENDS * calls as f64 / calls_of_run.max(1.0) + FEW_ENDS
    }

    fn score(&self, members: &[Member], tallies: &Map<KindId, Tally>) -> f64 {
        let calls: f64 = tallies.values().map(|tally| tally.calls).sum();
        let of_members: f64 = members.iter().filter_map(|m| Some(tallies.get(&m.kind)?.calls)).sum();
        let (mut price, mut stable) = (0.0, 0.0);
        for member in members {
            let part = (self.price)(member.kind) * member.of_round;
            price += part;
            stable += part * member.stable;
        }
        if price <= 0.0 || calls <= 0.0 {
            return 0.0;
        }
        price * (of_members / calls) * (stable / price).powi(2)
    }
}

fn places(stretch: &Stretch<'_>, kind: KindId) -> Vec<usize> {
    stretch.kinds.iter().enumerate().filter(|(_, other)| **other == kind).map(|(at, _)| at).collect()
}

fn run_at_end(kinds: &[KindId]) -> Option<KindId> {
    let last = *kinds.last()?;
    (kinds.iter().rev().take_while(|kind| **kind == last).count() >= SAME_RUN).then_some(last)
}

fn run_at_begin(kinds: &[KindId]) -> Option<KindId> {
    let first = *kinds.first()?;
    (kinds.iter().take_while(|kind| **kind == first).count() >= SAME_RUN).then_some(first)
}

/// Whether an instance has all that nearly each round has.
pub(super) fn conforms(found: &Anchored, instance: &Instance, stretches: &Stretches<'_>) -> bool {
    let always = found.members.iter().filter(|member| member.share >= NEARLY_ALWAYS);
    always.into_iter().all(|member| instance.kinds(stretches).any(|kind| kind == member.kind))
}
