//! Bounds the share of time that repeated work may take.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Processor time that may be spent in addition to the share: the first look at a program takes long, as it names all
/// of the program's code.
const ALLOWANCE: Duration = Duration::from_millis(250);

/// Paces repeated work: it is done at most every `every`, and so seldom that it takes at most one part in `parts` of
/// the time, plus [`ALLOWANCE`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    every: Duration,
    parts: u32,
    start: Instant,
    next: Instant,
    /// The thread's processor time when the work began; `None` while no work is under way.
    began: Option<Duration>,
    spent: Duration,
}

impl Pace {
    /// Creates the pace of work that is done at `first` for the first time.
    pub(crate) fn new(every: Duration, parts: u32, first: Instant) -> Self {
        Self { every, parts, start: first, next: first, began: None, spent: Duration::ZERO }
    }

    /// Returns true if the work is to be done now; it begins then.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        let allowed = ALLOWANCE + now.saturating_duration_since(self.start) / self.parts;
        if now < self.next || self.spent > allowed {
            return false;
        }
        self.began = Some(own_cpu());
        // The work is due at regular times: a late start does not delay the next one.
        let due = self.next + self.every;
        self.next = if due > now { due } else { now + self.every };
        true
    }

    /// Notes that the work has been done. Must be called by the thread that began it.
    pub(crate) fn end(&mut self) {
        if let Some(began) = self.began.take() {
            self.spend(own_cpu().saturating_sub(began));
        }
    }

    fn spend(&mut self, time: Duration) {
        self.spent = self.spent.saturating_add(time);
    }
}

/// Returns the processor time of this thread.
fn own_cpu() -> Duration {
    // Every kernel since 2.6.12 has this clock.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_done_less_often() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut pace = Pace::new(Duration::from_millis(1_000), 100, at(250));
        assert!(!pace.begin(at(200)) && pace.begin(at(260)));
        assert!(!pace.begin(at(1_200)) && pace.begin(at(1_255)), "as regularly as asked for");
        pace.spend(Duration::from_millis(300));
        assert!(!pace.begin(at(5_000)) && pace.begin(at(5_260)), "50 ms more than is allowed at once");
    }

    #[test]
    fn work_is_measured_by_the_threads_own_time() {
        let mut pace = Pace::new(Duration::ZERO, 100, Instant::now());
        assert!(pace.begin(Instant::now()));
        std::thread::sleep(Duration::from_millis(30));
        pace.end();
        assert!(pace.spent < Duration::from_millis(25), "{:?}", pace.spent);
    }
}
