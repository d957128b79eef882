//! What a window's start hides of questions and sets: whether the first of a thing was known already.
//!
//! Neither needless nor of use, such a call is left out, so that the share is taken of what could be
//! judged. Only beside claims on the same thing in the same window: what is claimed nowhere is no
//! more of a habit for being hidden.

use super::{Claims, Detector, leave_out_later};
use crate::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::Key;
use systoll_model::RowId;

/// Later calls that must be claimed: of two in a row that belong together one is claimed in the
/// midst of a window too, and the other is of use there.
const CLAIMED: usize = 2;

/// Leaves out each thing's first call of a window, where nothing kept tells what was before and those
/// that follow are needless. Comes last, when claims are made.
pub(super) struct Edge;

impl Detector for Edge {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        // The first that is hidden, and how many that follow it are claimed.
        let mut firsts: Map<Key, (usize, RowId, usize)> = Map::default();
        for (at, step) in steps.iter().enumerate() {
            let Some(meaning) = step.meaning.as_ref().filter(|m| m.from_before) else { continue };
            let row = step.observed.call.row;
            let known = |c: &super::Claim| matches!(c.kind, Kind::Repeat | Kind::NoOp | Kind::Failing);
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
