//! Bounds the share of time that something may take which is done again and again.

use std::time::{Duration, Instant};

/// Something that takes time is done at most every `every`, and so seldom that it takes at most one part in `parts` of
/// the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    every: Duration,
    parts: u32,
    began: Option<Instant>,
    next: Option<Instant>,
}

impl Pace {
    /// Creates the pace of something that is not done before `first`.
    pub(crate) fn new(every: Duration, parts: u32, first: Option<Instant>) -> Self {
        Self { every, parts, began: None, next: first }
    }

    /// Returns true if it is to be done now; it begins then.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.began = Some(now);
        // It is due at regular times, not as long after it was done as it was late.
        let due = self.next.unwrap_or(now) + self.every;
        self.next = Some(if due > now { due } else { now + self.every });
        true
    }

    /// Notes that it has been done.
    pub(crate) fn end(&mut self, now: Instant) {
        if let Some(began) = self.began.take() {
            let pause = now.saturating_duration_since(began).saturating_mul(self.parts);
            self.next = self.next.max(Some(began + pause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_done_less_often() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut pace = Pace::new(Duration::from_millis(1_000), 100, Some(at(250)));
        assert!(!pace.begin(at(200)) && pace.begin(at(260)));
        pace.end(at(265));
        assert!(!pace.begin(at(1_200)) && pace.begin(at(1_255)), "as regularly as asked for");
        pace.end(at(1_295));
        assert!(!pace.begin(at(5_200)) && pace.begin(at(5_260)), "a hundred times 40 ms later");
    }
}
