//! Same question, same answer.

use super::{Claims, Detector, put, topical};
use crate::Kind;
use crate::replay::Step;
use crate::semantics::{Act, NAME, PATH};

/// A path asked about and opened within so many calls belongs to the opening, which may have
/// good reason to come again.
const NEAR: usize = 4;

/// Claims questions whose answer was known.
pub(super) struct Repeat;

impl Detector for Repeat {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut walk: Vec<usize> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            if !extends(&walk, steps, step) {
                finish(&mut walk, steps, claims);
            }
            if chained(step) {
                walk.push(at);
            } else if asked_before(step)
                && let Some(claim) = topical(Kind::Repeat, step)
            {
                put(claims, step.index, claim);
            }
            if let Some(opened) = &step.opened {
                weaken(steps, at, opened, claims);
            }
        }
        // A walk that the window's end cuts short may not have come to its end.
    }
}

fn asked_before(step: &Step<'_>) -> bool {
    step.meaning.as_ref().is_some_and(|m| matches!(m.entry.act, Act::Ask(_)) && m.known_already())
}

fn chained(step: &Step<'_>) -> bool {
    step.meaning.as_ref().is_some_and(|m| m.entry.chain)
}

/// Whether the step goes on down the path that the walk is on.
fn extends(walk: &[usize], steps: &[Step<'_>], step: &Step<'_>) -> bool {
    let Some(last) = walk.last().and_then(|at| steps.get(*at)) else { return false };
    let (Some(from), Some(to)) = (&last.object, &step.object) else { return false };
    chained(step) && to.strip_prefix(from.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// A walk is claimed only if its end was asked for before: walks to different ends share their
/// beginning for good reason.
fn finish(walk: &mut Vec<usize>, steps: &[Step<'_>], claims: &mut Claims) {
    let walked = || walk.iter().filter_map(|at| steps.get(*at));
    if walked().next_back().is_some_and(asked_before) {
        for step in walked().filter(|s| asked_before(s)) {
            if let Some(claim) = topical(Kind::Repeat, step) {
                put(claims, step.index, claim);
            }
        }
    }
    walk.clear();
}

fn weaken(steps: &[Step<'_>], at: usize, opened: &str, claims: &mut Claims) {
    for step in steps.get(at.saturating_sub(NEAR)..at).unwrap_or_default() {
        let about_path = step.meaning.as_ref().is_some_and(|m| [PATH.name, NAME.name].contains(&m.entry.about.name));
        if about_path
            && step.object.as_deref() == Some(opened)
            && let Some(Some(claim)) = claims.get_mut(step.index)
        {
            claim.weak = true;
        }
    }
}
