//! Detects timers that are set again before they fire, to a later time, and timers that are armed and disarmed around
//! a short action.

use super::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::{Arm, Way};
use crate::signs::Signs;
use systoll_model::Moment;

/// Claims settings of a timer to a time that is no earlier, if it did not fire in between.
pub(super) struct Rearm;

/// Least number of times that a timer is armed and disarmed without a call in between for a habit.
const MOMENTS: usize = 3;

/// A timer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Timer {
    /// The call that the timer belongs to.
    of: &'static str,
    /// The timer's number, or its descriptor.
    number: u64,
}

/// Returns the timer that the call sets.
pub(super) fn timer(step: &Step<'_>) -> Option<Timer> {
    let arm = step.lines.arm().filter(|_| step.observed.call.errno().is_none())?;
    Some(Timer { of: arm.of, number: arm.timer.map_or(0, |a| step.observed.arg(a)) })
}

/// Returns true if the calls `before` a timer's first setting in a window show no firing of it and not how it was
/// made: the setting can't be judged.
pub(super) fn is_hidden(timer: Timer, step: &Step<'_>, before: &[Step<'_>]) -> bool {
    let Some(arm) = step.lines.arm() else { return false };
    let signalled = |s: &Step<'_>| s.observed.call.signals_before > 0;
    let reads = |s: &Step<'_>| s.moved.is_some_and(|m| m.line.way == Way::In && m.fd == Some(timer.number as i32));
    let makes = |s: &Step<'_>| s.observed.call.result == Some(timer.number as i64);
    let told = if arm.signals {
        before.iter().chain([step]).any(signalled)
    } else {
        before.iter().any(|s| reads(s) || makes(s))
    };
    !told
}

impl Detector for Rearm {
    fn looks_for(&self) -> Signs {
        Signs::ARMS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        // The time to which each timer was last set: seconds and the fraction.
        let mut armed: Map<Timer, (&'static Arm, u128)> = Map::default();
        let mut moments: Map<Timer, Vec<usize>> = Map::default();
        // The place of each timer's first setting.
        let mut firsts: Map<Timer, usize> = Map::default();
        let mut last = None;
        for (at, step) in steps.iter().enumerate() {
            if step.observed.call.signals_before > 0 {
                armed.retain(|_, (arm, _)| !arm.signals);
            }
            fired(step, &mut armed);
            let (Some(arm), Some(timer)) = (step.lines.arm(), timer(step)) else { continue };
            firsts.entry(timer).or_insert(at);
            match time(arm, step) {
                Some(time) if time > 0 => {
                    if armed.insert(timer, (arm, time)).is_some_and(|(_, before)| time >= before) {
                        put(claims, step.index, claim());
                    }
                }
                Some(_) => {
                    // Other calls in between could block, and the timer would limit them.
                    if armed.remove(&timer).is_some() && last == Some((timer, step.index.wrapping_sub(1))) {
                        moments.entry(timer).or_default().extend([step.index - 1, step.index]);
                    }
                }
                None => drop(armed.remove(&timer)),
            }
            last = Some((timer, step.index));
        }
        moments.retain(|_, indices| indices.len() >= 2 * MOMENTS);
        leave_out(&firsts, &moments, last, steps, claims);
        for indices in moments.into_values() {
            indices.into_iter().skip(2).for_each(|index| put(claims, index, guard()));
        }
    }
}

/// Leaves out calls at the window's edges that may belong to claimed settings.
fn leave_out(
    firsts: &Map<Timer, usize>,
    moments: &Map<Timer, Vec<usize>>,
    last: Option<(Timer, usize)>,
    steps: &[Step<'_>],
    claims: &mut Claims,
) {
    for (timer, at) in firsts {
        let (before, rest) = steps.split_at(*at);
        let Some(first) = rest.first().filter(|first| is_hidden(*timer, first, before)) else { continue };
        let pair = moments.get(timer).map_or(&[][..], |indices| indices.get(..2).unwrap_or_default());
        let disarms = first.lines.arm().and_then(|arm| time(arm, first)) == Some(0);
        let within = disarms || pair.first() == Some(&first.index);
        pair.iter().filter(|_| within).filter_map(|at| steps.get(*at)).for_each(|s| leave_out_later(s, claims));
        if !pair.is_empty() {
            leave_out_later(first, claims);
        }
    }
    // If the window's last call armed the timer, it may have been disarmed right afterwards.
    let open = last.filter(|(timer, at)| at + 1 == steps.len() && moments.contains_key(timer));
    if let Some(step) = open.and_then(|(_, at)| steps.get(at)) {
        leave_out_later(step, claims);
    }
}

fn time(arm: &Arm, step: &Step<'_>) -> Option<u128> {
    if arm.plain {
        return Some(u128::from(step.observed.arg(arm.time) as u32) << 64);
    }
    let bytes = step.observed.data(arm.time, Moment::Entry)?;
    let word = |at: usize| bytes.get(at..at + 8)?.first_chunk().map(|b| u64::from_le_bytes(*b));
    // The interval comes first, then the time to the first firing.
    let (interval, value) = ((word(0)?, word(8)?), (word(16)?, word(24)?));
    if interval != (0, 0) {
        return None;
    }
    Some(u128::from(value.0) << 64 | u128::from(value.1))
}

/// Forgets a timer whose descriptor the program reads, since it knows then that the timer fired.
fn fired(step: &Step<'_>, armed: &mut Map<Timer, (&'static Arm, u128)>) {
    let Some(fd) = step.moved.as_ref().filter(|m| m.line.way == Way::In).and_then(|m| m.fd) else { return };
    armed.retain(|timer, (arm, _)| arm.signals || timer.number as i32 != fd);
}

fn claim() -> Claim {
    Claim {
        gives_up: "the timer fires once for nothing now and then",
        ..Claim::of(
            Kind::Toggle,
            "a timer that has not fired",
            "keep the new deadline in memory and set the timer again only when it fires too early",
        )
    }
}

fn guard() -> Claim {
    Claim {
        about: "a timer that is armed and disarmed around a moment",
        instead: Some("leave it armed and let its handler look whether the deadline that holds now has passed"),
        ..claim()
    }
}
