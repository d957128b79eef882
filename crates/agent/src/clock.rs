//! The clock of the day, which may be set at any moment, beside the one that never is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) const DAY_S: u64 = 86_400;
/// Difference between the two clocks from which on that of the day was set, s.
const SET: f64 = 2.0;

/// Returns the time of the day's clock, since 1970.
pub(crate) fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the number of the day in UTC, since 1970.
pub(crate) fn today() -> u64 {
    unix_time().as_secs() / DAY_S
}

/// A moment by the clock that is never set, and by that of the day.
#[derive(Clone, Copy)]
pub(crate) struct Moment(Instant, SystemTime);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    /// Returns the time that has passed since an earlier moment, and the seconds by which the day's clock was set meanwhile.
    pub(crate) fn since(self, before: Self) -> (Duration, Option<f64>) {
        let elapsed = self.0.saturating_duration_since(before.0);
        let by_day = self.1.duration_since(before.1).map_or_else(|e| -e.duration().as_secs_f64(), |d| d.as_secs_f64());
        let set = by_day - elapsed.as_secs_f64();
        (elapsed, (set.abs() > SET).then_some(set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_seen_and_changes_no_length() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
        let before = Moment::now();
        let later = |by_day: SystemTime| Moment(before.0 + minute, by_day).since(before);
        assert_eq!(later(before.1 + minute + Duration::from_millis(1_900)), (minute, None));
        assert_eq!(later(before.1 + minute + hour), (minute, Some(3_600.0)));
        assert_eq!(later(before.1 + minute - hour), (minute, Some(-3_600.0)));
    }
}
