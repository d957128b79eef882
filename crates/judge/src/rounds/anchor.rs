//! Analysis of one kind of call as the anchor, which begins a round: the calls between two of its calls, and how
//! regular they are.

use super::by_thread::ByThread;
use super::crews::{Crew, Lone, crews, lone};
use super::instance::{Instance, LITTLE, LONGEST, MOST_CALLS, OFTEN};
use super::kinds::{KindId, Kinds};
use super::stretches::{Stretch, Stretches, ThreadId};
use crate::collections::hash::{Map, Set};
use std::ops::Range;
use systoll_model::Sysno;
use systoll_model::octaves;

/// Number of times that something is done from which on it is a habit.
pub(super) const LEAST: u64 = 10;
/// Share of the rounds that have a member, 0 to 1, from which on nearly every round has it.
pub(super) const NEARLY_ALWAYS: f64 = 0.95;
/// Largest mean number of runs of a call in the rounds that have it, if not all rounds do: a call with more is a
/// habit of its own between two rounds.
const ONCE: f64 = 1.5;
/// Mean length of a kind's runs, calls, from which on the kind counts as one that is called in runs.
const RUN: f64 = 1.3;
/// Ratio of a kind's calls in rounds, as windows show them, to its exact count, from which on all its calls are taken
/// to be in rounds.
const NEAR: f64 = 0.8;
/// Mean number of runs of a call in a round from which on the call has several positions in it.
const SEVERAL: f64 = 1.5;
/// Least ratio of a smaller count of rounds to a larger one at which both count the same rounds,
/// and some calls are made elsewhere.
const NEARLY_ALL: f64 = 0.9;
/// Smallest part of a kind's calls, 0 to 1, that counts as all of them.
pub(super) const WHOLE: f64 = 1.0 - 1e-9;
/// Factor by which more runs may end in windows than the counts say.
const MORE_ENDS: f64 = 4.0;
/// Number of runs that may end in windows beyond [`MORE_ENDS`] times the number by the counts.
const FEW_ENDS: f64 = 3.0;
/// Number of whole rounds in windows from which on no rounds are joined from pieces of two windows.
const FEW: usize = 3;
/// Length of the equal runs, calls, at the end of one piece and the beginning of another from which on both are
/// pieces of one run.
const SAME_RUN: usize = 4;
/// Largest number of members of a round.
const MOST_MEMBERS: usize = 256;

/// Figures of one kind in a set of instances.
#[derive(Clone, Debug, Default)]
struct Tally {
    /// Weight of the instances that have the kind.
    present: f64,
    /// Number of the kind's calls, weighted by instance.
    calls: f64,
    /// Number of the kind's runs, weighted by instance.
    runs: f64,
    /// Weight of the instances by their numbers of runs.
    by_runs: Vec<(u32, f64)>,
    /// Number of instances that have the kind, and the least and largest number of its calls in one of them.
    seen: (usize, u32, u32),
    /// Numbers of the kind's calls and runs in the current instance.
    here: (u32, u32),
}

/// A kind whose calls are part of the round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) kind: KindId,
    /// Share of the rounds that have the kind, 0 to 1.
    pub(super) share: f64,
    /// Share of the kind's calls that are in these rounds, 0 to 1.
    pub(super) of_round: f64,
    /// Number of the kind's calls in each round, if nearly all rounds have it and all rounds in
    /// windows agree on the number.
    each: Option<u32>,
    /// Share of the rounds that have the usual number of the kind's runs, 0 to 1.
    stable: f64,
}

impl Member {
    /// Returns true if nearly every round has the kind.
    pub(super) fn is_always(&self) -> bool {
        self.share >= NEARLY_ALWAYS
    }

    /// Returns true if at least half of the rounds have the kind.
    pub(super) fn is_usual(&self) -> bool {
        self.share >= 0.5
    }
}

