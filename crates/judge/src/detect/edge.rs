//! Leaves out the first question about a thing in a window, and the first set of it: the window does not show whether
//! the answer or the value was known before.
//!
//! Such a call counts neither as needless nor as useful, so that the share is that of calls that could be judged. It
//! is left out only if later calls on the same thing in the same window are claimed.

use super::claim::{Claims, Detector, leave_out_later};
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::Key;
use crate::signs::Signs;
use systoll_model::RowId;

/// Least number of later calls that are claimed. One is not enough: of two calls that belong together, one is claimed
/// and the other is useful.
const CLAIMED: usize = 2;

/// Leaves out each thing's first call in a window, if nothing tells what was known and the calls that follow are
/// needless. Runs last, when all claims are made.
pub(super) struct Edge;

impl Detector for Edge {
    fn looks_for(&self) -> Signs {
        Signs::FROM_BEFORE
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        if !claims.any() {
            return;
        }
        // For each key the first hidden call, and the number of claimed calls that follow it.
        let mut firsts: Map<Key, (usize, RowId, usize)> = Map::default();
        for (at, step) in steps.iter().enumerate() {
            let Some(meaning) = step.meaning.as_ref().filter(|m| m.from_before) else { continue };
            let row = step.observed.call.row;
            let known = |c: &super::claim::Claim| matches!(c.kind, Kind::Repeat | Kind::NoOp | Kind::Failing);
            let claimed = claims.get(step.index).is_some_and(known);
            let (_, of, later) = firsts.entry(meaning.key).or_insert((at, row, 0));
            *later += usize::from(claimed && *of == row);
        }
        for (at, _, later) in firsts.into_values() {
            let Some(step) = steps.get(at).filter(|_| later >= CLAIMED) else { continue };
            if step.meaning.as_ref().is_some_and(|m| m.known.is_none()) {
                leave_out_later(step, claims);
            }
        }
    }
}
