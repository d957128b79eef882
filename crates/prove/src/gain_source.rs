//! Finds the reason why the gain of processor time differs from the cost of the calls that are
//! gone.

use crate::{CallCounts, Comparison, Measured, Verdict};
use systoll_model::Sysno;

/// The gain, the cost of the calls that are gone, and the reason for the difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GainSource {
    /// Cost of the calls that are gone, in watched runs, ns; 0 if none is.
    pub calls_ns: f64,
    /// Gain of processor time, ns.
    pub cpu_ns: f64,
    /// Upper bound of the gain of processor time, ns, from its interval.
    pub most_cpu_ns: f64,
    /// The reason for the difference.
    pub why: GainReason,
}

/// A reason why the gain differs from the cost of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainReason {
    /// Page faults went with the calls: their number before and after.
    Faults(u64, u64),
    /// The program's own work around the calls went with them: user time.
    Around,
    /// The kernel's work outside the calls went with them: system time.
    Kernel,
    /// The gain is less than the calls cost, and other calls replace them.
    Replaced,
    /// The gain is less than the calls cost, for an unknown reason.
    NotWon,
    /// More elapsed time is won than processor time: the calls waited.
    Waiting,
}

impl GainReason {
    /// Returns the reason's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faults(..) => "page-faults",
            Self::Around => "work-around",
            Self::Kernel => "kernel-elsewhere",
            Self::Replaced => "replaced",
            Self::NotWon => "not-won",
            Self::Waiting => "waiting",
        }
    }
}

/// A gain is explained by the cost of the calls that are gone if neither is more than this many
/// times the other.
const FACTOR: f64 = 2.0;
/// Largest gain that one page fault explains, ns. A fault costs some hundred ns, and a microsecond
/// or more if a page has to be cleared: fewer faults do not explain the gain.
const NS_A_FAULT: f64 = 5_000.0;

impl Comparison {
    /// Returns the reason why the gain is far from the cost of the calls that are gone, if it is.
    /// `a` and `b` are the calls of each side. Returns `None` for watched runs, whose times include
    /// the cost of watching.
    pub fn gain_source(&self, a: &CallCounts, b: &CallCounts) -> Option<GainSource> {
        gain_source(self.measured.as_ref().filter(|_| !self.watched)?, a, b)
    }
}

/// Returns the reason, if there is a gain in either time and it is far from the calls' cost.
fn gain_source(m: &Measured, a: &CallCounts, b: &CallCounts) -> Option<GainSource> {
    let (all_a, all_b) = (a.toll_ns?, b.toll_ns?);
    // The cost of calls that are made equally often varies: it is no part of the cost of the calls
    // that are gone.
    let gone = gone_ns(a, b);
    let calls_ns = gone.unwrap_or(0.0);
    // A cheaper call of the same name may have replaced them.
    let cheaper_ns = (all_a as f64 - all_b as f64).max(calls_ns);
    let won = |of: fn(&crate::Side) -> f64| of(&m.a) - of(&m.b);
    let (cpu_ns, wall_ns) = (won(|s| s.cpu_ns.median), won(|s| s.wall_ns.median));
    let most_cpu_ns = (0.0 - m.cpu.low / 100.0 * m.a.cpu_ns.median).max(0.0);
    let told = |why| Some(GainSource { calls_ns, cpu_ns, most_cpu_ns, why });
    let faster = |v: Verdict| v == Verdict::Faster;
    // On a busy box, programs also wait for the processor, in calls and outside, but equally on
    // both sides.
    let waited_ns = a.waited_ns.zip(b.waited_ns).map_or(0.0, |(a, b)| a as f64 - b as f64);
    let idle = |s: &crate::Side| s.wall_ns.median / s.cpu_ns.median.max(1_000.0);
    let waits = idle(&m.a) >= FACTOR * idle(&m.b) && waited_ns > wall_ns / FACTOR;
    if waits && faster(m.wall.verdict) && wall_ns > FACTOR * cpu_ns.max(cheaper_ns).max(0.0) {
        return told(GainReason::Waiting);
    }
    // A gain that the runs can't rule out is not missing.
    if calls_ns > FACTOR * most_cpu_ns && calls_ns > 0.01 * m.a.cpu_ns.median {
        let others = b.more_than(a).next().is_some();
        return told(if others { GainReason::Replaced } else { GainReason::NotWon });
    }
    let unexplained = cpu_ns - calls_ns;
    if gone.is_none() || !faster(m.cpu.verdict) || cpu_ns <= FACTOR * calls_ns {
        return None;
    }
    let (before, after) = (m.a.faults.median, m.b.faults.median);
    if after < before / 2.0 && (before - after) * NS_A_FAULT > unexplained {
        return told(GainReason::Faults(before as u64, after as u64));
    }
    let user = won(|s| s.user_ns.median);
    told(if user > unexplained / 2.0 { GainReason::Around } else { GainReason::Kernel })
}

