//! Detects a heap top that is moved down and up again, even to other addresses each time.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::replay::Step;
use crate::signs::Signs;
use systoll_model::Sysno;

const BRK: Sysno = Sysno::named("brk");

/// Least number of turns in each direction for a habit.
const HABIT: usize = 3;

/// Claims calls that undo a part of the call before.
pub(super) struct HeapTop;

impl Detector for HeapTop {
    fn looks_for(&self) -> Signs {
        Signs::CALL
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let moves = steps.iter().filter(|step| step.observed.syscall == BRK && step.observed.arg(0) != 0);
        let (mut last, mut rose) = (None, None);
        // Calls that reverse the heap's direction: each undoes a part of the one before.
        let mut turns = Vec::new();
        for step in moves {
            let top = step.observed.call.result.and_then(|top| u64::try_from(top).ok());
            if let Some((last, top)) = last.zip(top).filter(|(last, top)| last != top) {
                let rises: bool = top > last;
                if rose.is_some_and(|rose: bool| rose != rises) {
                    turns.push(step.index);
                }
                rose = Some(rises);
            }
            last = top.or(last);
        }
        if turns.len() > 2 * HABIT {
            let about = "memory at the heap's top that is given back and needed again";
            let instead = "keep it: give back what has not been used for seconds";
            for index in turns {
                put(claims, index, Claim { gives_up: GIVES_UP, ..Claim::of(Kind::Toggle, about, instead) });
            }
        }
    }
}

const GIVES_UP: &str = "the program holds more memory between its peaks";
