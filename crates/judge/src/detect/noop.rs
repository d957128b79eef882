//! Detects sets of state to the value that it has (redundant stores).

use super::mapped::{File, Writers};
use super::renamed::{folder, is_path, names};
use crate::causes::fact::Fact;
use crate::collections::hash::Set;
use crate::evidence::claim::{Claims, Detector, about_state, leave_out_later, put};
use crate::results::finding::Kind;
use crate::semantics::{Act, Effect, SYNCED, State, Undone, Way};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use std::sync::Arc;

/// Claims sets that change nothing.
pub(super) struct NoOp<'a> {
    pub(super) writers: &'a Writers,
    pub(super) mapped: &'a Set<File>,
    /// Processes with several threads.
    pub(super) threaded: &'a Set<u32>,
}

impl NoOp<'_> {
    /// Returns whether something can have been written to the file since it was brought to the disk: the program writes it
    /// by calls, and between the two this thread made one, or let another thread do so. Follows the file through other
    /// names and descriptors.
    fn since_synced(&self, step: &Step<'_>, steps: &[Step<'_>]) -> Since {
        let process = step.observed.window.process.0;
        let Some(file) = step.observed.call.fd.as_ref().filter(|file| file.starts_with('/')) else {
            return Since::Written;
        };
        if steps.iter().any(|s| s.lines.maps()) {
            return Since::Written;
        }
        let mut name: Arc<str> = file.clone();
        let mut is_renamed = false;
        let is_written = |name: &Arc<str>| {
            let file = (process, name.clone());
            self.writers.contains_key(&file) && !self.mapped.contains(&file)
        };
        for before in steps.get(..step.index).unwrap_or_default().iter().rev() {
            let fd = before.observed.call.fd.as_ref();
            let syncs = before.is_about(&SYNCED);
            if syncs && fd == Some(&name) {
                let clean = is_written(file) || is_written(&name);
                return if clean { Since::Clean { is_renamed } } else { Since::Written };
            }
            let is_of = |path: &str| is_path(path, &name);
            let writes = before.moved.is_some_and(|m| m.line.way == Way::Out)
                || before.effects.iter().any(|effect| matches!(effect, Effect::Writes(_)));
            let truncates = before.opened.as_ref().is_some_and(|opened| opened.anew && is_of(&opened.path));
            if before.lets(Barrier::FORKED)
                || before.lets(Barrier::PAUSED) && self.threaded.contains(&process)
                || writes && fd.is_none_or(|other| *other == name)
                || truncates
            {
                return Since::Written;
            }
            if let Some([from, _]) = names(before).filter(|[_, to]| is_of(to)) {
                // A relative name is that of an entry of a folder on the same way.
                name = if from.starts_with('/') { from.into() } else { [folder(&name), "/", &from].concat().into() };
                is_renamed = true;
            }
        }
        if is_renamed { Since::Unknown } else { Since::Written }
    }
}

/// Says whether the program wrote to a file since it was last brought to the disk.
enum Since {
    /// It may have written to it.
    Written,
    /// It wrote nothing to it.
    Clean {
        /// True if it gave the file another name.
        is_renamed: bool,
    },
    /// It gave the file another name, and the window does not show the calls before that.
    Unknown,
}

impl Detector for NoOp<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            let Some(meaning) = step.meaning.as_ref().filter(|meaning| matches!(meaning.line.act, Act::Set { .. }))
            else {
                continue;
            };
            let is_known = meaning.changes_nothing || meaning.known_already();
            if meaning.line.about.is(&SYNCED) {
                self.synced(step, is_known, steps, claims);
            } else if is_known && let Some(mut claim) = about_state(kind_of(meaning.line.about), step, claims) {
                if meaning.line.about.undone == Undone::Unseen {
                    claim.instead = Some("keep it for a while: give back what has not been used for seconds");
                }
                put(claims, step.index, claim);
            }
        }
    }
}

impl NoOp<'_> {
    /// Claims bringing a file to the disk that the program has not written to since. `is_known` is true if no call through
    /// the same descriptor wrote since.
    fn synced(&self, step: &Step<'_>, is_known: bool, steps: &[Step<'_>], claims: &mut Claims) {
        // What other threads write meanwhile, this thread's windows do not show.
        let observed = &step.observed;
        let writers =
            observed.call.fd.as_ref().and_then(|file| self.writers.get(&(observed.window.process.0, file.clone())));
        if writers.is_some_and(|threads| threads.iter().any(|thread| *thread != observed.window.thread)) {
            return;
        }
        let since = self.since_synced(step, steps);
        let (is_clean, is_renamed) = match since {
            Since::Unknown => return leave_out_later(step, claims),
            Since::Written if !is_known => return,
            Since::Written => (false, false),
            Since::Clean { is_renamed } => (true, is_renamed),
        };
        let Some(mut claim) = about_state(Kind::NoOp, step, claims) else { return };
        claim.facts = claim.facts.with(Fact::Renamed, is_renamed);
        claim.weak = !is_clean || is_renamed;
        // The call that brings the new name to the disk waits for what this call waits for.
        claim.by_wait = !is_renamed && step.observed.call.waited_ns.is_some_and(|ns| ns > 0);
        claim.gives_up = match is_renamed {
            true => {
                "on some file systems the call brings the file's new name to the disk too: fsync of the folder does so on all"
            }
            false => "the time of the last change may reach the disk later",
        };
        put(claims, step.index, claim);
    }
}

/// Returns the kind of a claim on a set that changes nothing: a toggle if windows can't show what
/// undoes such state.
fn kind_of(state: &State) -> Kind {
    if state.undone == Undone::Unseen { Kind::Toggle } else { Kind::NoOp }
}
