//! How a tracer waits for the next stop: by looking again and again for a moment, and asleep only then.
//!
//! Tracer and tracee take turns, and where the box has a processor to spare the kernel gives each its own. Then
//! each wakes the other on an idle processor, and the kernel takes microseconds for that, on a virtual machine a
//! hundred: many times what the stop costs otherwise. A tracer that is awake when the stop comes saves its own half of that.
//! There is no way to keep the two together: affinity is the program's to ask for.
//!
//! Where they share one, a tracer that looks gives way between two looks, so that the program runs at once and the
//! tracer need not be woken. Another program may get the processor so, for milliseconds: then none is given away,
//! nor looked for, for many times as long.

use crate::sys;
use crate::tracee::Waited;

/// How long it looks, ns: as long as programs take from one call to the next where stops are what they pay.
const LOOKS_NS: u64 = 20_000;
/// So many looks in vain are made in a row before some are left out.
const TRIES: u32 = 3;
/// Looks left out in a row are at most 2 to the power of this.
const MOST_REST: u32 = 10;
/// Giving way for longer than this was for another program's sake, or for a program's that computes, ns.
const GAVE_WAY_NS: u64 = 100_000;
/// So many times as long it does not look afterwards.
const AMENDS: u64 = 100;

/// When it pays to look. A program that computes between its calls is not waited for awake.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// Looks in vain since the last that was not.
    vain: u32,
    /// Looks to be left out.
    resting: u32,
    /// No look before this moment: the last ones gave too much away.
    not_before: u64,
    /// When the processor was given away for long, and no stop had come: within the last wait.
    gave_way_at: Option<u64>,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The last moment of the last wait at which there was no stop, where the tracer then gave its processor away
    /// for long.
    pub(super) fn gave_way_at(&self) -> Option<u64> {
        self.gave_way_at
    }

    /// What `next` tells, which is asked not to wait, and then to wait; it is `now`.
    /// Between two looks others may run where that is `to_give_way`.
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
            // Another program may have had the processor: the kernel may have a stop to tell of by now.
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

    /// Has others run, where there are any; the time then.
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

    /// How often it looked while `stops` stops came only when waited for.
    fn looks(patience: &mut Patience, stops: u32) -> u32 {
        let mut looked = 0;
        for _ in 0..stops {
            let mut first = true;
            // What others get of a busy box is not what this is about.
            patience.not_before = 0;
            patience.wait(sys::now(), true, |wait| {
                looked += u32::from(!wait && std::mem::take(&mut first));
                if wait { Waited::Interrupted } else { Waited::NothingYet }
            });
        }
        looked
    }

    #[test]
    fn looking_in_vain_becomes_rare_until_it_is_not() {
        let mut patience = Patience::new();
        let (first, later) = (looks(&mut patience, 100), looks(&mut patience, 2_000));
        assert!((5..=12).contains(&first) && later <= 6, "{first} {later}");
        patience.resting = 0;
        assert_eq!(patience.wait(sys::now(), false, |_| Waited::NoChildren), Waited::NoChildren);
        assert_eq!((patience.vain, looks(&mut patience, 2)), (0, 2));
    }

    #[test]
    fn who_gave_way_for_long_sleeps_for_a_while() {
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
