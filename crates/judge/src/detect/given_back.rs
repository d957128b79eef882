//! Detects memory given back to the kernel again and again: its pages fault in anew each time.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::signs::Signs;

/// Number of times that a range was given back from which on another time is claimed.
const HABIT: u32 = 2;

/// Claims giving back a range that was given back before and used again.
#[derive(Default)]
pub(super) struct GivenBack {
    ranges: Map<(u32, u64, u64), u32>,
}

impl Detector for GivenBack {
    fn looks_for(&self) -> Signs {
        Signs::GIVES_BACK
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            if !step.lines.gives_back(&step.observed) || step.observed.call.errno().is_some() {
                continue;
            }
            let range = (step.who, step.observed.arg(0), step.observed.arg(1));
            let times = self.ranges.entry(range).or_default();
            *times = times.saturating_add(1);
            if *times > HABIT {
                put(claims, step.index, claim());
            }
        }
    }
}

fn claim() -> Claim {
    Claim {
        gives_up: "the program holds more memory between its peaks",
        ..Claim::of(
            Kind::Toggle,
            "memory that is given back and needed again",
            "keep it for a while: give back what has not been used for seconds",
        )
    }
}
