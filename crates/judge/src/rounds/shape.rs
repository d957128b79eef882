//! The calls of a round in order, with repetitions folded into loops.

use super::anchor::{Anchored, Member};
use super::begin::Turns;
use super::kinds::KindId;
use super::part::{Part, Seen};
use super::stretches::Stretches;
use crate::collections::hash::Map;

/// Largest number of calls in a loop within a round.
const LONGEST_INNER: usize = 8;
/// Largest number of steps of a round.
const MOST_STEPS: usize = 64;

/// Folds repetitions into loops: `a b b b c d c d` becomes `a`, three times `b`, twice `c d`.
fn collapse(kinds: impl Iterator<Item = KindId>) -> Vec<Part> {
    let mut runs: Vec<(KindId, u64)> = Vec::new();
    for kind in kinds {
        match runs.last_mut() {
            Some((last, times)) if *last == kind => *times += 1,
            _ => runs.push((kind, 1)),
        }
    }
    let mut parts = Vec::new();
    let mut rest = runs.as_slice();
    while !rest.is_empty() {
        let (len, times) = (2..=LONGEST_INNER.min(rest.len() / 2))
            .map(|len| (len, repeats(rest, len)))
            .find(|(_, times)| *times > 1)
            .unwrap_or((1, 1));
        let inner = (0..len).map(|at| {
            let mut all = (0..times).filter_map(|time| rest.get(at + time * len));
            let (kind, first) = all.next().copied().unwrap_or((KindId::MAX, 0));
            (kind, all.fold(Seen::once(first), |seen, (_, times)| seen.and(Seen::once(*times), 1.0)))
        });
        parts.push(Part { kinds: inner.collect(), times: Seen::once(times as u64) });
        rest = rest.get(len * times..).unwrap_or_default();
    }
    parts
}

/// Returns how many times the sequence of the first `len` runs is made in a row.
fn repeats(runs: &[(KindId, u64)], len: usize) -> usize {
    let of = |piece: &[(KindId, u64)]| piece.iter().map(|(kind, _)| *kind).collect::<Vec<_>>();
    let Some(first) = runs.get(..len) else { return 0 };
    let first = of(first);
    runs.chunks_exact(len).take_while(|piece| piece.iter().map(|(kind, _)| kind).eq(&first)).count()
}

/// Returns the parts of a round in order, as most instances have them, from where it begins.
pub(super) fn shape(found: &Anchored, turns: Turns<'_>) -> Vec<Part> {
    let stretches = turns.stretches;
    let usual = |kind: &KindId| found.members.iter().any(|m| m.kind == *kind && m.is_usual());
    // Two orders are equal if their kinds are, whatever the numbers of repetitions.
    let mut orders: Map<Vec<Vec<KindId>>, (f64, Vec<Part>)> = Map::default();
    for instance in &found.instances {
        let parts = collapse(instance.kinds(stretches).filter(usual));
        let order: Vec<Vec<KindId>> =
            parts.iter().map(|part| part.kinds.iter().map(|(kind, _)| *kind).collect()).collect();
        match orders.get_mut(&order) {
            None => drop(orders.insert(order, (instance.weight, weighted(parts, instance.weight)))),
            Some((weight, all)) => {
                *weight += instance.weight;
                add(all, &parts, instance.weight);
            }
        }
    }
    let most = orders.into_iter().max_by(|(a, (x, _)), (b, (y, _))| x.total_cmp(y).then_with(|| b.cmp(a)));
    let mut parts = most.map(|(_, (_, parts))| parts).unwrap_or_default();
    if parts.is_empty() {
        parts = vec![Part { kinds: vec![(found.anchor, Seen::once(1))], times: Seen::once(1) }];
    }
    parts.truncate(MOST_STEPS);
    turns.turn(&mut parts, found);
    let now_and_then: Vec<&Member> = found.members.iter().filter(|m| !m.is_usual()).take(MOST_STEPS).collect();
    put_in(&mut parts, &now_and_then, found, stretches);
    parts
}

fn weighted(mut parts: Vec<Part>, weight: f64) -> Vec<Part> {
    let scale = |seen: &mut Seen| *seen = Seen { sum: seen.mean() * weight, weight, ..*seen };
    for part in &mut parts {
        scale(&mut part.times);
        part.kinds.iter_mut().for_each(|(_, seen)| scale(seen));
    }
    parts
}

