//! A cheaper way to the same end exists.

use super::{Claim, Claims, Detector, put};
use crate::Kind;
use crate::replay::Step;

/// Claims calls that the table knows a cheaper way for.
pub(super) struct SlowPath;

impl Detector for SlowPath {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            // The first reading of a meter is not waste; waiting is from the first time on.
            if let Some(cheaper) = step.cheaper
                && (cheaper.by_wait || step.subject.call.nth > 1)
            {
                let claim = Claim {
                    kind: Kind::SlowPath,
                    weak: false,
                    by_wait: cheaper.by_wait,
                    object: None,
                    about: cheaper.does,
                    instead: Some(cheaper.instead),
                    gives_up: "",
                };
                put(claims, step.index, claim);
            }
        }
    }
}
