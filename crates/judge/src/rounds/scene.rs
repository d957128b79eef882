//! The report of a round, made from an anchor and the calls that follow it.

use super::anchor::{Anchored, LEAST, Member, WHOLE, conforms};
use super::begin::Turns;
use super::kinds::{Kind, KindId, Kinds, waited};
use super::overlap::Overlaps;
use super::part::{Part, Seen};
use super::pattern_of::{data, objects, offsets, option, sizes};
use super::place::common_place;
use super::round::{Round, RoundCall, RoundClaimed, RoundRow, RoundStep, Times};
use super::shape::shape;
use super::stretches::{Stretches, ThreadId};
use crate::collections::hash::{Map, Set};
use crate::collections::sums::Sums;
use crate::results::finding::{Estimate, Finding};
use crate::semantics::Semantics;
use std::cmp::Reverse;
use systoll_model::{Errno, Recording, RowId, WindowCall};

/// Largest number of calls of a kind from which patterns are made.
const LOOKS: usize = 256;
/// Largest number of rows whose stacks are compared.
const PLACES: usize = 16;

/// Returns the part of each row that findings claim.
pub(super) fn claimed(recording: &Recording, findings: &[Finding]) -> Map<RowId, RoundClaimed> {
    let mut claimed: Map<RowId, RoundClaimed> = Map::default();
    for finding in findings {
        for (row, part) in finding.rows.iter().zip(&finding.by_row) {
            let counts = &recording.row(*row).counts;
            let all = claimed.entry(*row).or_default();
            all.calls = all.calls.saturating_add(part.calls).min(counts.calls);
            let toll = recording_toll(recording, *row);
            all.toll_ns = all.toll_ns.saturating_add(part.toll_ns).min(toll);
            if finding.is_about_waiting() {
                let share = part.calls as f64 / counts.calls.max(1) as f64;
                let waited = (waited(recording.row(*row)).unwrap_or(0) as f64 * share.min(1.0)) as u64;
                all.waited_ns = all.waited_ns.max(waited);
            }
        }
    }
    claimed
}

/// Returns the toll of a row's calls, ns.
fn recording_toll(recording: &Recording, row: RowId) -> u64 {
    crate::evidence::phases::toll(recording, recording.row(row)).round() as u64
}

/// Positions of a call in its round.
#[derive(Clone, Copy)]
struct CallPositions {
    /// True if the call has one position in the round, outside loops: exact counts then tell how often it is made.
    whole: bool,
    /// Number of calls in a round at all positions of the call, as windows show them, if it has
    /// several.
    several: Option<f64>,
}

/// The data from which rounds are reported.
pub(super) struct Scene<'a> {
    pub(super) recording: &'a Recording,
    pub(super) kinds: &'a Kinds,
    pub(super) stretches: &'a Stretches<'a>,
    pub(super) claimed: &'a Map<RowId, RoundClaimed>,
    pub(super) semantics: &'a Semantics,
    pub(super) wall_ns: Option<f64>,
    /// The program's own processor time, ns, looked up once, since that reads all rows.
    pub(super) own_cpu_ns: Option<u64>,
}

