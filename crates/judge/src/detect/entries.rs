//! Detects a ring (io_uring) that is entered for one entry at a time.

use crate::evidence::claim::{Claim, Claims, Detector, Saving, leave_out_later, put};
use crate::results::finding::Kind;
use crate::semantics::Enter;
use crate::world::bounds::OFTEN;
use crate::world::replay::Step;
use systoll_model::Recording;

/// Number of entries that one call could well submit.
const BATCH: usize = 32;
/// Claims calls that enter a ring for one entry, which is completed at once, again and again. The work of the entry has to
/// be done in any case: only the crossing is saved.
pub(super) struct Entries {
    crossing_ns: f64,
}

impl Entries {
    pub(super) fn new(recording: &Recording) -> Self {
        Self { crossing_ns: recording.prices.crossing_ns() }
    }

    fn claim(&self, run: &[Step<'_>], cut: bool, claims: &mut Claims) {
        if run.len() < OFTEN {
            return;
        }
        if let Some(first) = run.first().filter(|_| cut) {
            leave_out_later(first, claims);
        }
        for (_, step) in run.iter().enumerate().filter(|(n, _)| !n.is_multiple_of(BATCH)) {
            let about = "enters a ring for one entry, which is done at once, again and again";
            let claim = Claim::of(Kind::SmallIo, about, "queue several entries and enter once for all");
            let saves = Saving::Ns(self.crossing_ns);
            put(claims, step.index, Claim { saves, gives_up: "an entry waits until enough are there", ..claim });
        }
    }
}

impl Detector for Entries {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let runs = steps.chunk_by(|before, step| single(before) == single(step));
        for run in runs.filter(|run| run.first().is_some_and(single)) {
            let is_at_edge = |step: &Step<'_>| step.index == 0 || step.index + 1 == steps.len();
            self.claim(run, [run.first(), run.last()].into_iter().flatten().any(is_at_edge), claims);
        }
    }
}

/// Returns true if the step submitted one entry to a ring and returned without waiting.
fn single(step: &Step<'_>) -> bool {
    let call = step.observed.call;
    let entered = step.line::<Enter>().map(|enter| step.observed.arg(enter.entries) as u32);
    entered == Some(1) && call.result == Some(1) && call.waited_ns.unwrap_or(0) == 0
}
