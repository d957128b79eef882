//! Detects settings of a descriptor that the next one overwrites before anything used them (dead stores).

use super::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::{Meaning, Step};
use crate::semantics::{Act, Key, SOCKET_OPTION, State};
use crate::signs::Signs;

/// Least number of settings overwritten in a window for a habit.
const OVERWRITTEN: usize = 3;

/// Kinds of state that have no effect until a call uses the descriptor. Flags and positions have claims by their
/// values.
static IDLE: [&State; 1] = [&SOCKET_OPTION];

/// Claims settings of such state if no call on the descriptor used it before the next setting.
pub(super) struct Superseded;

/// The newest setting of a piece of state, and the settings before it that were overwritten.
struct Newest {
    at: usize,
    fd: i32,
    overwritten: Vec<usize>,
}

impl Detector for Superseded {
    fn looks_for(&self) -> Signs {
        Signs::SETS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        if steps.iter().filter(|step| step.signs.any(Signs::SETS)).count() <= OVERWRITTEN {
            return;
        }
        let mut newest: Map<Key, Newest> = Map::default();
        for (at, step) in steps.iter().enumerate() {
            let set = step.meaning.as_ref().filter(|meaning| is_idle_set(meaning));
            if set.is_none() && !step.meaning.as_ref().is_some_and(is_question) {
                // A call that waits or makes a child may use any descriptor.
                let any = step.forks || step.pauses || step.lines.fd.is_none() && !step.lines.say_anything();
                let own = step.lines.fd.and_then(|arg| u8::try_from(arg).ok()).map(|arg| step.observed.descriptor(arg));
                for key in used(&newest, any, own, step) {
                    newest.remove(&key).into_iter().for_each(|of| of.claim(false, steps, claims));
                }
            }
            let Some(meaning) = set else { continue };
            let fd = step.observed.descriptor(0);
            let new = newest.entry(meaning.key).or_insert(Newest { at, fd, overwritten: Vec::new() });
            if new.at != at {
                // A set to the same value is claimed by another detector.
                new.overwritten.push(new.at);
                new.at = at;
            }
        }
        newest.into_values().for_each(|of| of.claim(true, steps, claims));
    }
}

/// Returns the state whose descriptors a step may use.
fn used(newest: &Map<Key, Newest>, any: bool, own: Option<i32>, step: &Step<'_>) -> Vec<Key> {
    let uses = |of: &Newest| any || own == Some(of.fd) || step.lets_go(of.fd) || step.seeks(of.fd);
    newest.iter().filter(|(_, of)| uses(of)).map(|(key, _)| *key).collect()
}

fn is_idle_set(meaning: &Meaning<'_>) -> bool {
    matches!(meaning.line.act, Act::Set { .. }) && IDLE.iter().any(|state| meaning.line.about.is(state))
}

/// Returns true if the call asks for such state, which does not use it.
fn is_question(meaning: &Meaning<'_>) -> bool {
    matches!(meaning.line.act, Act::Ask(_)) && IDLE.iter().any(|state| meaning.line.about.is(state))
}

impl Newest {
    fn claim(self, cut: bool, steps: &[Step<'_>], claims: &mut Claims) {
        if self.overwritten.len() < OVERWRITTEN {
            return;
        }
        for step in self.overwritten.iter().filter_map(|at| steps.get(*at)) {
            put(claims, step.index, claim());
        }
        // The window ends before it shows whether its last setting is overwritten too: leave it out.
        if let Some(step) = steps.get(self.at).filter(|_| cut) {
            leave_out_later(step, claims);
        }
    }
}

fn claim() -> Claim {
    Claim::of(
        Kind::SlowPath,
        "sets what the next call sets to something else, with nothing in between that uses it",
        "set it once, to what it is to be",
    )
}
