//! Times short operations repeatedly, in batches that are short enough to fit between interrupts.
//!
//! Invariant: nothing here allocates or panics: it runs in a child of a threaded process.

use crate::sys;
use std::time::{Duration, Instant};
use systoll_model::Spread;

/// Target length of a batch, in ns: long beside reading the clock, short beside a timer tick.
const BATCH_NS: f64 = 8_000.0;
const MAX_CALLS: f64 = 8_192.0;
const MAX_BATCHES: usize = 1_024;

/// The end of a measurement: after this multiple of its budget, this number of batches is enough.
const ENOUGH: [(u32, usize); 3] = [(1, 16), (8, 4), (GIVE_UP, 0)];
/// Multiple of a measurement's budget that it may take on a busy box.
pub(crate) const GIVE_UP: u32 = 40;

/// Measures within a budget, and subtracts the cost of the clock and the loop.
pub(crate) struct Meter {
    budget: Duration,
    clock_ns: f64,
    loop_ns: f64,
}

impl Meter {
    /// Makes a meter whose figures each take about `budget`.
    pub(crate) fn new(budget: Duration) -> Self {
        let mut meter = Self { budget: Duration::from_micros(100), clock_ns: 0.0, loop_ns: 0.0 };
        meter.clock_ns = (0..64).map(|_| time(0, || ())).fold(f64::INFINITY, f64::min);
        meter.loop_ns = meter.spread(|| std::hint::black_box(())).min;
        meter.budget = budget;
        meter
    }

    /// Measures `op`, in ns a call.
    pub(crate) fn spread(&self, mut op: impl FnMut()) -> Spread {
        let calls = calls_per_batch(&mut op);
        let mut batches = Batches::default();
        self.repeat(&mut batches, |b| b.push(self.per_call(time(calls, &mut op), calls)));
        batches.spread()
    }

    /// Measures `op`, in ns a call; only batches after which `holds` returns true count.
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

    /// Measures `op`, in ns a call. Calls `between` before each batch, untimed. A batch has at most
    /// `most` calls.
    pub(crate) fn spread_between(&self, most: u32, mut op: impl FnMut(), mut between: impl FnMut()) -> Spread {
        let calls = calls_per_batch(&mut op).min(most);
        let mut batches = Batches::default();
        self.repeat(&mut batches, |b| {
            between();
            b.push(self.per_call(time(calls, &mut op), calls));
        });
        batches.spread()
    }

    /// Measures `make` and `undo`, in ns a call each. Both get their index within the batch of
    /// `calls`.
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
            // Both lists stay in step, since a disturbed batch may have been dropped from `made`.
            undone.len = b.len;
            b.push(self.per_call(time(calls, || make(next.next().unwrap_or(0))), calls));
            undone.push(self.per_call(time(calls, || undo(last.next().unwrap_or(0))), calls));
        });
        undone.len = made.len;
        (made.spread(), undone.spread())
    }

    /// Measures `calls` single calls of `op`, in ns: for an operation that is too slow for batches.
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

    /// Runs batch after batch. A batch during which another program ran is dropped, since it says
    /// nothing about the price. If all are dropped, the spread is all zeros.
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

/// Returns the elapsed ns of `calls` times `op`, with the clock's share.
#[inline(always)]
fn time(calls: u32, mut op: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        op();
    }
    start.elapsed().as_nanos() as f64
}

/// Warms `op` up. Returns the number of calls in a batch.
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
        // On an overloaded box, a sleep may be over before the thread is switched away.
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
