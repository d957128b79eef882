//! Detects the same call on one range of memory after the other, each adjacent to the one before.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::replay::Step;
use crate::signs::Signs;
use systoll_model::Sysno;

/// Calls that apply to a range and do the same for one range of twice the length as two calls do.
const BY_RANGE: [Sysno; 4] =
    [Sysno::named("madvise"), Sysno::named("mlock"), Sysno::named("mprotect"), Sysno::named("msync")];
/// Size of a page, bytes: the kernel rounds lengths up to it.
const PAGE: u64 = 4_096;
/// Least number of calls in a row for a habit.
const HABIT: usize = 4;

/// Claims all but the first of a run of adjacent ranges.
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

/// Returns true if a step makes the same call as the one before, on the memory that follows.
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
            // The calls do not tell why the program splits the range.
            put(
                claims,
                *index,
                Claim { weak: true, ..Claim::of(Kind::SmallIo, about, "one call for the whole range") },
            );
        }
    }
    run.clear();
}
