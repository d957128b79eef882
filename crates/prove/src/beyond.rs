//! Why processor time changed by more or less than the calls that are gone cost.

use crate::{CallCounts, Measured, Verdict};

/// What is won beside the calls' own price, or eats it up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beyond {
    /// What the calls that are gone cost in watched runs, ns.
    pub calls_ns: f64,
    /// Processor time won, ns.
    pub cpu_ns: f64,
    /// The reason.
    pub why: Why,
}

/// A reason why what is won is not what the calls cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Page faults went with the calls, from so many to so many.
    Faults(u64, u64),
    /// The program's own work around the calls went with them: user time.
    Around,
    /// The kernel's work outside the calls went with them: system time.
    Kernel,
    /// What is done in their place costs as much, or nearly.
    Replaced,
    /// More elapsed time is won than processor time: the calls waited.
    Waiting,
}

impl Why {
    /// As JSON says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faults(..) => "page-faults",
            Self::Around => "work-around",
            Self::Kernel => "kernel-elsewhere",
            Self::Replaced => "replaced",
            Self::Waiting => "waiting",
        }
    }
}

/// A price that is within this factor of what was won needs no reason.
const FACTOR: f64 = 2.0;
/// A page fault costs some hundred ns at least, and with a page to be cleared a microsecond and
/// more: fewer than one in this many ns do not explain what was won.
const NS_A_FAULT: f64 = 5_000.0;

/// The reason, where there is a gain in either time and it is far from what the calls cost.
pub fn beyond(m: &Measured, a: &CallCounts, b: &CallCounts) -> Option<Beyond> {
    let calls_ns = a.toll_ns? as f64 - b.toll_ns? as f64;
    let won = |of: fn(&crate::Side) -> f64| of(&m.a) - of(&m.b);
    let (cpu_ns, wall_ns) = (won(|s| s.cpu_ns.median), won(|s| s.wall_ns.median));
    let told = |why| Some(Beyond { calls_ns, cpu_ns, why });
    let faster = |v: Verdict| v == Verdict::Faster;
    // A busy box has its programs wait as well, in calls and out of them: what used the processor
    // most of its time waited for that.
    let waited_ns = a.waited_ns.zip(b.waited_ns).map_or(0.0, |(a, b)| a as f64 - b as f64);
    let waits = m.a.cpu_ns.median < m.a.wall_ns.median / FACTOR && waited_ns > wall_ns / FACTOR;
    if waits && faster(m.wall.verdict) && wall_ns > FACTOR * cpu_ns.max(calls_ns).max(0.0) {
        return told(Why::Waiting);
    }
    if a.total.median > b.total.median && calls_ns > FACTOR * cpu_ns.max(0.0) && calls_ns > 0.01 * m.a.cpu_ns.median {
        return told(Why::Replaced);
    }
    let unexplained = cpu_ns - calls_ns;
    if !faster(m.cpu.verdict) || cpu_ns <= FACTOR * calls_ns.max(0.0) {
        return None;
    }
    let (before, after) = (m.a.faults.median, m.b.faults.median);
    if after < before / 2.0 && (before - after) * NS_A_FAULT > unexplained {
        return told(Why::Faults(before as u64, after as u64));
    }
    let user = won(|s| s.user_ns.median);
    told(if user > unexplained / 2.0 { Why::Around } else { Why::Kernel })
}
