//! Detects sleeps until a time that is past when they begin, or that comes before the kernel can wake a thread.

use crate::evidence::claim::{Claim, Claims, put};
use crate::results::finding::Kind;
use crate::world::bounds::OFTEN;
use crate::world::replay::Step;

/// Longest wait of a brief sleep, ns. The kernel delays timers by 50 µs on purpose, so that several fire together,
/// unless the thread sets another slack (`PR_SET_TIMERSLACK`), and waking takes time as well.
const SLACK: u64 = 100_000;
/// Largest difference between the lengths of two absolute-time sleeps, ns, up to which they count as sleeps for a
/// fixed time (a deadline from a clock varies more).
const ALIKE: i128 = 5_000;

/// Claims absolute-time sleeps of a fixed length that were over within the slack of timers.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    let sleeps: Vec<(&Step<'_>, i128)> = steps.iter().filter_map(|step| Some((step, ahead(step)?))).collect();
    let alike = |two: &[(&Step<'_>, i128)]| match two {
        [(_, one), (step, other)] if (one - other).abs() <= ALIKE && is_brief(step) => Some(step.index),
        _ => None,
    };
    let brief: Vec<usize> = sleeps.windows(2).filter_map(alike).collect();
    if brief.len() >= OFTEN && 2 * brief.len() >= sleeps.len() {
        brief.iter().for_each(|at| put(claims, *at, claim()));
    }
}

/// Returns the length of an absolute-time sleep, ns, plus the unknown offset of its clock.
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
