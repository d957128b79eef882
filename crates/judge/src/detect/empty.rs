//! Detects transfers of no bytes: a read or write of length zero.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::replay::Step;
use crate::semantics::{DEVICES, MADE_UP, PIPES, Unit};
use crate::signs::Signs;

/// Claims transfers of no bytes on pipes and ordinary files, where they do nothing.
pub(super) struct Empty;

impl Detector for Empty {
    fn looks_for(&self) -> Signs {
        Signs::MOVES
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        // The first one may test whether the descriptor is valid.
        for step in steps.iter().filter(|step| step.observed.call.nth > 1 && moves_nothing(step)) {
            let file = step.observed.call.fd.as_deref().filter(|file| file.starts_with('/'));
            let object = file.map(|file| claims.object(file));
            let about = "reads or writes no byte at all, which does nothing";
            put(claims, step.index, Claim { object, ..Claim::of(Kind::SlowPath, about, "look at the length first") });
        }
    }
}

/// Returns true if the call moved nothing because it asked for nothing, on an object for which that means nothing. To
/// a datagram socket it is a message, and a device or a file in /proc may give it a meaning of its own.
fn moves_nothing(step: &Step<'_>) -> bool {
    let nothing = step.moved.is_some_and(|m| m.asked == Some(0) && m.got == Some(0) && m.line.unit == Unit::Stream);
    let file = step.observed.call.fd.as_deref().unwrap_or_default();
    let own = |folders: &[&str]| folders.iter().any(|folder| file.starts_with(folder));
    nothing && (file.starts_with(PIPES) || file.starts_with('/') && !own(MADE_UP) && !own(DEVICES))
}
