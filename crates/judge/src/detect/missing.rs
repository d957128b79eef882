//! A name that was just found missing is asked about once more.

use super::claim::{Claim, Claims, Detector, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::{Map, Seeded, Set};
use crate::replay::Step;
use crate::semantics::{Act, Effect, NAME, PATH};
use crate::signs::Signs;
use std::hash::BuildHasher;
use systoll_model::Errno;

/// Other calls between two questions that still belong together.
const NEAR: usize = 2;
/// Names asked about more than once that make a habit: one name may be waited for.
const HABIT: usize = 4;

/// Claims questions about a name that the question right before found missing. What is not there, followed or not,
/// is there in no other way; what leads nowhere may still be a link, so that a question that follows links answers
/// none that does not.
#[derive(Default)]
pub(super) struct Missing {
    hash: Seeded,
    /// By process: names that were asked about in vain more than once, up to a habit.
    names: Map<u32, Set<u64>>,
}

/// Questions in a row about one missing name.
struct Vain<'s> {
    path: &'s str,
    /// Whether one of them would have found a link that leads nowhere.
    no_link: bool,
    newest: usize,
    /// Places of those that are claimed.
    claimed: Vec<usize>,
}

impl Detector for Missing {
    fn looks_for(&self) -> Signs {
        Signs::MISSING
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut vain: Option<Vain<'_>> = None;
        for (at, step) in steps.iter().enumerate() {
            if let Some(vain) = vain.as_ref().filter(|v| at - v.newest <= NEAR + 1 && makes(step, v.path)) {
                vain.claimed.iter().for_each(|index| is_made(claims, *index));
            }
            vain = vain.filter(|v| at - v.newest <= NEAR + 1 && !may_appear(step));
            let Some(path) = asked_in_vain(step) else { continue };
            let no_link = step.lines.no_follow(&step.observed);
            match vain.as_mut().filter(|v| v.path == path) {
                Some(known) => {
                    if known.no_link || !no_link {
                        let habit = self.is_habit(step, path);
                        put_over(claims, step.index, habit);
                        known.claimed.push(step.index);
                    }
                    known.no_link |= no_link;
                    known.newest = at;
                }
                None => vain = Some(Vain { path, no_link, newest: at, claimed: Vec::new() }),
            }
        }
    }
}

impl Missing {
    fn is_habit(&mut self, step: &Step<'_>, path: &str) -> bool {
        let names = self.names.entry(step.who).or_default();
        if names.len() < HABIT {
            names.insert(self.hash.hash_one(path));
        }
        names.len() >= HABIT
    }
}

/// The path of a question that was answered by that nothing is there.
fn asked_in_vain<'s>(step: &'s Step<'_>) -> Option<&'s str> {
    let meaning = step.meaning.as_ref()?;
    let asks =
        matches!(meaning.line.act, Act::Ask(_)) && (meaning.line.about.is(&PATH) || meaning.line.about.is(&NAME));
    let missing = step.observed.call.errno() == Some(Errno::ENOENT);
    step.object.as_deref().filter(|_| asks && missing)
}

/// Whether something may be where nothing was: made by the program, or by others while it waited.
fn may_appear(step: &Step<'_>) -> bool {
    let makes = |effect| matches!(effect, Effect::Path { .. } | Effect::WorkingDirectory | Effect::Forks);
    step.pauses || step.look.is_some_and(|look| look.sleeps) || step.effects.iter().any(makes)
}

/// Whether the step makes what is at this path.
fn makes(step: &Step<'_>, path: &str) -> bool {
    let opened = step.opened.as_ref().is_some_and(|opened| opened.anew && *opened.path == *path);
    let named = step.object.as_deref() == Some(path);
    let made = step.observed.call.errno().is_none() && named;
    opened || made && step.effects.iter().any(|effect| matches!(effect, Effect::Path { .. }))
}

/// Notes on a claim of this detector that what was missing is made right after.
fn is_made(claims: &mut Claims, index: usize) {
    if let Some(claim) = claims.get(index).filter(|claim| claim.facts.contains(Fact::Missing)).cloned() {
        let facts = claim.facts.with(Fact::Made, true);
        claims.set(index, Claim { facts, ..claim });
    }
}

/// It tells more than that the same was asked before, which needs no habit.
fn put_over(claims: &mut Claims, index: usize, habit: bool) {
    match claims.get(index) {
        Some(old) if old.kind == Kind::Repeat => claims.set(index, claim()),
        _ if habit => put(claims, index, claim()),
        _ => {}
    }
}

fn claim() -> Claim {
    Claim {
        facts: Fact::Missing.into(),
        gives_up: "a file that somebody makes within that moment is noticed by the call that makes it, not before",
        ..Claim::of(Kind::Repeat, "names that were just found missing", "keep the answer until the file is made")
    }
}
