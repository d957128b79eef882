//! Processor time of each process, separated from the observer's part in it.
//!
//! A process that ends by itself notes the time that it has used. The launcher also reads that time now and then, and
//! at the process's exec. For a process that is killed, only the last reading is known, at most a tenth of a second
//! old.

use crate::table::Image;
use systoll_hooks::layout::slot;

/// Share of a hand-shake's time by which the thread runs slower afterwards, since it has lost its data in the
/// processor's caches. Measured on a hundred commands against their unwatched twins: 0.1 on an idle machine, 0.3 on a
/// fully loaded one.
const AFTERWARDS: f64 = 0.16;

/// Cost of a hand-shake beyond the time that the clock of its thread sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskingCost {
    /// Cost of reading the clock twice, ns: the clock sees half of each reading.
    each_ns: f64,
    cycles_per_ns: f64,
}

impl AskingCost {
    pub(crate) fn new(each_ns: f64, cycles_per_ns: f64) -> Self {
        Self { each_ns, cycles_per_ns }
    }
}

/// Processor time that was the observer's, not the program's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ObserverTime {
    pub(crate) ns: u64,
    /// Amount by which `ns` may be wrong, ns.
    pub(crate) doubt_ns: u64,
    /// Number of processes that ended without noting the time that they used.
    pub(crate) unsaid: u64,
}

impl ObserverTime {
    pub(crate) fn add(&mut self, more: Self) {
        self.ns = self.ns.saturating_add(more.ns);
        self.doubt_ns = self.doubt_ns.saturating_add(more.doubt_ns);
        self.unsaid += more.unsaid;
    }
}

/// Converts a struct timespec to ns.
pub(crate) fn in_ns(seconds: u64, ns: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

/// Processor time of a process, as noted by its threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessorUse {
    /// Processor time of the process when one of its threads was about to end, ns; 0 if none has noted it.
    said: u64,
    /// Time that the threads spent on asking by their own clocks, ns; the next field is how often they asked.
    asked_ns: u64,
    asked_times: u64,
    /// Cycles that the threads waited where they may not read their clocks.
    quiet_cycles: u64,
    /// Cycles that the threads spent on writing windows.
    written_cycles: u64,
}

impl ProcessorUse {
    /// Reads a process's notes from the slot with these fields. If the process has executed another program (`execed`),
    /// the notes of its other threads are out of date.
    pub(crate) fn read(field: impl Fn(u64) -> u64, execed: bool) -> Self {
        let said = in_ns(field(slot::CPU), field(slot::CPU + 8));
        Self {
            said: if execed { 0 } else { said },
            asked_ns: field(slot::ASKED_NS),
            asked_times: field(slot::ASKED_TIMES),
            quiet_cycles: field(slot::QUIET_CYCLES),
            written_cycles: field(slot::RING_CYCLES),
        }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.said = self.said.max(more.said);
        self.asked_ns = self.asked_ns.saturating_add(more.asked_ns);
        self.asked_times = self.asked_times.saturating_add(more.asked_times);
        self.quiet_cycles = self.quiet_cycles.saturating_add(more.quiet_cycles);
        self.written_cycles = self.written_cycles.saturating_add(more.written_cycles);
    }

    /// Returns the time that the threads spent on asking.
    fn asking(&self, asking: AskingCost) -> ObserverTime {
        let unseen = (self.asked_times as f64 * asking.each_ns) as u64;
        // The threads spent these cycles polling, except when others had the processor.
        let quiet = (self.quiet_cycles as f64 / asking.cycles_per_ns.max(1e-3)) as u64;
        let after = (self.asked_ns as f64 * AFTERWARDS) as u64;
        // Others may have had the processor in some of these cycles, too.
        let written = (self.written_cycles as f64 / asking.cycles_per_ns.max(1e-3)) as u64;
        let ns =
            self.asked_ns.saturating_add(after).saturating_add(written).saturating_add(unseen).saturating_add(quiet);
        let doubt_ns = quiet.saturating_add(written / 4).saturating_add(unseen / 4).saturating_add(after / 2);
        ObserverTime { ns, doubt_ns, unsaid: 0 }
    }

    /// Adds the process's time to its image, without the time spent on asking. Returns the time spent on asking.
    pub(crate) fn settle(self, image: Option<&mut Image>, known: CpuReadings, asking: AskingCost) -> ObserverTime {
        let total = self.said.max(known.seen);
        let mut ours = self.asking(asking);
        ours.unsaid = u64::from(self.said == 0 && !known.execed);
        if let Some(image) = image {
            image.cpu_ns = image.cpu_ns.saturating_add(total.saturating_sub(known.before).saturating_sub(ours.ns));
        }
        ours
    }
}

/// Readings of a process's processor time by the launcher, besides the notes of the process's threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuReadings {
    /// Last reading, ns of processor time since the process's start.
    pub(crate) seen: u64,
    /// Processor time before the program's first instruction, ns.
    pub(crate) before: u64,
    /// True if the process has executed another program.
    pub(crate) execed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_costs_include_time_that_threads_clocks_miss() {
        let asking = AskingCost::new(200.0, 2.0);
        let clocked = ProcessorUse { asked_ns: 50_000, asked_times: 10, ..ProcessorUse::default() }.asking(asking);
        assert_eq!((clocked.ns, clocked.doubt_ns), (60_000, 4_500));
        // All of these cycles may have been polling, or none.
        let quiet = ProcessorUse { quiet_cycles: 8_000, ..ProcessorUse::default() }.asking(asking);
        assert_eq!((quiet.ns, quiet.doubt_ns), (4_000, 4_000));
        let written = ProcessorUse { written_cycles: 8_000, ..ProcessorUse::default() }.asking(asking);
        assert_eq!((written.ns, written.doubt_ns), (4_000, 1_000));
        // A target may write anything into its words.
        let any = ProcessorUse {
            asked_ns: u64::MAX,
            asked_times: u64::MAX,
            quiet_cycles: u64::MAX,
            said: 0,
            written_cycles: u64::MAX,
        }
        .asking(asking);
        assert_eq!(any.ns, u64::MAX);
    }
}