/// Returns the cost of the calls that `a` makes and `b` does not, in ns; `None` if none is gone.
pub(crate) fn gone_ns(a: &CallCounts, b: &CallCounts) -> Option<f64> {
    let toll = |of: &CallCounts, s: &Sysno| of.toll_by_syscall.get(s).copied().unwrap_or(0) as f64;
    let gone: Vec<f64> = a.more_than(b).map(|s| toll(a, &s) - toll(b, &s)).collect();
    (!gone.is_empty()).then(|| gone.iter().sum::<f64>().max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measure;
    use crate::{Options, Range, Stopped, Usage};
    use systoll_model::Exit;

    const MS: u64 = 1_000_000;

    fn usage(wall: u64, user: u64, sys: u64, faults: u64) -> Usage {
        let (wall_ns, user_ns, sys_ns) = (wall * MS, user * MS, sys * MS);
        Usage { exit: Exit::Code(0), wall_ns, user_ns, sys_ns, max_rss: 0, switches: 0, faults }
    }

    fn counts(calls: u64, toll: u64, waited: u64) -> CallCounts {
        let total = Range { low: calls, median: calls, high: calls };
        let (toll_ns, waited_ns) = (Some(toll * MS), Some(waited * MS));
        let (by_syscall, toll_by_syscall) = ([(Sysno(39), total)].into(), [(Sysno(39), toll * MS)].into());
        CallCounts { total, by_syscall, toll_by_syscall, toll_ns, waited_ns, ..CallCounts::default() }
    }

    /// Checks the reason if `a` makes 1,000 calls of `toll` ms in total that `b` does not make.
    #[track_caller]
    fn check(a: Usage, b: Usage, (toll, waited): (u64, u64), expect: Option<GainReason>) {
        let m = measure(&[a; 10], &[b; 10], Stopped::Asked, &Options::default()).unwrap();
        let told = gain_source(&m, &counts(1_000, toll, waited), &counts(0, 0, 0));
        assert_eq!(told.map(|b| b.why), expect);
    }

    #[test]
    fn a_gain_equal_to_the_calls_price_needs_no_reason() {
        check(usage(100, 50, 50, 9), usage(50, 50, 0, 9), (40, 0), None);
        check(usage(100, 50, 50, 9), usage(100, 50, 50, 9), (0, 0), None);
    }

    /// A program that computes and waits makes a varying number of calls, at a varying cost.
    #[test]
    fn calls_that_may_not_be_gone_need_no_reason() {
        let same = usage(100, 50, 50, 9);
        let m = measure(&[same; 10], &[same; 10], Stopped::Asked, &Options::default()).unwrap();
        let varies = |low, high| {
            let total = Range { low, median: u64::midpoint(low, high), high };
            let toll_by_syscall = [(Sysno(202), 40 * MS)].into();
            CallCounts { by_syscall: [(Sysno(202), total)].into(), toll_by_syscall, total, ..counts(high, 40, 0) }
        };
        assert_eq!(gain_source(&m, &varies(900, 1_100), &CallCounts { toll_ns: Some(0), ..varies(850, 1_000) }), None);
        let told = gain_source(&m, &varies(900, 1_100), &CallCounts { toll_ns: Some(0), ..counts(0, 0, 0) }).unwrap();
        assert_eq!((told.why, told.calls_ns), (GainReason::NotWon, 40.0 * MS as f64));
    }

    #[test]
    fn added_calls_are_the_reason() {
        let same = usage(100, 50, 50, 9);
        let m = measure(&[same; 10], &[same; 10], Stopped::Asked, &Options::default()).unwrap();
        let other =
            CallCounts { by_syscall: [(Sysno(262), Range { low: 9, median: 9, high: 9 })].into(), ..counts(0, 0, 0) };
        let told = |b: &CallCounts| gain_source(&m, &counts(1_000, 40, 0), b).map(|told| told.why);
        assert_eq!(told(&counts(0, 0, 0)), Some(GainReason::NotWon));
        assert_eq!(told(&other), Some(GainReason::Replaced));
    }

    /// A gain within the interval may be real.
    #[test]
    fn a_difference_within_noise_needs_no_reason() {
        let of = |nth: u64, step: u64| usage(87 + nth * step % 23, 87 + nth * step % 23, 0, 9);
        let (a, b): (Vec<_>, Vec<_>) = (0..20).map(|nth| (of(nth, 7), of(nth, 5))).unzip();
        let m = measure(&a, &b, Stopped::Asked, &Options::default()).unwrap();
        assert_eq!(gain_source(&m, &counts(8_000, 4, 0), &counts(0, 0, 0)), None);
    }

    #[test]
    fn a_far_gain_has_a_reason() {
        check(usage(100, 10, 90, 50_000), usage(5, 3, 2, 500), (20, 0), Some(GainReason::Faults(50_000, 500)));
        check(usage(100, 80, 20, 9), usage(10, 10, 0, 9), (20, 0), Some(GainReason::Around));
        check(usage(100, 10, 90, 9), usage(10, 10, 0, 9), (20, 0), Some(GainReason::Kernel));
        check(usage(100, 50, 50, 9), usage(98, 49, 49, 9), (40, 0), Some(GainReason::NotWon));
        check(usage(100, 1, 2, 9), usage(5, 1, 1, 9), (2, 94), Some(GainReason::Waiting));
        // Both sides waited for the processor.
        check(usage(500, 50, 50, 9), usage(200, 50, 0, 9), (40, 350), None);
    }
}
