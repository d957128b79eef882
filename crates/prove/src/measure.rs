//! Computes estimates, changes and verdicts from the runs of both sides.

use crate::stats::{Cuts, Interval, median_interval, signed_rank_interval};
use crate::{Change, Estimate, Measured, Options, ProveError, Side, Stopped, Verdict};
use systoll_cure::Usage;

/// Resolution of processor times in ns: the kernel reports µs, and ratios of smaller times mean
/// nothing.
const CLOCK_STEP_NS: f64 = 1_000.0;
const PAGE: f64 = 4_096.0;

/// Computes the result of both sides' runs, pair by pair.
pub(crate) fn measure(a: &[Usage], b: &[Usage], stopped: Stopped, options: &Options) -> Result<Measured, ProveError> {
    let cuts = Cuts::new(a.len().min(b.len()), options.alpha()).ok_or_else(too_few)?;
    let change = |of: fn(&Usage) -> f64, floor| change((a, b), of, floor, cuts, options.negligible_percent);
    Ok(Measured {
        pairs: u32::try_from(a.len().min(b.len())).unwrap_or(u32::MAX),
        stopped,
        confidence: options.confidence,
        negligible_percent: options.negligible_percent,
        a: side(a, cuts)?,
        b: side(b, cuts)?,
        wall: change(wall, CLOCK_STEP_NS)?,
        cpu: change(cpu, CLOCK_STEP_NS)?,
        user: change(user, CLOCK_STEP_NS)?,
        sys: change(sys, CLOCK_STEP_NS)?,
        max_rss: change(max_rss, PAGE)?,
    })
}

fn wall(u: &Usage) -> f64 {
    u.wall_ns as f64
}
fn user(u: &Usage) -> f64 {
    u.user_ns as f64
}
fn sys(u: &Usage) -> f64 {
    u.sys_ns as f64
}
fn cpu(u: &Usage) -> f64 {
    u.user_ns.saturating_add(u.sys_ns) as f64
}
fn max_rss(u: &Usage) -> f64 {
    u.max_rss as f64
}
fn switches(u: &Usage) -> f64 {
    u.switches as f64
}
fn faults(u: &Usage) -> f64 {
    u.faults as f64
}

fn side(runs: &[Usage], cuts: Cuts) -> Result<Side, ProveError> {
    let estimate = |of: fn(&Usage) -> f64| estimate_of(&runs.iter().map(of).collect::<Vec<f64>>(), cuts);
    Ok(Side {
        wall_ns: estimate(wall)?,
        cpu_ns: estimate(cpu)?,
        user_ns: estimate(user)?,
        sys_ns: estimate(sys)?,
        max_rss: estimate(max_rss)?,
        switches: estimate(switches)?,
        faults: estimate(faults)?,
        runs: runs.to_vec(),
    })
}

fn change(
    (a, b): (&[Usage], &[Usage]),
    of: fn(&Usage) -> f64,
    floor: f64,
    cuts: Cuts,
    negligible_percent: f64,
) -> Result<Change, ProveError> {
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| (of(b).max(floor) / of(a).max(floor)).ln()).collect();
    change_of(&ratios, cuts, negligible_percent, false)
}

/// Returns the change that the logarithms of pairs' ratios amount to. `more` is true if more is
/// better.
pub(crate) fn change_of(ratios: &[f64], cuts: Cuts, negligible: f64, more: bool) -> Result<Change, ProveError> {
    let interval = signed_rank_interval(ratios, cuts).ok_or_else(too_few)?;
    let percent = |log: f64| log.exp_m1() * 100.0;
    let (low, high) = (percent(interval.low), percent(interval.high));
    let verdict = match (high < -negligible, low > negligible, more) {
        (true, _, false) | (_, true, true) => Verdict::Faster,
        (true, _, true) | (_, true, false) => Verdict::Slower,
        _ => Verdict::NoDifference,
    };
    let pairs_for_one_percent = pairs_for_one_percent(ratios.len(), interval);
    Ok(Change { percent: percent(interval.estimate), low, high, verdict, pairs_for_one_percent })
}

/// Returns the median of a side's values and its interval.
pub(crate) fn estimate_of(values: &[f64], cuts: Cuts) -> Result<Estimate, ProveError> {
    let Interval { estimate, low, high } = median_interval(values, cuts).ok_or_else(too_few)?;
    Ok(Estimate { median: estimate, low, high })
}

/// Returns the number of pairs that a change of 1 % needs: an interval's width falls with the root
/// of the number of pairs, and half of it must be below 1 %.
fn pairs_for_one_percent(pairs: usize, interval: Interval) -> u32 {
    let half = (interval.high - interval.low) / 2.0;
    let needed = pairs as f64 * (half / 0.01f64.ln_1p()).powi(2);
    needed.ceil().max(1.0) as u32
}

pub(crate) fn too_few() -> ProveError {
    ProveError::Options("too few pairs for an interval".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_times_the_pairs_halve_an_interval() {
        let of = |half: f64| Interval { estimate: 0.0, low: -half, high: half };
        let one_percent = 0.01f64.ln_1p();
        assert_eq!(pairs_for_one_percent(20, of(one_percent)), 20);
        assert_eq!(pairs_for_one_percent(20, of(2.0 * one_percent)), 80);
        assert_eq!(pairs_for_one_percent(20, of(0.0)), 1);
    }
}
