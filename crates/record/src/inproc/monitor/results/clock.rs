//! Converts the time stamp counter to nanoseconds, and measures the cost of reading it.

use crate::inproc::monitor::sys;
use std::arch::x86_64::__cpuid;

/// Rate of the time stamp counter against CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    begin: (u64, u64),
    first: f64,
}

/// Duration of the first measurement, ns. It is good to a few thousandths, and is made before there is a run to measure
/// by.
const FIRST_NS: u64 = 300_000;

impl Ratio {
    /// Begins to measure the rate.
    pub(crate) fn begin() -> Self {
        Self { begin: both(), first: 1.0 }
    }

    /// Takes a first figure of the rate, over the time since the beginning, but over at least [`FIRST_NS`].
    pub(crate) fn settled(mut self) -> Self {
        let mut now = both();
        while now.1.saturating_sub(self.begin.1) < FIRST_NS {
            now = both();
        }
        self.first = per_ns(self.begin, now);
        self
    }

    /// Returns the first figure of the rate, cycles per ns.
    pub(crate) fn cycles_per_ns(&self) -> f64 {
        self.first
    }

    /// Returns the rate over all the time since the beginning, cycles per ns.
    pub(crate) fn so_far(&self) -> f64 {
        per_ns(self.begin, both())
    }
}

/// A run's clock rate and start, by which cycles are converted to times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) per_ns: f64,
    /// Cycles that counting adds to every timed call.
    pub(crate) own_cycles: f64,
    /// Number of cycles since the run began.
    pub(crate) cycles: u64,
    /// Value of the time stamp counter when the run began.
    pub(crate) start_cycles: u64,
}

impl Clock {
    pub(crate) fn ns(&self, cycles: f64) -> u64 {
        (cycles.max(0.0) / self.per_ns) as u64
    }

    /// Returns the time from the run's start to a time stamp, ns; `None` if the stamp lies outside the run.
    pub(crate) fn at_ns(&self, stamp: u64) -> Option<u64> {
        let since = stamp.checked_sub(self.start_cycles).filter(|since| *since <= self.cycles)?;
        Some(self.ns(since as f64))
    }
}

/// The time at which a run began, and the rate of its cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock {
    /// Start of the run by CLOCK_MONOTONIC, ns.
    start_ns: u64,
    /// Start of the run by the time stamp counter.
    start_cycles: u64,
    pub(crate) ratio: Ratio,
}

impl RunClock {
    /// Starts the clock of a run that begins now.
    pub(crate) fn begin(ratio: Ratio) -> Self {
        Self { start_ns: sys::now(), start_cycles: sys::tsc(), ratio }
    }

    /// Makes this moment the run's start.
    pub(crate) fn restart(&mut self) {
        *self = Self::begin(self.ratio);
    }

    /// Returns the time from the run's start to `now`, ns.
    pub(crate) fn at(&self, now: u64) -> u64 {
        now.saturating_sub(self.start_ns)
    }

    /// Returns the clock at the rate measured so far; counting adds `own_cycles` to every timed call.
    pub(crate) fn reading(&self, own_cycles: f64) -> Clock {
        let cycles = sys::tsc().saturating_sub(self.start_cycles);
        Clock { per_ns: self.ratio.so_far(), own_cycles, cycles, start_cycles: self.start_cycles }
    }
}

fn per_ns(from: (u64, u64), to: (u64, u64)) -> f64 {
    let cycles = to.0.saturating_sub(from.0) as f64;
    (cycles / (to.1.saturating_sub(from.1)).max(1) as f64).max(1e-3)
}

/// Reads cycles and nanoseconds of one moment: takes the closest pair of a few.
fn both() -> (u64, u64) {
    let pair = || {
        let before = sys::tsc();
        let ns = sys::now();
        let after = sys::tsc();
        (after.saturating_sub(before), (before.midpoint(after), ns))
    };
    let mut best = pair();
    for _ in 0..8 {
        let next = pair();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// Returns the cycles between two readings with nothing in between. The measured time of every call contains them.
pub(crate) fn reading_cycles() -> u64 {
    (0..2_000)
        .map(|_| {
            let first = sys::tsc();
            sys::tsc().saturating_sub(first)
        })
        .min()
        .unwrap_or(0)
}

/// Returns the time that it takes to read a thread's processor time, ns.
pub(crate) fn cpu_reading_ns() -> f64 {
    const FEW: u64 = 32;
    let few = || {
        let start = sys::now();
        (0..FEW).for_each(|_| {
            std::hint::black_box(crate::sys::own_cpu());
        });
        sys::now().saturating_sub(start)
    };
    let least = (0..4).map(|_| few()).min().unwrap_or(0);
    least as f64 / FEW as f64
}

/// Returns true if the processor says that the counter always runs at one rate (AMD64 Architecture Programmer's Manual
/// 3, CPUID 8000_0007: TscInvariant; Intel SDM 2A the same). The kernel calls this constant_tsc and nonstop_tsc.
pub(crate) fn is_constant() -> bool {
    const EXTENDED: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    __cpuid(EXTENDED).eax >= POWER && __cpuid(POWER).edx & 1 << 8 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_begin_with_the_run() {
        let ratio = Ratio::begin();
        let mut clock = RunClock::begin(ratio);
        std::thread::sleep(std::time::Duration::from_millis(30));
        clock.restart();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let (stamp, now) = both();
        let by_stamp = clock.reading(0.0).at_ns(stamp).unwrap();
        assert!(by_stamp.abs_diff(clock.at(now)) < 1_000_000, "{by_stamp} {}", clock.at(now));
    }

    #[test]
    fn the_kernel_agrees() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = info.lines().find(|l| l.starts_with("flags")).unwrap();
        let has = |flag: &str| flags.split_ascii_whitespace().any(|f| f == flag);
        assert_eq!(is_constant(), has("constant_tsc") && has("nonstop_tsc"));
    }
}
