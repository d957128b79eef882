//! The comparison: first whether both do the same, then how long they take.

use crate::stats::{Interval, median_interval, signed_rank_interval};
use crate::{
    Change, Comparison, Difference, Digest, Estimate, Executor, Measured, Options, Outcome, Output, ProveError, Run,
    Sameness, Side, Verdict,
};
use systoll_cure::{Spec, Usage};
use systoll_model::{EnvChange, Exit};

/// A variable of random length, set in timed runs only: the environment's size moves a program's
/// stack, and with it its speed, by a little and in one direction for all runs.
const OFFSET_VARIABLE: &str = "SYSTOLL_STACK_OFFSET";

/// Runs `a` against itself and against `b` to see whether they do the same, then both in
/// interleaved pairs, output discarded, to see what they take.
///
/// Pairs come two at a time, as A B B A or B A A B (drawn from the seed), so that a box growing
/// slower or faster over time favours neither.
///
/// # Errors
/// Where the options make no sense, or a program can't be run.
pub fn compare(exec: &mut dyn Executor, a: &Spec, b: &Spec, options: &Options) -> Result<Comparison, ProveError> {
    options.check()?;
    let outcome = compare_outcomes(exec, a, b)?;
    let Outcome::Same { exit, .. } = outcome else { return Ok(Comparison { outcome, measured: None }) };
    let mut random = Random(options.seed);
    let (mut runs_a, mut runs_b) = (Vec::new(), Vec::new());
    let differs = |a, b| Comparison { outcome: Outcome::Differs(Difference::Exit { a, b }), measured: None };
    let pairs = options.pairs as usize;
    while runs_b.len() < pairs || runs_a.len() < pairs {
        let a_first = random.next().is_multiple_of(2);
        for is_a in [a_first, !a_first, !a_first, a_first] {
            let (spec, runs) = if is_a { (a, &mut runs_a) } else { (b, &mut runs_b) };
            if runs.len() == pairs {
                continue;
            }
            let usage = exec.run(&with_offset(spec, &mut random), Output::Discarded)?.usage;
            if usage.exit != exit {
                return Ok(if is_a { differs(usage.exit, exit) } else { differs(exit, usage.exit) });
            }
            runs.push(usage);
        }
    }
    let measured = measure(&runs_a, &runs_b, options)?;
    Ok(Comparison { outcome, measured: Some(measured) })
}

fn with_offset(spec: &Spec, random: &mut Random) -> Spec {
    let length = usize::try_from(random.next() % 4096).unwrap_or(0);
    spec.clone().env(EnvChange::Set(OFFSET_VARIABLE.into(), "x".repeat(length).into()))
}

fn compare_outcomes(exec: &mut dyn Executor, a: &Spec, b: &Spec) -> Result<Outcome, ProveError> {
    let first = exec.run(a, Output::Digested)?;
    let second = exec.run(a, Output::Digested)?;
    let other = exec.run(b, Output::Digested)?;
    if first.usage.exit != second.usage.exit {
        return Ok(Outcome::Differs(Difference::Itself));
    }
    let exits = (first.usage.exit, other.usage.exit);
    if exits.0 != exits.1 {
        return Ok(Outcome::Differs(Difference::Exit { a: exits.0, b: exits.1 }));
    }
    let stdout = compare_stream(|r| r.stdout, &first, &second, &other);
    let stderr = compare_stream(|r| r.stderr, &first, &second, &other);
    Ok(match (stdout, stderr) {
        (Stream::Varies, _) | (_, Stream::Varies) => Outcome::Differs(Difference::Itself),
        (Stream::Differs, _) => Outcome::Differs(Difference::Stdout),
        (_, Stream::Differs) => Outcome::Differs(Difference::Stderr),
        (Stream::Same(out), Stream::Same(err)) => same(exits.0, out.min(err)),
    })
}

fn same(exit: Exit, output: Sameness) -> Outcome {
    Outcome::Same { exit, output }
}

enum Stream {
    Same(Sameness),
    Differs,
    Varies,
}

/// Demands of `b` as much as `a` keeps up by itself.
fn compare_stream(stream: impl Fn(&Run) -> Option<Digest>, first: &Run, second: &Run, other: &Run) -> Stream {
    let [first, second, other] = [first, second, other].map(|r| stream(r).unwrap_or_default());
    let itself = first.same(&second);
    if itself == Sameness::Different {
        Stream::Varies
    } else if first.same(&other) >= itself {
        Stream::Same(itself)
    } else {
        Stream::Differs
    }
}

fn measure(a: &[Usage], b: &[Usage], options: &Options) -> Result<Measured, ProveError> {
    let change = |of: fn(&Usage) -> f64, floor| change(a, b, of, floor, options);
    Ok(Measured {
        pairs: options.pairs,
        confidence: options.confidence,
        a: side(a, options)?,
        b: side(b, options)?,
        wall: change(wall, CLOCK_STEP_NS)?,
        cpu: change(cpu, CLOCK_STEP_NS)?,
        user: change(user, CLOCK_STEP_NS)?,
        sys: change(sys, CLOCK_STEP_NS)?,
        max_rss: change(max_rss, PAGE)?,
    })
}

/// The kernel gives processor time in µs; a ratio to less says nothing.
const CLOCK_STEP_NS: f64 = 1_000.0;
const PAGE: f64 = 4_096.0;

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

fn side(runs: &[Usage], options: &Options) -> Result<Side, ProveError> {
    let estimate = |of: fn(&Usage) -> f64| {
        let values: Vec<f64> = runs.iter().map(of).collect();
        let Interval { estimate, low, high } = median_interval(&values, options.alpha()).ok_or_else(too_few)?;
        Ok::<_, ProveError>(Estimate { median: estimate, low, high })
    };
    Ok(Side {
        wall_ns: estimate(wall)?,
        cpu_ns: estimate(cpu)?,
        user_ns: estimate(user)?,
        sys_ns: estimate(sys)?,
        max_rss: estimate(max_rss)?,
    })
}

fn change(
    a: &[Usage],
    b: &[Usage],
    of: fn(&Usage) -> f64,
    floor: f64,
    options: &Options,
) -> Result<Change, ProveError> {
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| (of(b).max(floor) / of(a).max(floor)).ln()).collect();
    let interval = signed_rank_interval(&ratios, options.alpha()).ok_or_else(too_few)?;
    let percent = |log: f64| log.exp_m1() * 100.0;
    let (low, high) = (percent(interval.low), percent(interval.high));
    let verdict = match options.negligible_percent {
        n if high < -n => Verdict::Faster,
        n if low > n => Verdict::Slower,
        _ => Verdict::NoDifference,
    };
    Ok(Change { percent: percent(interval.estimate), low, high, verdict })
}

fn too_few() -> ProveError {
    ProveError::Options("too few pairs for an interval".into())
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and good enough to toss coins.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests;
