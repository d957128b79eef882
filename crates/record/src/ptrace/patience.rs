//! How a tracer waits for the next stop: by looking again and again for a moment, and asleep only then.
//!
//! Tracer and tracee take turns, and where the box has a processor to spare the kernel gives each its own. Then
//! whoever is woken sleeps on an idle processor, which takes microseconds to wake, on a virtual machine a hundred:
//! many times what the stop costs otherwise. A tracer that is awake when the stop comes saves its own half of that.
//! There is no way to keep the two together: affinity is the program's to ask for.

use crate::sys;
use crate::tracee::Waited;

/// How long it looks, ns: as long as programs take from one call to the next where stops are what they pay.
const LOOKS_NS: u64 = 20_000;
/// So many looks in vain are made in a row before some are left out.
const TRIES: u32 = 3;
/// Looks left out in a row are at most 2 to the power of this.
const MOST_REST: u32 = 10;

/// When it pays to look. A program that computes between its calls is not waited for awake.
#[derive(Debug)]
pub(super) struct Patience {
    /// Whether there is a processor that looking takes from nobody.
    spare: bool,
    /// Looks in vain since the last that was not.
    vain: u32,
    /// Looks to be left out.
    resting: u32,
}

impl Patience {
    /// That of a thread that may use as many processors as this one.
    pub(super) fn new() -> Self {
        let spare = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        Self { spare, vain: 0, resting: 0 }
    }

    /// What `next` tells, which is asked not to wait, and then to wait.
    pub(super) fn wait(&mut self, mut next: impl FnMut(bool) -> Waited) -> Waited {
        if self.is_to_look() {
            let end = sys::now() + LOOKS_NS;
            while sys::now() < end {
                match next(false) {
                    Waited::NothingYet => std::hint::spin_loop(),
                    told => {
                        self.vain = 0;
                        return told;
                    }
                }
            }
            self.vain += 1;
            if self.vain >= TRIES {
                self.resting = (1 << (self.vain - TRIES).min(MOST_REST)) - 1;
            }
        }
        next(true)
    }

    fn is_to_look(&mut self) -> bool {
        let rests = self.resting > 0;
        self.resting = self.resting.saturating_sub(1);
        self.spare && !rests
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
            patience.wait(|wait| {
                looked += u32::from(!wait && std::mem::take(&mut first));
                if wait { Waited::Interrupted } else { Waited::NothingYet }
            });
        }
        looked
    }

    #[test]
    fn looking_in_vain_becomes_rare_until_it_is_not() {
        let mut patience = Patience { spare: true, vain: 0, resting: 0 };
        let (first, later) = (looks(&mut patience, 100), looks(&mut patience, 2_000));
        assert!((5..=12).contains(&first) && later <= 6, "{first} {later}");
        patience.resting = 0;
        assert_eq!(patience.wait(|_| Waited::NoChildren), Waited::NoChildren);
        assert_eq!((patience.vain, looks(&mut patience, 2)), (0, 2));
    }

    #[test]
    fn without_a_processor_to_spare_it_sleeps() {
        let mut alone = Patience { spare: false, vain: 0, resting: 0 };
        assert_eq!(looks(&mut alone, 10), 0);
    }
}
