//! Timers set again before they fired, to fire later, or armed and disarmed around a moment.

use super::{Claim, Claims, Detector, put};
use crate::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::{Arm, Way};
use systoll_model::{Moment, Sysno};

/// Claims settings of a timer that is set to no earlier a time and did not fire in between.
pub(super) struct Rearm;

/// Times a timer is armed and disarmed with no call in between that make a habit.
const MOMENTS: usize = 3;

type Timer = (Sysno, u64);

impl Detector for Rearm {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        // Seconds and the rest, as the timer was set last.
        let mut armed: Map<Timer, (&'static Arm, u128)> = Map::default();
        let mut moments: Map<Timer, Vec<usize>> = Map::default();
        let mut last = None;
        for step in steps {
            if step.subject.call.signals_before > 0 {
                armed.retain(|_, (arm, _)| !arm.signals);
            }
            fired(step, &mut armed);
            let Some(arm) = step.lines.arm.filter(|_| step.subject.call.errno().is_none()) else { continue };
            let timer = (step.subject.syscall, arm.timer.map_or(0, |a| step.subject.arg(a)));
            match time(arm, step) {
                Some(time) if time > 0 => {
                    if armed.insert(timer, (arm, time)).is_some_and(|(_, before)| time >= before) {
                        put(claims, step.index, claim());
                    }
                }
                Some(_) => {
                    // What could wait in between is what the limit is for.
                    if armed.remove(&timer).is_some() && last == Some((timer, step.index.wrapping_sub(1))) {
                        moments.entry(timer).or_default().extend([step.index - 1, step.index]);
                    }
                }
                None => drop(armed.remove(&timer)),
            }
            last = Some((timer, step.index));
        }
        for steps in moments.into_values().filter(|steps| steps.len() >= 2 * MOMENTS) {
            steps.into_iter().skip(2).for_each(|index| put(claims, index, guard()));
        }
    }
}

fn time(arm: &Arm, step: &Step<'_>) -> Option<u128> {
    if arm.plain {
        return Some(step.subject.arg(arm.time).into());
    }
    let bytes = step.subject.data(arm.time, Moment::Entry)?;
    let word = |at: usize| bytes.get(at..at + 8)?.first_chunk().map(|b| u64::from_le_bytes(*b));
    // The interval stands first, the time to the first firing after it.
    let (interval, value) = ((word(0)?, word(8)?), (word(16)?, word(24)?));
    if interval != (0, 0) {
        return None;
    }
    Some(u128::from(value.0) << 64 | u128::from(value.1))
}

/// Whoever reads a timer's descriptor knows that it fired.
fn fired(step: &Step<'_>, armed: &mut Map<Timer, (&'static Arm, u128)>) {
    let Some(fd) = step.moved.as_ref().filter(|m| m.line.way == Way::In).and_then(|m| m.fd) else { return };
    armed.retain(|(_, timer), (arm, _)| arm.signals || *timer as i32 != fd);
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