/// The round that an anchor begins.
pub(super) struct Anchored {
    /// The kind that occurs once in each round.
    pub(super) anchor: KindId,
    /// The threads that make the round, if windows show others that call the anchor.
    pub(super) crew: Option<Set<ThreadId>>,
    /// True if these others make more than a few of the anchor's calls.
    pub(super) is_shared: bool,
    pub(super) instances: Vec<Instance>,
    /// The kinds of calls in the round, the anchor first.
    pub(super) members: Vec<Member>,
    /// Number of rounds.
    pub(super) rounds: f64,
    /// True if exact counts tell the number of rounds.
    pub(super) is_counted: bool,
    /// True if a call that each round has comes at several positions in it, so that the round may
    /// in fact be several.
    pub(super) is_several: bool,
    /// Merit of the anchor: the price of the calls that it explains, lowered by how impure and irregular the rounds
    /// are.
    pub(super) score: f64,
}

/// The data by which anchors are compared.
pub(super) struct Scales<'a> {
    pub(super) kinds: &'a Kinds,
    pub(super) stretches: &'a Stretches<'a>,
    pub(super) by_thread: &'a ByThread,
    /// Price of a kind's calls, as a share of the run.
    pub(super) price: &'a dyn Fn(KindId) -> f64,
    /// Share of a kind's calls that is in no round yet, 0 to 1.
    pub(super) left: &'a dyn Fn(KindId) -> f64,
    /// Returns true if a call of a stretch is in a round already.
    pub(super) is_told: &'a dyn Fn(u32, usize) -> bool,
}

