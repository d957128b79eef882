//! Tells the kernel the same of one piece of memory after the other, each beside the one before.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::replay::Step;
use crate::signs::Signs;
use systoll_model::Sysno;

/// Calls that take a range, and do the same for a range of twice the length as for two.
const BY_RANGE: [Sysno; 4] =
    [Sysno::named("madvise"), Sysno::named("mlock"), Sysno::named("mprotect"), Sysno::named("msync")];
/// Bytes of a page: the kernel rounds lengths up to it.
const PAGE: u64 = 4_096;
/// Calls in a row that make a habit.
const HABIT: usize = 4;

/// Claims all but the first of neighbouring ranges.
pub(super) struct Adjacent;

impl Detector for Adjacent {
    fn looks_for(&self) -> Signs {
        Signs::CALL
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut run: Vec<usize> = Vec::new();
        for pair in steps.windows(2) {
            let [before, step] = pair else { continue };
            if goes_on(before, step) {
                run.push(step.index);
            } else {
                claim(&mut run, claims);
            }
        }
        claim(&mut run, claims);
    }
}

/// Returns whether a step does what the one before did, to the memory right behind.
fn goes_on(before: &Step<'_>, step: &Step<'_>) -> bool {
    let (old, new) = (before.observed, step.observed);
    let is_one = old.syscall == new.syscall && BY_RANGE.contains(&new.syscall);
    let end = old.arg(0).saturating_add(old.arg(1).div_ceil(PAGE).saturating_mul(PAGE));
    is_one
        && old.arg(1) > 0
        && end == new.arg(0)
        && old.arg(2) == new.arg(2)
        && old.call.errno().is_none()
        && new.call.errno().is_none()
}

fn claim(run: &mut Vec<usize>, claims: &mut Claims) {
    if run.len() >= HABIT {
        let about =
            "tells the kernel the same of one piece of memory after the other, each right behind the one before";
        for index in run.iter() {
            // Why it goes by pieces the calls do not tell.
            put(
                claims,
                *index,
                Claim { weak: true, ..Claim::of(Kind::SmallIo, about, "one call for the whole range") },
            );
        }
    }
    run.clear();
}