fn add(all: &mut [Part], parts: &[Part], weight: f64) {
    for (mine, theirs) in all.iter_mut().zip(parts) {
        mine.times = mine.times.and(theirs.times, weight);
        for ((_, mine), (_, theirs)) in mine.kinds.iter_mut().zip(&theirs.kinds) {
            *mine = mine.and(*theirs, weight);
        }
    }
}

/// Puts each member that only some rounds have behind the call that it follows most often.
fn put_in(parts: &mut Vec<Part>, members: &[&Member], found: &Anchored, stretches: &Stretches<'_>) {
    let mut after: Map<(KindId, KindId), f64> = Map::default();
    let mut seen: Map<KindId, Seen> = Map::default();
    // Mean position of a member in the round: members behind the same call are ordered by it.
    let mut places: Map<KindId, (f64, f64)> = Map::default();
    for instance in &found.instances {
        let mut before = found.anchor;
        let mut run: (KindId, u64) = (KindId::MAX, 0);
        let mut close = |run: (KindId, u64)| {
            if run.1 > 0 {
                let one = Seen::once(run.1);
                seen.entry(run.0).and_modify(|s| *s = s.and(one, instance.weight)).or_insert(Seen {
                    sum: one.sum * instance.weight,
                    weight: instance.weight,
                    ..one
                });
            }
        };
        for (at, kind) in instance.kinds(stretches).enumerate() {
            if !members.iter().any(|m| m.kind == kind) {
                if found.members.iter().any(|m| m.kind == kind) {
                    before = kind;
                }
                continue;
            }
            if run.0 == kind {
                run.1 += 1;
            } else {
                close(std::mem::replace(&mut run, (kind, 1)));
                *after.entry((kind, before)).or_default() += instance.weight;
                let place = places.entry(kind).or_default();
                *place = (place.0 + at as f64, place.1 + 1.0);
            }
        }
        close(run);
    }
    let mut in_order: Vec<KindId> = members.iter().map(|m| m.kind).collect();
    let place = |kind: &KindId| places.get(kind).map_or(0.0, |(sum, n)| sum / n);
    in_order.sort_by(|a, b| place(a).total_cmp(&place(b)).then(a.cmp(b)));
    for kind in in_order {
        let Some(seen) = seen.get(&kind) else { continue };
        let follows = after.iter().filter(|((of, _), _)| *of == kind);
        let before = follows.max_by(|(a, x), (b, y)| x.total_cmp(y).then_with(|| b.cmp(a))).map(|((_, b), _)| *b);
        let has = |part: &Part| part.kinds.iter().any(|(k, _)| Some(*k) == before);
        let mut at = parts.iter().rposition(has).map_or(parts.len(), |at| at + 1);
        // Members inserted before stay in front.
        let put = |part: &Part| part.kinds.iter().all(|(k, _)| members.iter().any(|m| m.kind == *k));
        while parts.get(at).is_some_and(put) {
            at += 1;
        }
        parts.insert(at, Part { kinds: vec![(kind, *seen)], times: Seen::once(1) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds of a part, each with the least and largest number of its calls in a row, and the number of times
    /// that the part is made.
    type PartTimes = (Vec<(KindId, u64, u64)>, u64);

    fn told(kinds: &[KindId]) -> Vec<PartTimes> {
        let of = |part: &Part| {
            let kinds = part.kinds.iter().map(|(kind, seen)| (*kind, seen.least, seen.most)).collect();
            (kinds, part.times.most)
        };
        collapse(kinds.iter().copied()).iter().map(of).collect()
    }

    #[test]
    fn what_repeats_is_put_together() {
        assert_eq!(told(&[1, 2, 2, 2, 3]), [(vec![(1, 1, 1)], 1), (vec![(2, 3, 3)], 1), (vec![(3, 1, 1)], 1)]);
        assert_eq!(
            told(&[1, 2, 3, 2, 3, 3, 4]),
            [(vec![(1, 1, 1)], 1), (vec![(2, 1, 1), (3, 1, 2)], 2), (vec![(4, 1, 1)], 1)]
        );
        assert_eq!(told(&[5, 5]), [(vec![(5, 2, 2)], 1)]);
        assert!(told(&[]).is_empty());
    }
}