impl Scales<'_> {
    /// Returns the rounds that `anchor` begins: one for each kind of threads that call it, at least one.
    pub(super) fn weigh(&self, anchor: KindId) -> Vec<Anchored> {
        let mut instances = self.instances(anchor);
        if instances.len() < FEW {
            instances.extend(self.pieced(anchor));
        }
        let mut crews = crews(self.stretches, anchor, &instances);
        let alone = if crews.is_empty() { Vec::new() } else { lone(self.stretches, anchor, &crews) };
        if crews.len() < 2 && alone.iter().all(|lone| lone.crew.is_some()) {
            self.weights(&mut instances);
            return vec![self.weighed(anchor, instances, None)];
        }
        let made = instances.len();
        let is_told = |lone: &Lone| (self.is_told)(lone.at.0, lone.at.1);
        let alone: Vec<Lone> = alone.into_iter().filter(|lone| !is_told(lone)).collect();
        instances.extend(
            alone
                .iter()
                .map(|Lone { at: (at, place), .. }| Instance { pieces: vec![(*at, *place..place + 1)], weight: 1.0 }),
        );
        self.weights(&mut instances);
        let weight = |all: &[Instance]| all.iter().map(|instance| instance.weight).sum::<f64>();
        let all = weight(&instances);
        let lone_calls = instances.split_off(made);
        let mut of_crews: Vec<Vec<Instance>> = crews.iter().map(|_| Vec::new()).collect();
        for instance in instances {
            let thread = instance.thread(self.stretches).map(|(_, thread)| thread);
            let crew = crews.iter().position(|crew| thread.is_some_and(|thread| crew.threads.contains(&thread)));
            if let Some(of_crew) = crew.and_then(|crew| of_crews.get_mut(crew)) {
                of_crew.push(instance);
            }
        }
        for Lone { at: (at, _), crew } in &alone {
            let crew = crew.and_then(|crew| crews.get_mut(crew));
            crew.into_iter().for_each(|crew| crew.threads.extend(self.stretches.get(*at).map(|at| at.thread)));
        }
        let calls = self.calls_left(anchor);
        let calls_of = |(at, instances): (usize, &Vec<Instance>)| {
            let more = alone.iter().zip(&lone_calls).filter(|(lone, _)| lone.crew == Some(at));
            let weight = weight(instances) + more.map(|(_, call)| call.weight).sum::<f64>();
            let most = self.most_rounds(anchor, &crews, at, instances).unwrap_or(calls);
            (if all > 0.0 { calls * (weight / all).min(1.0) } else { 0.0 }, most)
        };
        let parts: Vec<(f64, f64)> = of_crews.iter().enumerate().map(calls_of).collect();
        let parts = within(&parts).into_iter().map(|of_crew| if calls > 0.0 { of_crew / calls } else { 0.0 });
        let all = crews.into_iter().zip(of_crews).zip(parts);
        let of_crew = |((crew, instances), part): ((Crew, Vec<Instance>), f64)| {
            let part = if part >= 1.0 - LITTLE { 1.0 } else { part };
            self.weighed(anchor, instances, Some((crew.threads, part)))
        };
        all.map(of_crew).collect()
    }

    /// Returns the largest number of rounds that the crew number `at` makes by the exact counts of its threads; `None`
    /// if these are unknown.
    fn most_rounds(&self, anchor: KindId, crews: &[Crew], at: usize, instances: &[Instance]) -> Option<f64> {
        let process = self.kinds.get(anchor)?.process?;
        let crew = crews.get(at)?.threads.len();
        let others = crews.iter().map(|crew| crew.threads.len()).sum::<usize>() - crew;
        let all: f64 = instances.iter().map(|instance| instance.weight).sum();
        let mut each: Map<Sysno, f64> = Map::default();
        for (kind, tally) in self.tallies(instances) {
            if tally.present >= NEARLY_ALWAYS * all {
                *each.entry(self.kinds.get(kind)?.syscall).or_default() += tally.calls / all;
            }
        }
        let most = |(syscall, each): (Sysno, f64)| {
            let calls = self.by_thread.most(process, syscall, crew, others)?;
            (each > 0.0).then(|| calls as f64 / each)
        };
        each.into_iter().filter_map(most).reduce(f64::min)
    }

    /// Returns the round that `anchor` begins in `instances`. `crew` names the threads that make it, and the part of
    /// the anchor's remaining calls that these threads make, 0 to 1, if windows show others that call the anchor.
    fn weighed(&self, anchor: KindId, instances: Vec<Instance>, crew: Option<(Set<ThreadId>, f64)>) -> Anchored {
        let (crew, part) = crew.map_or((None, 1.0), |(threads, part)| (Some(threads), part));
        let is_shared = part < 1.0;
        let all: f64 = instances.iter().map(|instance| instance.weight).sum();
        let tallies = self.tallies(&instances);
        let left = (self.left)(anchor) * part;
        let alone = Member { kind: anchor, share: 1.0, of_round: left, each: Some(1), stable: 1.0 };
        let rounds = self.calls_left(anchor) * part;
        if all <= 0.0 {
            let (score, is_counted) = ((self.price)(anchor) * left, left >= WHOLE);
            let (members, is_several) = (vec![alone], false);
            return Anchored { anchor, crew, is_shared, instances, members, rounds, is_counted, is_several, score };
        }
        let mut members = vec![Member { of_round: rounds, ..alone }];
        let mut others: Vec<KindId> = tallies.keys().copied().filter(|kind| *kind != anchor).collect();
        others.sort_unstable();
        for kind in others {
            let Some(tally) = tallies.get(&kind) else { continue };
            let (seen, runs) = (tally.present / all, tally.runs / all);
            // Windows are dense where calls are rare; the number of rounds with a kind is at most the number of its
            // calls.
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
        self.seen_together(&mut members, &instances);
        let shared = self.shared(anchor, &members, crew.as_ref().filter(|_| is_shared));
        let estimate = rounds;
        let (rounds, is_counted) = self.rounds(&members, rounds, &shared, is_shared);
        if is_shared && estimate > 0.0 {
            members.iter_mut().for_each(|member| member.of_round *= rounds / estimate);
        }
        self.shares_of_calls(&mut members, &tallies, rounds, &shared);
        let score = self.score(&members, &tallies);
        let several = |m: &Member| m.is_always() && tallies.get(&m.kind).is_some_and(|t| t.runs >= SEVERAL * all);
        let is_several = members.iter().any(several);
        Anchored { anchor, crew, is_shared, instances, members, rounds, is_counted, is_several, score }
    }

    /// Returns the number of a kind's calls that are in no round yet.
    fn calls_left(&self, kind: KindId) -> f64 {
        self.kinds.get(kind).map_or(0, |kind| kind.calls) as f64 * (self.left)(kind)
    }

    /// Returns the number of rounds, and true if exact counts tell it. `most`, the anchor's calls, bounds it, since
    /// the anchor may be called outside rounds. So does each member that every round has the same number of times:
    /// its calls divided by that number. The least bound near `most` wins, or the least at all if `most` is an
    /// estimate. The calls of the kinds `shared` are no bound, since other threads make some of them.
    fn rounds(&self, members: &[Member], most: f64, shared: &Set<KindId>, is_estimate: bool) -> (f64, bool) {
        let of = |member: &Member| {
            let each = member.each.filter(|each| *each > 0)?;
            Some(((self.calls_left(member.kind) / f64::from(each)).floor(), (self.left)(member.kind) >= WHOLE))
        };
        let own = |member: &&Member| member.is_always() && !shared.contains(&member.kind);
        let all = members.iter().filter(own).filter_map(of);
        let near = all.filter(|(rounds, _)| is_estimate || *rounds >= NEARLY_ALL * most);
        near.min_by(|(a, _), (b, _)| a.total_cmp(b)).unwrap_or((most, false))
    }

    /// Removes members so that windows of some thread show each two of the others. Of two that no thread shows, the
    /// dearer one stays.
    fn seen_together(&self, members: &mut Vec<Member>, instances: &[Instance]) {
        let mut at: Map<ThreadId, usize> = Map::default();
        let mut threads: Map<KindId, Vec<u64>> = members.iter().map(|member| (member.kind, Vec::new())).collect();
        for instance in instances {
            let Some((_, thread)) = instance.thread(self.stretches) else { continue };
            let next = at.len();
            let at = *at.entry(thread).or_insert(next);
            for kind in instance.kinds(self.stretches) {
                let Some(bits) = threads.get_mut(&kind) else { continue };
                if bits.len() <= at / 64 {
                    bits.resize(at / 64 + 1, 0);
                }
                bits.get_mut(at / 64).into_iter().for_each(|bits| *bits |= 1 << (at % 64));
            }
        }
        if at.len() < 2 {
            return;
        }
        let worth =
            |member: &Member| (self.price)(member.kind) * member.of_round / self.calls_left(member.kind).max(1.0);
        let mut dearest: Vec<Member> = members.iter().skip(1).copied().collect();
        dearest.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then(a.kind.cmp(&b.kind)));
        dearest.truncate(MOST_MEMBERS);
        let together = |one: KindId, other: KindId| {
            let both = threads.get(&one).zip(threads.get(&other));
            both.is_some_and(|(one, other)| one.iter().zip(other).any(|(one, other)| one & other != 0))
        };
        let mut kept: Vec<KindId> = Vec::new();
        for member in dearest {
            if kept.iter().all(|kind| together(*kind, member.kind)) {
                kept.push(member.kind);
            }
        }
        let mut first = true;
        members.retain(|member| std::mem::take(&mut first) || kept.contains(&member.kind));
    }

    /// Returns the members of which other threads than those of the round make more than a few calls. If all threads
    /// that call the anchor make the round, `crew` is `None`.
    fn shared(&self, anchor: KindId, members: &[Member], crew: Option<&Set<ThreadId>>) -> Set<KindId> {
        let of_round = |thread: ThreadId| match crew {
            Some(crew) => crew.contains(&thread),
            None => self.stretches.of_thread(thread).is_some_and(|kinds| kinds.contains(&anchor)),
        };
        let by_others = |member: &&Member| {
            let all = self.stretches.with(member.kind);
            let stretches = all.iter().filter_map(|at| self.stretches.get(*at));
            let others = stretches.filter(|stretch| !of_round(stretch.thread)).count();
            others as f64 > OFTEN * all.len() as f64 || crew.is_some() && others > 0
        };
        members.iter().filter(by_others).map(|member| member.kind).collect()
    }

    /// Returns the calls from each of the anchor's calls to the next, if a window shows both.
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

    /// Returns rounds joined from the end of one window and the beginning of another, if both lie in a run of the
    /// same kind, in one thread or in two that make the calls of both pieces.
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
        let has = |at: u32, (piece, range): &(u32, Range<usize>)| {
            let thread = self.stretches.get(at).and_then(|stretch| self.stretches.of_thread(stretch.thread));
            let kinds = self.stretches.get(*piece).and_then(|stretch| stretch.kinds.get(range.clone()));
            thread.zip(kinds).is_some_and(|(thread, kinds)| kinds.iter().all(|kind| thread.contains(kind)))
        };
        begins
            .into_iter()
            .zip(ends)
            .filter(|((a, _), (b, _))| a == b && *a != anchor)
            .filter(|((_, begin), (_, end))| has(begin.0, end) && has(end.0, begin))
            .map(|((_, begin), (_, end))| Instance { pieces: vec![begin, end], weight: 1.0 })
            .collect()
    }

    /// Sets the instances' weights. Most windows open where a row begins, so each instance has the weight of its
    /// octave's part of the row's calls.
    fn weights(&self, instances: &mut [Instance]) {
        type RowOctave = (u32, u32);
        let place = |instance: &Instance| -> Option<RowOctave> {
            let (at, range) = instance.pieces.first()?;
            let call = self.stretches.get(*at)?.calls.get(range.start)?;
            Some((call.row.0, call.nth.checked_ilog2()?))
        };
        let mut seen: Map<RowOctave, u64> = Map::default();
        instances.iter().filter_map(place).for_each(|place| *seen.entry(place).or_default() += 1);
        let mut by_row: Map<u32, Vec<u32>> = Map::default();
        seen.keys().for_each(|(row, octave)| by_row.entry(*row).or_default().push(*octave));
        let mut sizes: Map<RowOctave, f64> = Map::default();
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

    /// Sets the share of each member's calls that is in these rounds: all, if windows and exact counts agree.
    /// `shared` are the kinds that other threads call too, so that not all calls are in these rounds.
    fn shares_of_calls(&self, members: &mut [Member], tallies: &Map<KindId, Tally>, rounds: f64, shared: &Set<KindId>) {
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
            // A window rather shows short rounds than long ones, so it shows too few calls of a run.
            let is_own = !shared.contains(&member.kind);
            let near = is_own && expected >= NEAR * calls
                || is_own
                    && is_run
                    && self.is_only_among(member.kind, &kinds)
                    && self.runs_so_long(member.kind, calls / rounds);
            member.of_round = left * if near || calls <= 0.0 { 1.0 } else { (expected / calls).min(1.0) };
        }
    }

    /// Returns true if most stretches with calls of a kind hold hardly any calls but those of `members`.
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

    /// Returns true if a kind's runs are as long as counts say. Only windows that its own count opened are used:
    /// others are dense where runs end.
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

