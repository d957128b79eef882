//! Times something small, again and again, in batches short enough to slip between interrupts.
//!
//! Invariant: nothing here allocates or panics, so it runs in a child of a threaded process.

use crate::sys;
use std::time::{Duration, Instant};
use systoll_model::Spread;

/// A batch aims at this length: long beside the clock's own reading, short beside a timer tick.
const BATCH_NS: f64 = 8_000.0;
const MAX_CALLS: f64 = 8_192.0;
const MAX_BATCHES: usize = 1_024;

/// When a measurement ends: after so many times its budget, so many batches are enough.
const ENOUGH: [(u32, usize); 3] = [(1, 16), (8, 4), (GIVE_UP, 0)];
/// On a busy box a measurement may take so many times its budget.
pub(crate) const GIVE_UP: u32 = 40;

/// Measures within a budget, with the cost of the clock and of the loop taken off.
pub(crate) struct Meter {
    budget: Duration,
    clock_ns: f64,
    loop_ns: f64,
}

impl Meter {
    /// A meter whose every figure may take about `budget`.
    pub(crate) fn new(budget: Duration) -> Self {
        let mut meter = Self { budget: Duration::from_micros(100), clock_ns: 0.0, loop_ns: 0.0 };
        meter.clock_ns = (0..64).map(|_| time(0, || ())).fold(f64::INFINITY, f64::min);
        meter.loop_ns = meter.spread(|| std::hint::black_box(())).min;
        meter.budget = budget;
        meter
    }

    /// ns per `op`.
    pub(crate) fn spread(&self, mut op: impl FnMut()) -> Spread {
        let calls = calls_per_batch(&mut op);
        let mut batches = Batches::default();
        self.repeat(&mut batches, |b| b.push(self.per_call(time(calls, &mut op), calls)));
        batches.spread()
    }

    /// ns per `op`, of batches after which `holds` is true: they met what they were to meet.
    pub(crate) fn spread_where(&self, mut op: impl FnMut(), mut holds: impl FnMut() -> bool) -> Spread {
        let calls = calls_per_batch(&mut op);
        let mut batches = Batches::default();
        self.repeat(&mut batches, |b| {
            holds();
            let ns = self.per_call(time(calls, &mut op), calls);
            if holds() {
                b.push(ns);
            }
        });
        batches.spread()
    }

    /// ns per `op`, calling `between` after each batch, untimed; a batch is at most `most` calls.
    pub(crate) fn spread_between(&self, most: u32, mut op: impl FnMut(), mut between: impl FnMut()) -> Spread {
        let calls = calls_per_batch(&mut op).min(most);
        let mut batches = Batches::default();
        self.repeat(&mut batches, |b| {
            between();
            b.push(self.per_call(time(calls, &mut op), calls));
        });
        batches.spread()
    }

    /// ns per `make` and per `undo`, each given its place in the batch of `calls`.
    pub(crate) fn spread_pair(
        &self,
        calls: u32,
        mut make: impl FnMut(usize),
        mut undo: impl FnMut(usize),
    ) -> (Spread, Spread) {
        let (mut made, mut undone) = (Batches::default(), Batches::default());
        let places = calls as usize;
        (0..places).for_each(&mut make);
        (0..places).for_each(&mut undo);
        self.repeat(&mut made, |b| {
            let (mut next, mut last) = (0.., 0..);
            // Kept in step with `made`, from which a spoilt batch may have been dropped.
            undone.len = b.len;
            b.push(self.per_call(time(calls, || make(next.next().unwrap_or(0))), calls));
            undone.push(self.per_call(time(calls, || undo(last.next().unwrap_or(0))), calls));
        });
        undone.len = made.len;
        (made.spread(), undone.spread())
    }

    /// ns of single calls of `op`, `calls` times: for what is too slow to batch.
    pub(crate) fn spread_single(&self, calls: u32, mut op: impl FnMut()) -> Spread {
        let mut batches = Batches::default();
        for _ in 0..calls {
            batches.push(self.per_call(time(1, &mut op), 1));
        }
        batches.spread()
    }

    fn per_call(&self, batch_ns: f64, calls: u32) -> f64 {
        ((batch_ns - self.clock_ns) / f64::from(calls.max(1)) - self.loop_ns).max(0.0)
    }

