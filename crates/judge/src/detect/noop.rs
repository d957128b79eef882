//! Detects sets of state to the value that it has (redundant stores).

use super::claim::{Claims, Detector, about_state, put};
use crate::finding::Kind;
use crate::replay::Step;
use crate::semantics::{Act, SYNCED, State, Undone, Way};
use crate::signs::Signs;

/// Claims sets that change nothing.
pub(super) struct NoOp;

impl Detector for NoOp {
    fn looks_for(&self) -> Signs {
        Signs::SETS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            let Some(meaning) = &step.meaning else { continue };
            if matches!(meaning.line.act, Act::Set { .. })
                && (meaning.changes_nothing || meaning.known_already())
                && let Some(mut claim) = about_state(kind_of(meaning.line.about), step, claims)
            {
                if meaning.line.about.undone == Undone::Unseen {
                    claim.instead = Some("keep it for a while: give back what has not been used for seconds");
                }
                if meaning.line.about.is(&SYNCED) {
                    claim.weak = !is_clean(step, steps);
                    claim.by_wait = step.observed.call.waited_ns.is_some_and(|ns| ns > 0);
                    claim.gives_up = "the time of the last change may reach the disk later";
                }
                put(claims, step.index, claim);
            }
        }
    }
}

/// Returns the kind of a claim on a set that changes nothing: a toggle if windows can't show what
/// undoes such state.
fn kind_of(state: &State) -> Kind {
    if state.undone == Undone::Unseen { Kind::Toggle } else { Kind::NoOp }
}

/// Returns true if nothing can have been written to the file since it was brought to the disk: the program wrote it
/// itself, and between the two calls it neither waited for anyone nor made a call about the file.
fn is_clean(step: &Step<'_>, steps: &[Step<'_>]) -> bool {
    let fd = step.observed.descriptor(0);
    let about = |s: &Step<'_>| s.lines.fd == Some(0) && s.observed.descriptor(0) == fd;
    let syncs = |s: &Step<'_>| s.meaning.as_ref().is_some_and(|m| m.line.about.is(&SYNCED)) && about(s);
    let before = steps.get(..step.index).unwrap_or_default();
    let Some(synced) = before.iter().rposition(syncs) else { return false };
    let (written, between) = before.split_at(synced);
    let writes = |s: &Step<'_>| about(s) && s.moved.is_some_and(|m| m.line.way == Way::Out && m.got.is_some());
    let quiet = |s: &Step<'_>| !s.forks && !s.pauses && s.moved.is_none();
    written.iter().any(writes) && between.iter().skip(1).all(quiet) && !steps.iter().any(|s| s.lines.maps())
}
