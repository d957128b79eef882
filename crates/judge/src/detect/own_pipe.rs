//! Finds claims about pipes that a process fills and then reads itself, as a shell does for each here-string.

use crate::causes::fact::Fact;
use crate::collections::hash::Set;
use crate::evidence::claim::{Claim, Claims, Detector};
use crate::semantics::{Lines, PIPES, Semantics, Way};
use crate::world::replay::Step;
use systoll_model::Recording;

/// Adds [`Fact::OwnPipe`] to claims of the detectors before it.
pub(super) struct OwnPipe {
    /// Processes that windows show to read a pipe which they have written to.
    own: Set<u32>,
}

impl OwnPipe {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let mut own = Set::default();
        for window in &recording.windows {
            let mut written: Set<&str> = Set::default();
            for call in &window.calls {
                let lines: &Lines = semantics.lines_of(recording.row(call.row).syscall);
                let Some(name) = call.fd.as_deref().filter(|name| name.starts_with(PIPES)) else { continue };
                if lines.transfers_out() {
                    written.insert(name);
                } else if written.contains(name) {
                    own.insert(window.process.0);
                }
            }
        }
        Self { own }
    }
}

impl Detector for OwnPipe {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        if !steps.first().is_some_and(|step| self.own.contains(&step.observed.window.process.0)) {
            return;
        }
        let pipe = |step: &Step<'_>| {
            step.observed.call.fd.as_deref().filter(|name| name.starts_with(PIPES)).map(str::to_owned)
        };
        let takes = |step: &Step<'_>, way: Way| step.moved.is_some_and(|moved| moved.line.way == way);
        let mut written: Set<String> = Set::default();
        // The window does not show the filling of the pipe that is being read as it begins.
        let first = steps.iter().position(|step| takes(step, Way::Out) && pipe(step).is_some()).unwrap_or(steps.len());
        written.extend(steps.iter().take(first).find_map(pipe));
        let (mut about, mut only) = (Vec::new(), true);
        for step in steps {
            let name = pipe(step);
            let is_own = name.as_ref().is_some_and(|name| written.contains(name));
            if takes(step, Way::Out) {
                written.extend(name);
            } else if is_own || step.lines.fd.is_none() {
                about.push((step.index, is_own));
            } else {
                only &= !takes(step, Way::In);
            }
        }
        for (at, _) in about.into_iter().filter(|(_, is_own)| *is_own || only) {
            if let Some(claim) = claims.get(at).cloned() {
                claims.set(at, Claim { facts: claim.facts.with(Fact::OwnPipe, true), ..claim });
            }
        }
    }
}
