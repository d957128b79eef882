//! Measures what watching costs: this process's time, and that of the kernel's programs in everybody's calls.

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Time that a context switch takes longer while it is watched, ns. Two processes that wake each other through pipes on one
/// processor took 2,660 ns there and back, and 3,920 ns watched; 950 ns of the difference are for its four calls (least of 100 to 150
/// batches, six runs each, 2026-11-30).
const SWITCH_NS: u64 = 150;

/// The cost of watching for some time, ns of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Time of this process, all its threads and its children.
    pub(crate) own_ns: u64,
    /// Time that calls and context switches took longer.
    pub(crate) kernel_ns: u64,
}

impl Cost {
    pub(crate) fn add(&mut self, other: Self) {
        self.own_ns = self.own_ns.saturating_add(other.own_ns);
        self.kernel_ns = self.kernel_ns.saturating_add(other.kernel_ns);
    }

    pub(crate) fn all_ns(self) -> u64 {
        self.own_ns.saturating_add(self.kernel_ns)
    }
}

/// Returns the processor time of this process so far, with that of its children that have ended, ns.
pub(crate) fn own_ns() -> u64 {
    // Every kernel since 2.6.12 has this clock.
    let own = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    let time = |t: nix::sys::time::TimeVal| {
        Duration::from_secs(t.tv_sec().unsigned_abs()) + Duration::from_micros(t.tv_usec().unsigned_abs())
    };
    let children =
        getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Duration::ZERO, |u| time(u.user_time()) + time(u.system_time()));
    u64::try_from((own + children).as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the number of context switches on the box so far.
pub(crate) fn switches() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("ctxt ")?.trim().parse().ok()).unwrap_or(0)
}

/// Returns the time that calls and context switches took longer, ns.
pub(crate) fn in_kernel_ns(calls: u64, added_ns: f64, switches: u64) -> u64 {
    ((calls as f64 * added_ns) as u64).saturating_add(switches.saturating_mul(SWITCH_NS))
}
