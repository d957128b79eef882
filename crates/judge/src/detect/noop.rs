//! Sets what is so.

use super::claim::{Claims, Detector, about_state, put};
use crate::finding::Kind;
use crate::replay::Step;
use crate::semantics::Act;
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
                && let Some(claim) = about_state(Kind::NoOp, step, claims)
            {
                put(claims, step.index, claim);
            }
        }
    }
}
