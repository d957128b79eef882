//! Waits for the next stop: the tracer polls for a moment, and only then sleeps.
//!
//! Tracer and tracee take turns. If the machine has an idle processor, the kernel gives each one of its own. Each then
//! wakes the other on an idle processor, which takes microseconds, and on a virtual machine a hundred: many times what
//! the stop costs otherwise. A tracer that is awake when the stop comes saves its half of that. We can't keep the two
//! on one processor: the program may ask for its affinity.
//!
//! If they share a processor, a polling tracer yields between two polls, so that the program runs at once and the
//! tracer need not be woken. Another program may then take the processor for milliseconds. In that case the tracer
//! neither yields nor polls for many times as long.

use crate::sys;
use crate::tracee::Waited;

/// Time for which the tracer polls, ns: the time that programs take from one call to the next if stops are their main
/// cost.
const LOOKS_NS: u64 = 20_000;
/// Number of polls in vain, in a row, after which some are left out.
const TRIES: u32 = 3;
/// Binary logarithm of the number of polls that are left out in a row, at most.
const MOST_REST: u32 = 10;
/// Duration above which a yield has gone to another program, or to a target that computes, ns.
const GAVE_WAY_NS: u64 = 100_000;
/// Factor by which the pause in polling after such a yield is longer than the yield.
const AMENDS: u64 = 100;

/// State that decides when polling pays. While a program computes between its calls, the tracer sleeps.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// Number of polls in vain since the last one that succeeded.
    vain: u32,
    /// Number of polls still to be left out.
    resting: u32,
    /// Time before which the tracer does not poll, because the last polls gave too much processor time away, ns.
    not_before: u64,
    /// Time within the last wait at which a long yield began and no stop had come, ns.
    gave_way_at: Option<u64>,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Returns the last moment of the last wait at which no stop had come, if the tracer yielded for long after it.
    pub(super) fn gave_way_at(&self) -> Option<u64> {
        self.gave_way_at
    }

    /// Returns the next stop. `next` is called first without and then with waiting; `now` is the current time. The
    /// tracer yields between two polls if `to_give_way` is true.
    pub(super) fn wait(&mut self, mut now: u64, to_give_way: bool, mut next: impl FnMut(bool) -> Waited) -> Waited {
        self.gave_way_at = None;
        if self.is_to_look(now) {
            let end = now + LOOKS_NS;
            while now < end {
                match next(false) {
                    Waited::NothingYet if to_give_way => now = self.give_way(now),
                    Waited::NothingYet => {
                        std::hint::spin_loop();
                        now = sys::now();
                    }
                    told => {
                        self.vain = 0;
                        return told;
                    }
                }
            }
            // Another program may have had the processor meanwhile. If a stop has come, the tracer can't tell when.
            match next(false) {
                Waited::NothingYet => self.gave_way_at = None,
                told => return told,
            }
            self.vain += 1;
            if self.vain >= TRIES {
                self.resting = (1 << (self.vain - TRIES).min(MOST_REST)) - 1;
            }
        }
        next(true)
    }

    /// Yields the processor. Returns the time after that.
    fn give_way(&mut self, before: u64) -> u64 {
        std::thread::yield_now();
        let now = sys::now();
        let took = now.saturating_sub(before);
        if took > LOOKS_NS {
            self.gave_way_at = Some(before);
        }
        if took > GAVE_WAY_NS {
            self.not_before = now + took.saturating_mul(AMENDS);
        }
        now
    }

    fn is_to_look(&mut self, now: u64) -> bool {
        if now < self.not_before {
            return false;
        }
        let rests = self.resting > 0;
        self.resting = self.resting.saturating_sub(1);
        !rests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of polls while `stops` stops came, each only once it was waited for.
    fn looks(patience: &mut Patience, stops: u32) -> u32 {
        let mut looked = 0;
        for _ in 0..stops {
            let mut first = true;
            // Pauses because of other programs on a busy machine are ignored here.
            patience.not_before = 0;
            patience.wait(sys::now(), true, |wait| {
                looked += u32::from(!wait && std::mem::take(&mut first));
                if wait { Waited::Interrupted } else { Waited::NothingYet }
            });
        }
        looked
    }

    #[test]
    fn failed_polls_become_rare_until_one_succeeds() {
        let mut patience = Patience::new();
        let (first, later) = (looks(&mut patience, 100), looks(&mut patience, 2_000));
        assert!((5..=12).contains(&first) && later <= 6, "{first} {later}");
        patience.resting = 0;
        assert_eq!(patience.wait(sys::now(), false, |_| Waited::NoChildren), Waited::NoChildren);
        assert_eq!((patience.vain, looks(&mut patience, 2)), (0, 2));
    }

    #[test]
    fn sleeps_after_yielding_for_long() {
        let mut patience = Patience::new();
        let before = sys::now() - 3_000_000;
        let now = patience.give_way(before);
        assert_eq!(patience.gave_way_at(), Some(before));
        assert!(!patience.is_to_look(now) && !patience.is_to_look(now + 200_000_000));
        assert!(patience.is_to_look(patience.not_before));
        patience.not_before = u64::MAX;
        patience.wait(sys::now(), true, |_| Waited::Interrupted);
        assert_eq!(patience.gave_way_at(), None);
    }
}
