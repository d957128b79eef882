//! Estimates the time of a thread's calls at a node if only some of them were timed.
//!
//! Some calls were timed one by one, so their time is known. Of each block of other calls, one at a random place was
//! timed; the mean of these samples is used for all others. The estimate therefore has no bias, and the spread of the
//! samples tells how far it may be off.

use systoll_hooks::assemble::SlotCounts;
use systoll_hooks::layout::{record, timing};

/// The estimated time of all calls that returned and were not lost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Number of calls that the estimate covers.
    pub(crate) calls: u64,
    /// Number of covered calls that were not timed themselves.
    pub(crate) untimed: u64,
    /// Cycles inside the covered calls.
    pub(crate) cycles: f64,
    /// Cycles inside the covered calls in which the thread was scheduled out.
    pub(crate) waited: f64,
    /// Standard error of `cycles`, widened where samples are few.
    pub(crate) error: f64,
    /// Number of calls by power of two of their cycles; `calls` in all.
    pub(crate) histogram: [u64; record::BUCKETS as usize],
}

impl Estimate {
    /// Estimates a slot's counts at a node. Returns `None` if no call was timed.
    pub(crate) fn of(slot: &SlotCounts) -> Option<Self> {
        let sampled = &slot.sampled;
        let stood_for = slot.histogram.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
        if stood_for == 0 {
            return None;
        }
        let themselves = stood_for.saturating_sub(sampled.calls.saturating_mul(timing::BLOCK));
        let all = sampled.calls > 0 || sampled.settled;
        let rest = if all { slot.returned.saturating_sub(themselves) } else { 0 };
        let known = slot.cycles.saturating_sub(sampled.cycles) as f64;
        let drawn = sampled.calls.min(rest);
        let calls = themselves.saturating_add(rest);
        let mut exact = Self {
            calls,
            untimed: rest - drawn,
            cycles: known,
            waited: slot.waited as f64,
            error: 0.0,
            histogram: slot.histogram,
        };
        fill(&mut exact.histogram, stood_for, calls);
        if rest == 0 {
            return Some(exact);
        }
        let n = sampled.calls as f64;
        let (mean, deviation) = match sampled.calls {
            0 | 1 => {
                let (mean, deviation) = of_histogram(slot);
                if sampled.calls == 0 { (mean, deviation) } else { (sampled.cycles as f64, deviation) }
            }
            _ => {
                let mean = sampled.cycles as f64 / n;
                let deviation = ((sampled.squares as f64 - n * mean * mean) / (n - 1.0)).max(0.0).sqrt();
                // The few samples may all have missed the slow calls that the histogram shows.
                let few = sampled.calls < timing::SETTLED;
                (mean, if few { deviation.max(of_histogram(slot).1) } else { deviation })
            }
        };
        let (rest, untimed) = (rest as f64, exact.untimed as f64);
        // The time of timed calls is known; the time of the others varies by itself and with the mean.
        let error = deviation * (rest * untimed / n.max(1.0)).sqrt() * widened(sampled.calls);
        let waited = sampled.waited as f64 / n.max(1.0) * rest;
        Some(Self { cycles: known + mean * rest, waited: exact.waited + waited, error, ..exact })
    }
}

/// Changes a histogram of `has` calls into one of `calls`: unfinished blocks differ from full ones. Only the fullest
/// buckets change, so that rare calls keep their number.
fn fill(histogram: &mut [u64; record::BUCKETS as usize], has: u64, calls: u64) {
    if let (Some(fullest), Some(more)) = (histogram.iter_mut().max(), calls.checked_sub(has)) {
        *fullest = fullest.saturating_add(more);
        return;
    }
    let mut less = has - calls;
    while less > 0
        && let Some(fullest) = histogram.iter_mut().max().filter(|n| **n > 0)
    {
        let taken = less.min(*fullest);
        *fullest -= taken;
        less -= taken;
    }
}

/// Returns the mean and standard deviation of calls that have not waited, by their powers of two, for use without
/// samples. The deviation is the largest possible.
fn of_histogram(slot: &SlotCounts) -> (f64, f64) {
    let (mut left, mut calls, mut sum) = (slot.waited as f64, 0.0, 0.0);
    let mut kept = [0.0; record::BUCKETS as usize];
    for (power, n) in (0i32..record::BUCKETS as i32).zip(&slot.histogram).rev() {
        let middle = 1.5 * 2f64.powi(power);
        // The calls that waited are the longest.
        let waited = (left / middle).ceil().min(*n as f64);
        left -= waited * middle;
        let n = *n as f64 - waited;
        calls += n;
        sum += n * middle;
        if let Some(kept) = kept.get_mut(power as usize) {
            *kept = n;
        }
    }
    if calls <= 0.0 {
        return (0.0, 0.0);
    }
    let mean = sum / calls;
    // Assume that each call is as far from the mean as its power of two allows.
    let squares = (0i32..).zip(kept).map(|(power, n)| {
        let far = (2f64.powi(power + 1) - mean).abs().max((mean - 2f64.powi(power)).abs());
        n * far * far
    });
    (mean, (squares.sum::<f64>() / calls).sqrt())
}

