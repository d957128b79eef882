//! Rejects counts that no thread can have reached.
//!
//! A program may overwrite its counters. A moderate change can't be detected; figures beyond any program's reach are
//! left out and reported as lost.

use crate::inproc::monitor::results::clock::Clock;
use systoll_hooks::assemble::SlotCounts;
use systoll_hooks::layout::slot;

/// Cycles that a call takes at least: those for entering and leaving the kernel. A call into the vDSO reads the time
/// stamp counter, which takes as long.
const LEAST_CYCLES: u64 = 20;
/// Cycles that a call answered in place takes at least.
const LEAST_CYCLES_IN_PLACE: u64 = 4;
/// Bytes that a call moves at most (MAX_RW_COUNT of the kernel's include/linux/fs.h).
const MOST_BYTES: u64 = 0x7fff_f000;
/// Depth of nested timed calls, at most: a handler may interrupt each call and make another.
const DEEPEST: u64 = slot::STACK_SIZE / slot::STACK_ENTRY + 1;
/// Cycles by which the time stamp counters of two processors may differ. While a record is read its thread may count
/// on, so that one figure may be older than another by as much.
const SLACK: u64 = 1 << 24;

/// Upper bounds of the counts that a thread can still have made, besides the records accepted so far.
pub(crate) struct CountLimits {
    /// Cycles since the run began.
    cycles: u64,
    calls: u64,
    elided: u64,
}

impl Clock {
    /// Returns the counts that one thread can have made so far.
    pub(crate) fn possible(&self) -> CountLimits {
        let cycles = self.cycles.saturating_add(SLACK);
        CountLimits { cycles, calls: cycles / LEAST_CYCLES, elided: cycles / LEAST_CYCLES_IN_PLACE }
    }
}

impl CountLimits {
    /// Returns true if the thread can have made these counts at a record. Checks each figure by itself, and then the
    /// sums over all records so far.
    pub(crate) fn has(&mut self, c: &SlotCounts) -> bool {
        let cycles = self.cycles;
        let returned = c.returned.saturating_add(SLACK);
        let is_possible = c.cycles.max(c.waited) <= cycles.saturating_mul(DEEPEST)
            && c.longest.max(c.shortest.unwrap_or(0)) <= cycles
            && c.sampled.cycles <= c.cycles.saturating_add(SLACK)
            && c.sampled.calls <= returned
            && c.sampled.waited <= cycles.saturating_mul(DEEPEST)
            && c.bytes <= returned.saturating_mul(MOST_BYTES)
            && c.failed <= returned
            && c.errors.iter().all(|(_, n)| *n <= returned)
            && c.histogram.iter().all(|n| *n <= returned);
        let fits = |left: &mut u64, n: u64| left.checked_sub(n).map(|rest| *left = rest).is_some();
        is_possible && fits(&mut self.calls, c.entered.max(c.returned)) && fits(&mut self.elided, c.elided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_hooks::assemble::Sampled;

    fn counts(entered: u64, cycles: u64) -> SlotCounts {
        SlotCounts {
            entered,
            returned: entered,
            under_way: false,
            failed: 0,
            cycles,
            waited: 0,
            sampled: Sampled::default(),
            longest: cycles.min(1000),
            shortest: Some(cycles.min(100)),
            bytes: 0,
            elided: 0,
            trunk: Default::default(),
            histogram: [0; 64],
            errors: Vec::new(),
        }
    }

    #[test]
    fn impossible_counts_are_left_out() {
        // The run has lasted a second at 3 GHz.
        let clock = Clock { per_ns: 3.0, own_cycles: 0.0, cycles: 3_000_000_000, start_cycles: 0 };
        let told = |all: &[SlotCounts]| {
            let mut possible = clock.possible();
            all.iter().enumerate().filter(|(_, counts)| possible.has(counts)).map(|(nth, _)| nth).collect::<Vec<_>>()
        };
        let sound = counts(10_000_000, 2_000_000_000);
        assert_eq!(told(&[sound.clone(), counts(u64::MAX, 0), sound.clone()]), [0, 2]);
        // Each figure is possible alone, but all together take longer than the run.
        assert_eq!(told(&vec![counts(100_000_000, 0); 3]), [0]);
        let odd = [
            SlotCounts { bytes: u64::MAX, ..sound.clone() },
            SlotCounts { failed: u64::MAX, ..sound.clone() },
            SlotCounts { elided: u64::MAX, ..sound.clone() },
            SlotCounts { longest: u64::MAX, ..sound.clone() },
            SlotCounts { shortest: Some(1 << 40), ..sound.clone() },
            SlotCounts { cycles: u64::MAX, ..sound.clone() },
            SlotCounts { errors: vec![(2, u64::MAX)], ..sound.clone() },
            SlotCounts { histogram: [u64::MAX; 64], ..sound.clone() },
        ];
        assert_eq!(told(&odd), [0; 0]);
        assert_eq!(told(&[SlotCounts { bytes: 1 << 50, ..sound }]), [0]);
    }
}
