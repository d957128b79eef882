//! Detects sets of state to the value that it has (redundant stores).

use super::claim::{Claims, Detector, about_state, put};
use super::mapped::File;
use crate::finding::Kind;
use crate::hash::Set;
use crate::replay::Step;
use crate::semantics::{Act, Lines, SYNCED, Semantics, State, Undone, Way};
use crate::signs::Signs;
use systoll_model::Recording;

/// Claims sets that change nothing.
pub(super) struct NoOp {
    /// Files, by process, that windows show the process write to by calls and not map.
    written: Set<File>,
    /// Processes with one thread.
    single: Set<u32>,
}

impl NoOp {
    pub(super) fn new(recording: &Recording, semantics: &Semantics, mapped: &Set<File>) -> Self {
        let mut written = Set::default();
        if recording.rows.iter().any(|row| semantics.lines_of(row.syscall).sets(&SYNCED)) {
            let writes = semantics.calls_in_windows(recording, Lines::transfers_out).map(|o| (o.window, o.call));
            for (window, call) in writes.filter(|(_, call)| call.errno().is_none()) {
                let file = call.fd.as_ref().filter(|file| file.starts_with('/'));
                written.extend(file.map(|file| (window.process.0, file.clone())));
            }
            written.retain(|file| !mapped.contains(file));
        }
        let single = (0u32..).zip(&recording.processes).filter(|(_, process)| process.threads <= 1);
        Self { written, single: single.map(|(at, _)| at).collect() }
    }

    /// Returns true if nothing can have been written to the file since it was brought to the disk: the program writes
    /// it by calls, and between the two it made no call that writes to the file, nor let another thread do so.
    fn is_clean(&self, step: &Step<'_>, steps: &[Step<'_>]) -> bool {
        let process = step.observed.window.process.0;
        let Some(file) = step.observed.call.fd.as_ref() else { return false };
        let fd = step.observed.descriptor(0);
        let syncs = |s: &Step<'_>| {
            s.meaning.as_ref().is_some_and(|m| m.line.about.is(&SYNCED)) && s.observed.descriptor(0) == fd
        };
        let before = steps.get(..step.index).unwrap_or_default();
        let Some(synced) = before.iter().rposition(syncs) else { return false };
        let writes = |s: &Step<'_>| {
            s.moved.is_some_and(|m| m.line.way == Way::Out)
                && s.observed.call.fd.as_ref().is_none_or(|other| other == file)
        };
        let quiet = |s: &Step<'_>| !s.forks && !writes(s) && (!s.pauses || self.single.contains(&process));
        self.written.contains(&(process, file.clone()))
            && before.get(synced + 1..).unwrap_or_default().iter().all(quiet)
            && !steps.iter().any(|s| s.lines.maps())
    }
}

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
                    claim.weak = !self.is_clean(step, steps);
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
