//! The time of a thread's calls at a node, where only some were timed.
//!
//! Calls timed for themselves are known one by one. Of the rest one of each block was timed, at a place drawn by
//! chance: their mean stands for all of the rest. So the figure has no bias, and how far the samples differ
//! says how far it may be off.

use systoll_hooks::assemble::SlotCounts;
use systoll_hooks::layout::{record, timing};

/// What is known of the time of all calls that returned and were not lost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Calls that figures stand for.
    pub(crate) calls: u64,
    /// Of these, calls that were not timed themselves.
    pub(crate) untimed: u64,
    /// Cycles inside them.
    pub(crate) cycles: f64,
    /// Of these, cycles of those in which the thread was scheduled out.
    pub(crate) waited: f64,
    /// Standard error of `cycles`, more where samples are few.
    pub(crate) error: f64,
    /// Calls by power of two of cycles, `calls` in all.
    pub(crate) histogram: [u64; record::BUCKETS as usize],
}

impl Estimate {
    /// `None`: no call was timed.
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
                (mean, ((sampled.squares as f64 - n * mean * mean) / (n - 1.0)).max(0.0).sqrt())
            }
        };
        let (rest, untimed) = (rest as f64, exact.untimed as f64);
        // What was drawn is known; what was not varies by itself and with the mean.
        let error = deviation * (rest * untimed / n.max(1.0)).sqrt() * widened(sampled.calls);
        let waited = sampled.waited as f64 / n.max(1.0) * rest;
        Some(Self { cycles: known + mean * rest, waited: exact.waited + waited, error, ..exact })
    }
}

/// Lets a histogram that counts `has` calls count `calls`: blocks that have not ended differ from full ones. The
/// fullest buckets give or take, so that rare calls stay as they were.
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

/// Mean and standard deviation of calls that have not waited, by powers of two, where samples don't tell: as much as
/// they can be.
fn of_histogram(slot: &SlotCounts) -> (f64, f64) {
    let (mut left, mut calls, mut sum, mut squares) = (slot.waited as f64, 0.0, 0.0, 0.0);
    for (power, n) in (0i32..record::BUCKETS as i32).zip(&slot.histogram).rev() {
        let middle = 1.5 * 2f64.powi(power);
        // Those that waited are the longest.
        let waited = (left / middle).ceil().min(*n as f64);
        left -= waited * middle;
        let n = *n as f64 - waited;
        calls += n;
        sum += n * middle;
        squares += n * (2f64.powi(power + 1)).powi(2);
    }
    if calls > 0.0 { (sum / calls, (squares / calls).sqrt()) } else { (0.0, 0.0) }
}

/// By how much an interval for 99 of 100 is wider than with any number of samples (Student's distribution).
fn widened(samples: u64) -> f64 {
    const OF: [f64; 10] = [1.0, 1.0, 24.7, 3.85, 2.27, 1.79, 1.57, 1.44, 1.36, 1.30];
    let few = usize::try_from(samples).ok().and_then(|n| OF.get(n));
    few.copied().unwrap_or_else(|| 1.0 + 2.5 / (samples as f64 - 1.0))
}