impl Scene<'_> {
    /// Returns the report of a round; `None` if it is too rare.
    pub(super) fn round(&self, found: &Anchored) -> Option<Round> {
        let anchor = self.kinds.get(found.anchor)?;
        let count = self.count(found, anchor);
        if count.estimate < LEAST {
            return None;
        }
        let turns = Turns { kinds: self.kinds, stretches: self.stretches, semantics: self.semantics };
        let parts = shape(found, turns);
        let steps = parts.iter().map(|part| self.step(part, &parts, found, count.estimate)).collect();
        let rows = self.rows(found);
        let sum = |of: fn(&RoundRow) -> u64| rows.iter().fold(0u64, |sum, row| sum.saturating_add(of(row)));
        let (calls, toll_ns) = (sum(|row| row.calls), sum(|row| row.toll_ns));
        let waited_ns = self.waited(found);
        let agree = found.instances.iter().filter(|i| conforms(found, i, self.stretches)).count() as u64;
        let startup = self.startup_calls(found);
        let own = self.own_cpu_ns.filter(|own| *own > 0);
        Some(Round {
            count,
            steps,
            place: common_place(self.recording, &self.places(found)),
            claimed: self.claimed_of(found),
            calls,
            toll_ns,
            waited_ns,
            share_of_cpu: own.map(|own| (toll_ns as f64 / own as f64).min(1.0)),
            share_of_wall: self.wall_ns.zip(waited_ns).map(|(wall, waited)| (waited as f64 / wall).min(1.0)),
            looked_at: found.instances.len() as u64,
            agree,
            threads: self.threads(found),
            images: self.images(found, anchor),
            are_all_processes: !found.is_shared || anchor.process.is_some(),
            startup: startup as f64 > 0.5 * calls as f64,
            rows,
            is_of_rest: false,
        })
    }

    /// Returns the number of rounds: exact if each call of the anchor begins one.
    fn count(&self, found: &Anchored, anchor: &Kind) -> Estimate {
        let rounds = found.rounds.round() as u64;
        if found.is_counted {
            return Estimate { estimate: rounds, low: rounds, high: rounds };
        }
        let part = found.rounds / anchor.calls.max(1) as f64;
        let windows = self.stretches.with(found.anchor).len().max(1) as f64;
        let unseen = 1.0 - 0.05_f64.powf(1.0 / windows);
        let of = |share: f64| (anchor.calls as f64 * share.clamp(0.0, 1.0)).round() as u64;
        let estimate = of(part).min(anchor.calls);
        let low = of(part - unseen).max(found.instances.len() as u64).min(estimate);
        Estimate { estimate, low, high: of(part + unseen).clamp(estimate, anchor.calls) }
    }

    fn rows(&self, found: &Anchored) -> Vec<RoundRow> {
        let mut rows: Vec<RoundRow> = self
            .parts_of_rows(found)
            .map(|(row, calls, part)| {
                let toll_ns = (recording_toll(self.recording, row) as f64 * part).round() as u64;
                RoundRow { row, calls: (calls as f64 * part).round() as u64, toll_ns }
            })
            .collect();
        rows.sort_by_key(|row| (Reverse((row.toll_ns, row.calls)), row.row));
        rows
    }

    /// Returns the rows of the round, each with its calls and the share of them that is in rounds, 0 to 1.
    fn parts_of_rows(&self, found: &Anchored) -> impl Iterator<Item = (RowId, u64, f64)> {
        let rows = found.members.iter().filter_map(|member| {
            let kind = self.kinds.get(member.kind)?;
            let part = if member.of_round >= WHOLE { 1.0 } else { member.of_round };
            Some(kind.rows.iter().map(move |(row, calls)| (*row, *calls, part)))
        });
        rows.flatten()
    }

    fn waited(&self, found: &Anchored) -> Option<u64> {
        let waited = self.parts_of_rows(found).filter_map(|(row, _, part)| {
            let waited = waited(self.recording.row(row))?;
            Some((waited as f64 * part) as u64)
        });
        waited.reduce(u64::saturating_add)
    }

    fn startup_calls(&self, found: &Anchored) -> u64 {
        let of = |row| crate::evidence::phases::startup_calls(self.recording, self.recording.row(row));
        let startup = |(row, _, part)| (of(row) as f64 * part) as u64;
        self.parts_of_rows(found).map(startup).fold(0, u64::saturating_add)
    }

    fn claimed_of(&self, found: &Anchored) -> RoundClaimed {
        let mut sum = RoundClaimed::default();
        for (row, _, part) in self.parts_of_rows(found) {
            let Some(claimed) = self.claimed.get(&row) else { continue };
            let of = |n: u64| (n as f64 * part) as u64;
            sum.calls = sum.calls.saturating_add(of(claimed.calls));
            sum.toll_ns = sum.toll_ns.saturating_add(of(claimed.toll_ns));
            sum.waited_ns = sum.waited_ns.saturating_add(of(claimed.waited_ns));
        }
        sum
    }

    /// Returns the costliest row of each member that most rounds have, the costliest first.
    fn places(&self, found: &Anchored) -> Vec<RowId> {
        let price = |row: &RowId| {
            let waited = if self.wall_ns.is_some() { waited(self.recording.row(*row)).unwrap_or(0) } else { 0 };
            (recording_toll(self.recording, *row).saturating_add(waited), Reverse(*row))
        };
        let dearest = |member: &Member| self.kinds.get(member.kind)?.rows.iter().map(|(row, _)| *row).max_by_key(price);
        let usual = found.members.iter().filter(|member| member.is_usual());
        let mut rows: Vec<RowId> = usual.filter_map(dearest).collect();
        rows.sort_by_key(|row| Reverse(price(row)));
        rows.truncate(PLACES);
        rows
    }

    fn threads(&self, found: &Anchored) -> u64 {
        let at = self.stretches.with(found.anchor).iter();
        let threads: Set<ThreadId> = at.filter_map(|at| Some(self.stretches.get(*at)?.thread)).collect();
        found.crew.as_ref().map_or(threads.len(), Set::len) as u64
    }

    fn images(&self, found: &Anchored, anchor: &Kind) -> Vec<u32> {
        let of_rows = anchor.rows.iter().map(|(row, _)| self.recording.row(*row).process.0);
        let mut images: Vec<u32> = match found.crew.as_ref().filter(|_| found.is_shared) {
            Some(threads) => threads.iter().map(|(process, _)| *process).collect(),
            None => of_rows.collect(),
        };
        images.sort_unstable();
        images.dedup();
        images
    }

    fn step(&self, part: &Part, all: &[Part], found: &Anchored, rounds: u64) -> RoundStep {
        let whole = part.kinds.len() == 1;
        let call = |(kind, seen): &(KindId, Seen)| {
            let member = found.members.iter().find(|member| member.kind == *kind).copied();
            let places = || all.iter().flat_map(|part| part.kinds.iter().map(move |(k, seen)| (k, seen, part.times)));
            let of_kind: Vec<f64> =
                places().filter(|(k, ..)| *k == kind).map(|(_, seen, times)| seen.mean() * times.mean()).collect();
            let positions = CallPositions {
                whole: whole && of_kind.len() == 1,
                several: (of_kind.len() > 1).then(|| of_kind.iter().sum()),
            };
            self.call(found, (*kind, *seen), member, rounds, positions)
        };
        let mut calls: Vec<RoundCall> = part.kinds.iter().filter_map(call).collect();
        match (calls.len(), calls.pop()) {
            (1, Some(call)) => RoundStep::Call(call),
            (_, last) => RoundStep::Inner { calls: calls.into_iter().chain(last).collect(), times: times(part.times) },
        }
    }

    /// Returns the report of a call of a round.
    fn call(
        &self,
        found: &Anchored,
        (id, seen): (KindId, Seen),
        member: Option<Member>,
        rounds: u64,
        positions: CallPositions,
    ) -> Option<RoundCall> {
        let kind = self.kinds.get(id)?;
        let (mut share, part) = member.map_or((1.0, 1.0), |m| (m.share, m.of_round));
        let calls = (kind.calls as f64 * part).round() as u64;
        let mut times = times(seen);
        let each = calls as f64 / rounds.max(1) as f64;
        // Windows rather show short rounds than long ones, so exact counts correct the mean over all positions of a
        // call.
        let several = positions.several.filter(|sum| *sum > 0.0).map(|sum| each / sum);
        let counted = positions.whole;
        if let Some(factor) = several.filter(|_| part >= WHOLE && times.most > 1) {
            times.mean *= factor;
        } else if counted && part >= WHOLE {
            // Exact counts tell the number of calls: for a member of nearly every round the number in each, for
            // others the number of rounds.
            if member.is_none_or(|m| m.is_always()) && times.most > 1 {
                times.mean = each.max(1.0);
            } else {
                share = (each / times.mean.max(1.0)).min(1.0);
            }
        }
        times.mean = times.mean.max(1.0);
        let looks = self.looks(id, found.crew.as_ref());
        let syscall = kind.syscall;
        let overlaps = Overlaps { kinds: self.kinds, stretches: self.stretches, semantics: self.semantics };
        Some(RoundCall {
            syscall,
            calls,
            share,
            times,
            object: objects(&looks, syscall),
            size: sizes(&looks, syscall),
            offset: offsets(&looks, syscall),
            option: option(&looks, syscall),
            errno: self.errno(kind),
            data: data(&looks, syscall).filter(|_| !overlaps.any_of(id)),
        })
    }

    /// Returns calls of a kind in windows of threads that make the round.
    fn looks(&self, kind: KindId, crew: Option<&Set<ThreadId>>) -> Vec<&WindowCall> {
        let of_stretch = |at: &u32| {
            let stretch = self.stretches.get(*at)?;
            if crew.is_some_and(|crew| !crew.contains(&stretch.thread)) {
                return None;
            }
            Some(stretch.kinds.iter().zip(stretch.calls).filter(move |(k, _)| **k == kind).map(|(_, call)| call))
        };
        self.stretches.with(kind).iter().filter_map(of_stretch).flatten().take(LOOKS).collect()
    }

    /// Returns the errno of more than half of a kind's calls.
    fn errno(&self, kind: &Kind) -> Option<Errno> {
        let errors = kind.rows.iter().flat_map(|(row, _)| &self.recording.row(*row).counts.errors);
        let failed: Map<Errno, u64> = Sums::of(errors.map(|(errno, calls)| (*errno, *calls)));
        failed.into_iter().find(|(_, calls)| *calls > kind.calls / 2).map(|(errno, _)| errno)
    }
}

fn times(seen: Seen) -> Times {
    Times { least: seen.least, most: seen.most, mean: seen.mean() }
}