/// Returns the factor by which a 99 % interval is wider than with unlimited samples (Student's distribution).
fn widened(samples: u64) -> f64 {
    const OF: [f64; 10] = [1.0, 1.0, 24.7, 3.85, 2.27, 1.79, 1.57, 1.44, 1.36, 1.30];
    let few = usize::try_from(samples).ok().and_then(|n| OF.get(n));
    few.copied().unwrap_or_else(|| 1.0 + 2.5 / (samples as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_hooks::assemble::Sampled;

    /// Returns the counts of a thread whose calls take `costs` cycles, sampled as the counting code does.
    fn counted(costs: &[u64], random: &mut impl FnMut() -> u64) -> SlotCounts {
        let mut slot = SlotCounts {
            entered: costs.len() as u64,
            returned: costs.len() as u64,
            under_way: false,
            failed: 0,
            cycles: 0,
            waited: 0,
            sampled: Sampled::default(),
            longest: 0,
            shortest: None,
            bytes: 0,
            elided: 0,
            trunk: Default::default(),
            histogram: [0; record::BUCKETS as usize],
            errors: Vec::new(),
        };
        let (mut left, mut at, mut calm) = (0i64, 0i64, 0u64);
        for cost in costs {
            left -= 1;
            if left >= 0 {
                continue;
            }
            let sample = calm >= timing::SETTLED;
            if sample {
                let next = (random() % timing::BLOCK) as i64;
                left = 15 - at + next;
                at = next;
                slot.sampled.calls += 1;
                slot.sampled.cycles += cost;
                slot.sampled.squares += cost.min(&timing::SQUARED_MOST).pow(2);
                if *cost > timing::LONG {
                    left -= at;
                    calm = 0;
                }
            } else {
                (left, calm) = (0, calm + 1);
                if calm == timing::SETTLED {
                    at = (random() % timing::BLOCK) as i64;
                    left = at;
                }
                if *cost > timing::LONG && calm < timing::SETTLED {
                    calm = 0;
                }
            }
            slot.cycles += cost;
            slot.histogram[cost.max(&1).ilog2() as usize] += if sample { timing::BLOCK } else { 1 };
        }
        slot.sampled.settled = calm >= timing::SETTLED;
        slot
    }

    /// Simulates many runs of calls. Returns the mean relative error, and the share of runs in which the interval
    /// holds.
    fn runs(shape: impl Fn(u64, u64) -> u64, calls: u64) -> (f64, f64) {
        const RUNS: u64 = 2_000;
        let mut state = 1u64;
        let mut random = move || {
            // Advance the random number generator splitmix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let (mut errors, mut held) = (0.0, 0u64);
        for _ in 0..RUNS {
            let costs: Vec<u64> = (0..calls).map(|i| shape(i, random())).collect();
            let truth = costs.iter().sum::<u64>() as f64;
            let slot = counted(&costs, &mut random);
            let told = Estimate::of(&slot).unwrap();
            assert_eq!((told.calls, told.histogram.iter().sum::<u64>()), (calls, calls));
            errors += (told.cycles - truth) / truth / RUNS as f64;
            held += u64::from((told.cycles - truth).abs() <= 2.576 * told.error + 1.0);
        }
        (errors, held as f64 / RUNS as f64)
    }

    #[test]
    fn estimates_have_no_bias_and_intervals_hold() {
        let same = |_, _| 200;
        let noisy = |_, r: u64| 150 + r % 100;
        let periodic = |i: u64, _| if i.is_multiple_of(16) { 5_000 } else { 200 };
        let rising = |i: u64, r: u64| 100 + i / 4 + r % 30;
        let two = |_, r: u64| if r.is_multiple_of(10) { 20_000 } else { 300 };
        for calls in [257, 300, 700, 5_000] {
            for (name, (mean, held)) in [
                ("same", runs(same, calls)),
                ("noisy", runs(noisy, calls)),
                ("periodic", runs(periodic, calls)),
                ("rising", runs(rising, calls)),
                ("two", runs(two, calls)),
            ] {
                assert!(held >= 0.97, "{name} {calls}: {mean} {held}");
                // While the first block goes on, none of its calls is used for others.
                let blocks = calls >= timing::SETTLED + 2 * timing::BLOCK;
                assert!(!blocks || mean.abs() < 0.01, "{name} {calls}: {mean} {held}");
            }
        }
    }

    #[test]
    fn long_calls_end_blocks_without_bias() {
        let rare = |_, r: u64| if r.is_multiple_of(500) { 200_000 } else { 300 };
        let (mean, held) = runs(rare, 20_000);
        assert!(mean.abs() < 0.02, "{mean} {held}");
    }

    #[test]
    fn calls_timed_one_by_one_are_exact() {
        let costs: Vec<u64> = (0..256).map(|i| 100 + i).collect();
        let told = Estimate::of(&counted(&costs, &mut || 15)).unwrap();
        assert_eq!((told.cycles, told.error, told.untimed), (costs.iter().sum::<u64>() as f64, 0.0, 0));
    }
}
