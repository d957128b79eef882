//! Detects sets that cancel each other, again and again (inverse pairs).

use super::claim::{Claims, Detector, about_state, leave_out_later, put};
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::{Act, Key, POSITION};
use crate::signs::Signs;
use std::ops::Range;

/// Largest number of sets within which a value must return.
const LONGEST_PERIOD: usize = 8;
/// Least number of whole periods for a toggle: fewer can be chance.
const PERIODS: usize = 3;

/// Claims sets that return to an earlier value. If a run goes back to the window's start, its first set may have been
/// needed, or any of the others: it is left out.
pub(super) struct Toggle;

impl Detector for Toggle {
    fn looks_for(&self) -> Signs {
        Signs::SETS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        // The shortest toggle needs this many sets.
        if steps.iter().filter(|step| step.signs.any(Signs::SETS)).count() < 2 * PERIODS {
            return;
        }
        let mut histories: Map<&Key, History<'_>> = Map::default();
        let mut done: Vec<History<'_>> = Vec::new();
        // The newest set of each descriptor's position.
        let mut places: Map<i32, &Key> = Map::default();
        let mut forked = steps.len();
        for (at, step) in steps.iter().enumerate() {
            if step.forks {
                // A program that changes state around a fork has a reason to undo it.
                done.extend(histories.drain().map(|(_, h)| h));
                forked = forked.min(at);
            }
            // A position that is then read or written at was needed.
            if let Some(fd) = step.moved.filter(|m| m.line.at.is_none()).and_then(|m| m.fd)
                && let Some(history) = places.remove(&fd).and_then(|place| histories.get_mut(place))
            {
                history.pop();
            }
            let Some(meaning) = &step.meaning else { continue };
            let Act::Set { .. } = meaning.line.act else { continue };
            if meaning.changes_nothing || meaning.known_already() {
                continue;
            }
            // A set with an unknown result still equals another one with the same operand.
            if let Some(value) = meaning.now.as_deref().or(meaning.operand.as_deref()) {
                histories.entry(&meaning.key).or_default().push((at, value));
                if meaning.line.about.is(&POSITION) {
                    places.insert(step.observed.descriptor(0), &meaning.key);
                }
            }
        }
        done.extend(histories.into_values());
        for history in &done {
            let run = periodic(history, steps);
            let begins =
                history.first().and_then(|(at, _)| steps.get(*at)).filter(|_| !run.is_empty() && run.start == 0);
            let cut = |step: &&Step<'_>| step.index < forked && step.meaning.as_ref().is_some_and(|m| m.from_before);
            if let Some(step) = begins.filter(cut) {
                leave_out_later(step, claims);
            }
            for (at, _) in history.get(run).unwrap_or_default().iter().skip(1) {
                if let Some(step) = steps.get(*at)
                    && let Some(claim) = about_state(Kind::Toggle, step, claims)
                {
                    put(claims, step.index, claim);
                }
            }
        }
    }
}

/// The values of a piece of state, each with the index of the step that set it.
type History<'s> = Vec<(usize, &'s [u8])>;

/// Returns the range of the longest periodic run in the history.
fn periodic(history: &History<'_>, steps: &[Step<'_>]) -> Range<usize> {
    let strict =
        history.first().and_then(|(at, _)| steps.get(*at)?.meaning.as_ref()).is_some_and(|m| m.line.about.strict);
    let longest = if strict { 2 } else { LONGEST_PERIOD };
    let mut best = 0..0;
    for period in 2..=longest {
        let mut start = 0;
        for at in 0..history.len() {
            let same = at < start + period || history.get(at).map(|h| h.1) == history.get(at - period).map(|h| h.1);
            if !same {
                start = at + 1 - period.min(at);
            }
            let run = start..at + 1;
            if run.len() >= PERIODS * period && run.len() > best.len() && alternates(history, &run) {
                best = run;
            }
        }
    }
    best
}

fn alternates(history: &History<'_>, run: &Range<usize>) -> bool {
    let run = history.get(run.clone()).unwrap_or_default();
    run.windows(2).any(|pair| matches!(pair, [a, b] if a.1 != b.1))
}
