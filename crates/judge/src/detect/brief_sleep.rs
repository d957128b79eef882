//! Sleeps until a moment that has come when they begin, or comes before the kernel can wake anyone.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::replay::Step;
use crate::signs::Signs;

/// Timers are late by as much on purpose, so that several fire together: 50 µs, unless the thread says otherwise
/// (`PR_SET_TIMERSLACK`), and what it takes to be woken, in ns.
const SLACK: u64 = 100_000;
/// How much the moment that is named may lie nearer to the call, or farther, than at the sleep before: such a sleep is by a
/// length, and not until a moment that a clock gives, in ns.
const ALIKE: i128 = 5_000;
/// Such sleeps in a window that make a habit.
const SLEEPS: usize = 4;

/// Claims sleeps that name a moment as near to the call each time, and were over within the slack of timers.
pub(super) struct BriefSleep;

impl Detector for BriefSleep {
    fn looks_for(&self) -> Signs {
        Signs::SLEEPS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let sleeps: Vec<(&Step<'_>, i128)> = steps.iter().filter_map(|step| Some((step, ahead(step)?))).collect();
        let alike = |two: &[(&Step<'_>, i128)]| match two {
            [(_, one), (step, other)] if (one - other).abs() <= ALIKE && is_brief(step) => Some(step.index),
            _ => None,
        };
        let brief: Vec<usize> = sleeps.windows(2).filter_map(alike).collect();
        if brief.len() >= SLEEPS && 2 * brief.len() >= sleeps.len() {
            brief.iter().for_each(|at| put(claims, *at, claim()));
        }
    }
}

/// How far ahead of the call the moment lies that it sleeps until, by an unknown clock, in ns.
fn ahead(step: &Step<'_>) -> Option<i128> {
    let (seconds, rest) = step.observed.time(step.lines.sleeps_until(&step.observed)?)?;
    let moment = i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Some(moment - i128::from(step.observed.call.entry_ns))
}

fn is_brief(step: &Step<'_>) -> bool {
    step.observed.call.waited_ns.is_some_and(|ns| ns <= SLACK)
}

fn claim() -> Claim {
    Claim {
        by_wait: true,
        gives_up: "others of the process run when the kernel lets them, not at each such moment",
        ..Claim::of(
            Kind::SlowPath,
            "sleeps for no time, or for less than the kernel takes to wake it (50 µs and more)",
            "leave it out; to let another thread run, wait for what it is to do",
        )
    }
}