    /// Batch after batch. One during which another program ran says nothing of the call's price
    /// and is dropped; if that is every one, the spread is all zeros.
    fn repeat(&self, batches: &mut Batches, mut batch: impl FnMut(&mut Batches)) {
        let start = Instant::now();
        let mut switches = sys::switches();
        loop {
            let before = (batches.len, switches);
            batch(batches);
            switches = sys::switches();
            if switches != before.1 {
                batches.len = before.0;
            }
            let spent = start.elapsed();
            let enough = ENOUGH.iter().any(|(times, least)| spent >= self.budget * *times && batches.len >= *least);
            if enough || batches.len == MAX_BATCHES {
                return;
            }
        }
    }
}

/// Elapsed ns of `calls` times `op`, the clock's own share included.
#[inline(always)]
fn time(calls: u32, mut op: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        op();
    }
    start.elapsed().as_nanos() as f64
}

/// Warms `op` up and says how many make a batch.
fn calls_per_batch(op: &mut impl FnMut()) -> u32 {
    let first = (0..4).map(|_| time(1, &mut *op)).fold(f64::INFINITY, f64::min);
    let few = (BATCH_NS / first.max(1.0)).clamp(1.0, 64.0) as u32;
    let each = (0..3).map(|_| time(few, &mut *op)).fold(f64::INFINITY, f64::min) / f64::from(few);
    (BATCH_NS / each.max(0.1)).clamp(1.0, MAX_CALLS) as u32
}

struct Batches {
    ns: [f64; MAX_BATCHES],
    len: usize,
}

impl Default for Batches {
    fn default() -> Self {
        Self { ns: [0.0; MAX_BATCHES], len: 0 }
    }
}

impl Batches {
    fn push(&mut self, ns: f64) {
        if let Some(slot) = self.ns.get_mut(self.len) {
            *slot = ns;
            self.len += 1;
        }
    }

    fn spread(&mut self) -> Spread {
        let ns = self.ns.get_mut(..self.len).unwrap_or_default();
        ns.sort_unstable_by(f64::total_cmp);
        let at = |i: usize| ns.get(i).copied().unwrap_or_default();
        let worst = ns.len().div_ceil(20);
        Spread { min: at(0), median: at(ns.len() / 2), high: at(ns.len().saturating_sub(worst + 1).max(ns.len() / 2)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_leaves_the_worst_twentieth_out() {
        let mut batches = Batches::default();
        (1..=100).rev().for_each(|i| batches.push(f64::from(i)));
        assert_eq!(batches.spread(), Spread { min: 1.0, median: 51.0, high: 95.0 });
        let mut one = Batches::default();
        one.push(7.0);
        assert_eq!(one.spread(), Spread { min: 7.0, median: 7.0, high: 7.0 });
        assert_eq!(Batches::default().spread(), Spread::default());
    }

    #[test]
    fn more_batches_than_fit_are_no_harm() {
        let mut batches = Batches::default();
        (0..2 * MAX_BATCHES).for_each(|_| batches.push(1.0));
        assert_eq!(batches.len, MAX_BATCHES);
        assert_eq!(batches.spread(), Spread { min: 1.0, median: 1.0, high: 1.0 });
    }

    #[test]
    fn a_batch_that_another_program_ran_in_is_dropped() {
        let meter = Meter::new(Duration::from_micros(200));
        // On a box that is held up a sleep may be over before the thread has been switched away.
        let nap = || {
            let before = sys::switches();
            while sys::switches() == before {
                std::thread::sleep(Duration::from_micros(50));
            }
        };
        assert_eq!(meter.spread(nap), Spread::default());
        assert_eq!(meter.spread_pair(4, |_| nap(), |_| ()), Default::default());
    }

    #[test]
    fn a_pair_is_made_and_undone_as_often() {
        let meter = Meter::new(Duration::from_micros(200));
        let (mut made, mut undone) = ([0u64; 8], [0u64; 8]);
        meter.spread_pair(8, |i| made[i] += 1, |i| undone[i] += 1);
        assert_eq!(made, undone);
        assert!(made.iter().all(|n| *n == made[0] && *n > 16));
    }

    #[test]
    fn a_longer_operation_costs_more() {
        let meter = Meter::new(Duration::from_millis(1));
        let work = |rounds: u64| {
            move || {
                std::hint::black_box((0..rounds).fold(1u64, |x, i| std::hint::black_box(x ^ i)));
            }
        };
        let dearer = (0..5).any(|_| {
            let (short, long) = (meter.spread(work(50)).min, meter.spread(work(500)).min);
            (5.0..20.0).contains(&(long / short))
        });
        assert!(dearer);
    }
}
