//! Detects a ring (io_uring) that is entered for one entry at a time.

use super::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::finding::Kind;
use crate::hash::Set;
use crate::replay::Step;
use crate::semantics::Semantics;
use crate::signs::Signs;
use systoll_model::{Recording, RowId};

/// Least number of entries in a run.
const LONG: usize = 8;
/// Least number of entries in a run that an edge of the window cuts.
const LONG_CUT: usize = 4;
/// Number of entries that one call could well submit.
const BATCH: usize = 32;
/// Largest price of a call whose cost is mostly the crossing, in crossings: an entry that does nothing costs some
/// three. Little would be won for an entry that copies a block.
const LIGHT: f64 = 6.0;

/// Claims calls that enter a ring for one entry, which is completed at once, again and again.
pub(super) struct Entries {
    /// Rows whose calls cost little more than the crossing.
    light: Set<RowId>,
}

impl Entries {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let most = LIGHT * recording.prices.crossing_ns();
        let light = (0..).map(RowId).zip(&recording.rows).filter(|(_, row)| {
            let toll = row.counts.toll_ns.unwrap_or(u64::MAX);
            semantics.lines_of(row.syscall).enters() && toll as f64 <= most * row.counts.calls as f64
        });
        Self { light: light.map(|(row, _)| row).collect() }
    }

    fn claim(&self, run: &[&Step<'_>], cut: bool, claims: &mut Claims) {
        if run.len() < if cut { LONG_CUT } else { LONG } {
            return;
        }
        if let Some(first) = run.first().filter(|_| cut) {
            leave_out_later(first, claims);
        }
        for (_, step) in run.iter().enumerate().filter(|(n, _)| !n.is_multiple_of(BATCH)) {
            // If each entry does more, the next one may depend on its result.
            let weak = !self.light.contains(&step.observed.call.row);
            let about = "enters a ring for one entry, which is done at once, again and again";
            let claim = Claim::of(Kind::SmallIo, about, "queue several entries and enter once for all");
            put(claims, step.index, Claim { weak, gives_up: "an entry waits until enough are there", ..claim });
        }
    }
}

impl Detector for Entries {
    fn looks_for(&self) -> Signs {
        Signs::ENTERS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut rest = steps.iter().peekable();
        while rest.peek().is_some() {
            let run: Vec<&Step<'_>> = std::iter::from_fn(|| rest.next_if(|step| single(step))).collect();
            let at_edge = run.first().is_some_and(|step| step.index == 0) || rest.peek().is_none();
            self.claim(&run, at_edge, claims);
            while rest.next_if(|step| !single(step)).is_some() {}
        }
    }
}

/// Returns true if the step submitted one entry to a ring and returned without waiting.
fn single(step: &Step<'_>) -> bool {
    let call = step.observed.call;
    let entered = step.lines.enter().map(|enter| step.observed.arg(enter.entries) as u32);
    entered == Some(1) && call.result == Some(1) && call.waited_ns.unwrap_or(0) == 0
}
