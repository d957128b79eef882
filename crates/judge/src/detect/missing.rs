//! Detects another question about a name that was just found missing.

use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Seeded, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{Effect, NAME, PATH, Trait};
use crate::world::barrier::Barrier;
use crate::world::bounds::BESIDE;
use crate::world::replay::Step;
use std::hash::BuildHasher;
use systoll_model::Errno;
use systoll_model::constants::O_EXCL;

/// Least number of names asked about more than once for a habit: one name alone may be waited for.
const HABIT: usize = 4;

/// Claims questions about a name that the question right before found missing. A name that does not exist is missing
/// for both kinds of question. A dangling link is missing only if links are followed, so a question that follows
/// links does not answer one that does not.
#[derive(Default)]
pub(super) struct Missing {
    hash: Seeded,
    /// By process: hashes of the names that were asked about in vain more than once, up to [`HABIT`].
    names: Map<u32, Set<u64>>,
}

/// Consecutive questions about one missing name.
struct Vain<'s> {
    path: &'s str,
    /// True if one of the questions did not follow links, so that it would have found a dangling
    /// link.
    no_link: bool,
    /// Index of the first question.
    first: usize,
    newest: usize,
    /// Indices of the claimed questions.
    claimed: Vec<usize>,
}

impl Detector for Missing {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut vain: Option<Vain<'_>> = None;
        // The path that was missing before the step that last let names appear.
        let mut appeared = None;
        for (at, step) in steps.iter().enumerate() {
            if let Some(vain) = vain.as_ref().filter(|v| at - v.newest <= BESIDE + 1 && makes(step, v.path)) {
                vain.claimed.iter().for_each(|index| is_made(claims, *index));
                if !vain.claimed.is_empty() && makes_only(step) {
                    let facts = claim().facts.with(Fact::Made, true);
                    put(claims, vain.first, Claim { weak: true, facts, ..claim() });
                }
            }
            vain = vain.filter(|v| at - v.newest <= BESIDE + 1);
            let before = vain.as_ref().map(|vain| vain.path);
            vain = vain.filter(|_| !step.lets(Barrier::NAMES_APPEAR) || claims.is_off(ReasonId::NameMayAppear));
            appeared = before.filter(|_| vain.is_none()).or(appeared);
            let Some(path) = asked_in_vain(step) else { continue };
            claims.excuse(step.index, ReasonId::NameMayAppear, appeared == Some(path));
            let no_link = step.lines.is(Trait::NotFollows, &step.observed);
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
                None => vain = Some(Vain { path, no_link, first: step.index, newest: at, claimed: Vec::new() }),
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

/// Returns the path of a question whose answer was that the name does not exist.
fn asked_in_vain<'s>(step: &'s Step<'_>) -> Option<&'s str> {
    let asks = step.asks(&PATH) || step.asks(&NAME);
    let missing = step.observed.call.errno() == Some(Errno::ENOENT);
    step.object.as_deref().filter(|_| asks && missing)
}

/// Returns true if the step creates the file at this path.
fn makes(step: &Step<'_>, path: &str) -> bool {
    let opened = step.opened.as_ref().is_some_and(|opened| opened.anew && *opened.path == *path);
    let named = step.object.as_deref() == Some(path);
    let made = step.observed.call.errno().is_none() && named;
    opened || made && step.effects.iter().any(|effect| matches!(effect, Effect::Path { .. }))
}

/// Returns true if a step that makes a file is refused where one stands, so that it answers the question whether it does.
fn makes_only(step: &Step<'_>) -> bool {
    match step.lines.may_open {
        true => step.observed.opening_flags(step.effects).is_some_and(|flags| flags & O_EXCL != 0),
        false => !matches!(step.observed.syscall.name(), Some("rename" | "renameat" | "renameat2")),
    }
}

/// Marks a claim of this detector: the program creates the missing name right afterwards.
fn is_made(claims: &mut Claims, index: usize) {
    if let Some(claim) = claims.get(index).filter(|claim| claim.facts.contains(Fact::Missing)).cloned() {
        let facts = claim.facts.with(Fact::Made, true);
        claims.set(index, Claim { facts, ..claim });
    }
}

/// Replaces a claim that only says that the question was asked before, since this one says more; any other call is
/// claimed only if it is a habit.
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
