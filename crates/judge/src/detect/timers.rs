//! Timers, and the time to which a call sets one.

use crate::semantics::{ARMS, Arm, Lines, ObservedCall, word_at};
use systoll_model::Moment;

/// A timer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Timer {
    /// The timer's sort: the name of the call that it belongs to, see [`Arm::of`].
    pub(super) of: &'static str,
    /// The timer's number, or its descriptor.
    pub(super) number: u64,
    /// True if the timer sends a signal.
    pub(super) signals: bool,
}

impl Timer {
    /// Returns the timers that a descriptor may be: a read of it tells that the timer fired.
    pub(super) fn of_descriptor(fd: i32) -> impl Iterator<Item = Self> {
        let by_descriptor = ARMS.iter().filter(|arm| !arm.signals);
        by_descriptor.map(move |arm| Self { of: arm.of, number: u64::from(fd as u32), signals: false })
    }
}

/// Returns the timer that a call sets, of which the tables have these lines.
pub(super) fn timer_of(lines: &Lines, observed: &ObservedCall<'_>) -> Option<Timer> {
    let arm = lines.arm().filter(|_| observed.call.errno().is_none())?;
    // The kernel looks at the lower half of a descriptor only.
    let number = arm.timer.map_or(0, |a| if arm.signals { observed.arg(a) } else { u64::from(observed.arg(a) as u32) });
    Some(Timer { of: arm.of, number, signals: arm.signals })
}

/// Returns the length of time to which a call sets a timer, ns; `None` if it sets a time of the clock, or that is
/// unknown.
pub(super) fn length_ns(arm: &Arm, observed: &ObservedCall<'_>) -> Option<u64> {
    let (flags, bit) = arm.absolute;
    let time = time(arm, observed).filter(|_| observed.arg(flags) & bit == 0)?;
    let seconds = u64::try_from(time >> 64).ok()?;
    Some(seconds.saturating_mul(1_000_000_000).saturating_add((time as u64).saturating_mul(arm.fraction_ns)))
}

/// Returns the time to which a call sets a timer that fires once: seconds and the fraction; 0 if it takes the timer
/// back.
pub(super) fn time(arm: &Arm, observed: &ObservedCall<'_>) -> Option<u128> {
    if arm.plain {
        return Some(u128::from(observed.arg(arm.time) as u32) << 64);
    }
    let bytes = observed.data(arm.time, Moment::Entry)?;
    let word = |at| word_at(bytes, at);
    // The interval comes first, then the time to the first firing.
    let (interval, value) = ((word(0)?, word(8)?), (word(16)?, word(24)?));
    if interval != (0, 0) {
        return None;
    }
    Some(u128::from(value.0) << 64 | u128::from(value.1))
}
