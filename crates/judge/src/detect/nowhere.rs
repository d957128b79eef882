//! Detects a name that is looked for in folder after folder and that none of them holds.

use super::claim::{Claim, Claims, Detector, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::{Map, Set};
use crate::paths::{Parts, PathId};
use crate::replay::Step;
use crate::semantics::{ATTEMPT, Act, NAME, PATH};
use crate::signs::Signs;
use systoll_model::{Errno, Recording, Sysno};

/// Number of folders without the name from which on a look in another folder is claimed.
const SEEN: usize = 32;
/// Largest number of names remembered.
const REMEMBERED: usize = 1 << 14;

/// Claims looks for a name that many folders lack and none was seen to hold. The claim is weak: the next folder may
/// have it.
pub(super) struct Nowhere {
    /// Processes whose windows show enough misses for one name to be among them often.
    miss: Set<u32>,
    /// By process, call and name: the folders without it; `None` once a folder has it.
    without: Map<(u32, Sysno, PathId), Option<Vec<PathId>>>,
}

impl Nowhere {
    /// Returns true if a process has enough misses.
    pub(super) fn misses(&self) -> bool {
        !self.miss.is_empty()
    }

    pub(super) fn new(recording: &Recording) -> Self {
        let mut misses: Map<u32, usize> = Map::default();
        for window in &recording.windows {
            let missed = window.calls.iter().filter(|call| call.errno() == Some(Errno::ENOENT)).count();
            *misses.entry(window.process.0).or_default() += missed;
        }
        let miss = misses.into_iter().filter(|(_, missed)| *missed > SEEN).map(|(process, _)| process);
        Self { miss: miss.collect(), without: Map::default() }
    }
}

impl Detector for Nowhere {
    fn looks_for(&self) -> Signs {
        if self.misses() { Signs::PATH } else { Signs::NONE }
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        if steps.first().is_none_or(|step| !self.miss.contains(&step.observed.window.process.0)) {
            return;
        }
        for step in steps.iter().filter(|step| step.signs.any(Signs::PATH)) {
            let Some(Parts { folder, name, .. }) = step.parts.filter(|_| is_look(step)) else { continue };
            let key = (step.who, step.observed.syscall, name);
            if self.without.len() >= REMEMBERED && !self.without.contains_key(&key) {
                continue;
            }
            let without = self.without.entry(key).or_insert_with(|| Some(Vec::new()));
            match (step.observed.call.errno(), without.as_mut()) {
                (Some(Errno::ENOENT), Some(folders)) => {
                    if folders.len() < SEEN {
                        folders.extend(Some(folder).filter(|folder| !folders.contains(folder)));
                    } else if !folders.contains(&folder) {
                        put(claims, step.index, claim());
                    }
                }
                (None, _) => *without = None,
                _ => {}
            }
        }
    }
}

/// Returns true if the step asks about a path or opens it.
fn is_look(step: &Step<'_>) -> bool {
    step.meaning.as_ref().is_some_and(|meaning| match meaning.line.act {
        Act::Ask(_) => meaning.line.about.is(&PATH) || meaning.line.about.is(&NAME),
        Act::Try => meaning.line.about.is(&ATTEMPT),
        Act::Set { .. } => false,
    })
}

fn claim() -> Claim {
    Claim {
        weak: true,
        facts: Fact::Nowhere.into(),
        gives_up: "a file of that name that appears meanwhile is not noticed",
        ..Claim::of(
            Kind::Failing,
            "looks in each folder for a name that none holds",
            "take it from the folder's listing where that is read anyway, or say once where such a file may lie",
        )
    }
}