/// Returns how many of the anchor's calls each crew makes, by its number in windows and its largest number by exact
/// counts. What windows show too much of one crew is given to the others.
fn within(calls: &[(f64, f64)]) -> Vec<f64> {
    let excess: f64 = calls.iter().map(|(calls, most)| (calls - most).max(0.0)).sum();
    let others: f64 = calls.iter().filter(|(calls, most)| calls < most).map(|(calls, _)| *calls).sum();
    let more = if others > 0.0 { 1.0 + excess / others } else { 1.0 };
    calls.iter().map(|(calls, most)| if calls < most { (calls * more).min(*most) } else { *most }).collect()
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

/// Returns true if an instance has all members that nearly every round has.
pub(super) fn conforms(found: &Anchored, instance: &Instance, stretches: &Stretches<'_>) -> bool {
    let always = found.members.iter().filter(|member| member.share >= NEARLY_ALWAYS);
    always.into_iter().all(|member| instance.kinds(stretches).any(|kind| kind == member.kind))
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn what_windows_show_too_much_of_one_crew_is_of_the_others() {
        assert_eq!(within(&[(60.0, 100.0), (40.0, 100.0)]), [60.0, 40.0]);
        assert_eq!(within(&[(80.0, 30.0), (10.0, 100.0), (10.0, 100.0)]), [30.0, 35.0, 35.0]);
        assert_eq!(within(&[(80.0, 30.0), (20.0, 40.0)]), [30.0, 40.0]);
    }
}
