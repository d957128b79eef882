//! Timers, and the time to which a call sets one.

use crate::semantics::{Arm, Lines, ObservedCall};
use systoll_model::Moment;

/// A timer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Timer {
    /// The call that the timer belongs to.
    of: &'static str,
    /// The timer's number, or its descriptor.
    number: u64,
    /// True if the timer sends a signal.
    signals: bool,
}

impl Timer {
    /// Returns the timer's number, or its descriptor.
    pub(super) fn number(self) -> u64 {
        self.number
    }

    /// Returns true if the timer is of the sort that a call's name stands for; see [`Arm::of`].
    pub(super) fn is_of(self, sort: &str) -> bool {
        self.of == sort
    }

    /// Returns true if the timer sends a signal.
    pub(super) fn signals(self) -> bool {
        self.signals
    }

    /// Returns true if a read of the descriptor tells that the timer fired.
    pub(super) fn is_read_by(self, fd: i32) -> bool {
        !self.signals && self.number as i32 == fd
    }
}

/// Returns the timer that a call sets, of which the tables have these lines.
pub(super) fn timer_of(lines: &Lines, observed: &ObservedCall<'_>) -> Option<Timer> {
    let arm = lines.arm().filter(|_| observed.call.errno().is_none())?;
    Some(Timer { of: arm.of, number: arm.timer.map_or(0, |a| observed.arg(a)), signals: arm.signals })
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
    let word = |at: usize| bytes.get(at..at + 8)?.first_chunk().map(|b| u64::from_le_bytes(*b));
    // The interval comes first, then the time to the first firing.
    let (interval, value) = ((word(0)?, word(8)?), (word(16)?, word(24)?));
    if interval != (0, 0) {
        return None;
    }
    Some(u128::from(value.0) << 64 | u128::from(value.1))
}
