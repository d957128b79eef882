//! Detects lookups that always fail: a name that no folder holds, an attribute that no file has.

use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::names::paths::{Parts, PathId};
use crate::results::finding::Kind;
use crate::semantics::{ATTEMPT, Act, Attribute, MAKING, NAME, PATH};
use crate::world::bounds::REMEMBERED;
use crate::world::replay::Step;
use systoll_model::{Errno, Moment, Recording, Sysno};

/// Number of places found without the name or attribute before a miss in another place is claimed.
const SEEN: usize = 32;

/// The name or attribute that a call looks up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Wanted {
    /// An entry of a folder.
    Entry(PathId),
    /// An attribute of a file.
    Attribute(Vec<u8>),
}

/// A lookup: the name or attribute, the folder or file, and true if it was there; `None` if the
/// call does not tell.
type Look = (Wanted, PathId, Option<bool>);

/// Claims lookups of a name or attribute that many places lacked and none had. The claims are weak,
/// since the next place may have it.
pub(super) struct Nowhere {
    /// Processes whose windows show enough misses for one name to be among them often.
    miss: Set<u32>,
    /// By process, call and wanted name or attribute: the places without it; `None` once a place
    /// had it.
    without: Map<(u32, Sysno, Wanted), Option<Vec<PathId>>>,
}

impl Nowhere {
    pub(super) fn new(recording: &Recording) -> Self {
        let mut misses: Map<u32, usize> = Map::default();
        for window in &recording.windows {
            let missed = window.calls.iter().filter(|call| call.errno() == Some(Errno::ENOENT)).count();
            *misses.entry(window.process.0).or_default() += missed;
        }
        let miss = misses.into_iter().filter(|(_, missed)| *missed > SEEN).map(|(process, _)| process);
        Self { miss: miss.collect(), without: Map::default() }
    }

    fn look(&self, step: &Step<'_>) -> Option<Look> {
        attribute(step).or_else(|| entry(step).filter(|_| self.miss.contains(&step.observed.window.process.0)))
    }
}

impl Detector for Nowhere {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            let Some((wanted, place, has)) = self.look(step) else { continue };
            let claim = claim(&wanted);
            let key = (step.who, step.observed.syscall, wanted);
            if self.without.len() >= REMEMBERED && !self.without.contains_key(&key) {
                continue;
            }
            let without = self.without.entry(key).or_insert_with(|| Some(Vec::new()));
            match (has, without.as_mut()) {
                (Some(false), Some(places)) => {
                    if places.len() < SEEN {
                        places.extend(Some(place).filter(|place| !places.contains(place)));
                    } else if !places.contains(&place) {
                        put(claims, step.index, claim);
                    }
                }
                (Some(true), _) => *without = None,
                _ => {}
            }
        }
    }
}

/// Returns true if the step found the name or attribute, false if its error tells that it is
/// absent, and `None` for other errors.
fn outcome(step: &Step<'_>, absent: &[Errno]) -> Option<bool> {
    match step.observed.call.errno() {
        None => Some(true),
        Some(errno) => absent.contains(&errno).then_some(false),
    }
}

/// Returns the lookup of a file's attribute that the step makes.
fn attribute(step: &Step<'_>) -> Option<Look> {
    let line = step.line::<Attribute>()?;
    let name = step.observed.data(line.name, Moment::Entry)?;
    Some((Wanted::Attribute(name.to_vec()), step.object_id?, outcome(step, line.absent)))
}

/// Returns the lookup of a name in a folder that the step makes, by a question or an opening.
fn entry(step: &Step<'_>) -> Option<Look> {
    let is_look = step.meaning.as_ref().is_some_and(|meaning| match meaning.line.act {
        Act::Ask(_) => meaning.line.about.is(&PATH) || meaning.line.about.is(&NAME),
        Act::Try => meaning.line.about.is(&ATTEMPT) || meaning.line.about.is(&MAKING),
        Act::Set { .. } => false,
    });
    let Parts { folder, name, .. } = step.parts.filter(|_| is_look)?;
    Some((Wanted::Entry(name), folder, outcome(step, &[Errno::ENOENT])))
}

fn claim(wanted: &Wanted) -> Claim {
    let of = |facts, about, instead, gives_up| Claim {
        weak: true,
        facts,
        gives_up,
        ..Claim::of(Kind::Failing, about, instead)
    };
    match wanted {
        Wanted::Entry(_) => of(
            Fact::Nowhere.into(),
            "looks in each folder for a name that none holds",
            "take it from the folder's listing where that is read anyway, or say once where such a file may lie",
            "a file of that name that appears meanwhile is not noticed",
        ),
        Wanted::Attribute(_) => of(
            crate::causes::fact::Facts::default(),
            "asks each file for an attribute that none has",
            "ask the file system once, or not at all where the attribute is not shown",
            "an attribute that a file gets meanwhile is not noticed",
        ),
    }
}
