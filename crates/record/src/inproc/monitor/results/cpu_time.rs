//! Processor time of each process, the observer's part in it told apart.
//!
//! A process notes what it has used right before it ends by itself, and is asked now and then and
//! at its exec; of one that is killed only the last answer is known, at most
//! a tenth of a second old.

use crate::table::Image;
use systoll_hooks::layout::slot;

/// What follows a hand-shake, as a part of it: the thread has lost what it had in the processor's caches.
/// Measured on a hundred commands against their unwatched twins: 0.1 on an idle box, 0.3 on one that is
/// busy through and through.
const AFTERWARDS: f64 = 0.16;

/// What a hand-shake takes beside what its thread's clock saw of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// Reading the clock twice: half of each reading is not seen.
    each_ns: f64,
    cycles_per_ns: f64,
}

impl Asking {
    pub(crate) fn new(each_ns: f64, cycles_per_ns: f64) -> Self {
        Self { each_ns, cycles_per_ns }
    }
}

/// Processor time that was ours, not the program's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ours {
    pub(crate) ns: u64,
    /// By how much that may be wrong.
    pub(crate) doubt_ns: u64,
    /// Processes whose last word on what they have used is missing.
    pub(crate) unsaid: u64,
}

impl Ours {
    pub(crate) fn add(&mut self, more: Self) {
        self.ns = self.ns.saturating_add(more.ns);
        self.doubt_ns = self.doubt_ns.saturating_add(more.doubt_ns);
        self.unsaid += more.unsaid;
    }
}

/// A struct timespec, ns.
pub(crate) fn in_ns(seconds: u64, ns: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

/// What a process has used of a processor, by what its threads have noted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// Processor time when one of its threads was about to end, ns; zero where none has said.
    said: u64,
    /// What they have spent on asking by their own clocks, ns, and how often they have.
    asked_ns: u64,
    asked_times: u64,
    /// Cycles that they have waited where they may not read their clocks.
    quiet_cycles: u64,
    /// Cycles that they have spent on writing windows.
    written_cycles: u64,
}

impl Used {
    /// As the slot with these fields has it. Of one that is another program now, what its other
    /// threads said is no longer news.
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

    /// What they spent on asking.
    fn asking(&self, asking: Asking) -> Ours {
        let unseen = (self.asked_times as f64 * asking.each_ns) as u64;
        // That was spent looking, but for when others had the processor.
        let quiet = (self.quiet_cycles as f64 / asking.cycles_per_ns.max(1e-3)) as u64;
        let after = (self.asked_ns as f64 * AFTERWARDS) as u64;
        // Others may have had the processor in some of them.
        let written = (self.written_cycles as f64 / asking.cycles_per_ns.max(1e-3)) as u64;
        let ns =
            self.asked_ns.saturating_add(after).saturating_add(written).saturating_add(unseen).saturating_add(quiet);
        let doubt_ns = quiet.saturating_add(written / 4).saturating_add(unseen / 4).saturating_add(after / 2);
        Ours { ns, doubt_ns, unsaid: 0 }
    }

    /// Adds what a process has used to its image, less what it spent on asking: that.
    pub(crate) fn settle(self, image: Option<&mut Image>, known: KnownCpu, asking: Asking) -> Ours {
        let total = self.said.max(known.seen);
        let mut ours = self.asking(asking);
        ours.unsaid = u64::from(self.said == 0 && !known.execed);
        if let Some(image) = image {
            image.cpu_ns = image.cpu_ns.saturating_add(total.saturating_sub(known.before).saturating_sub(ours.ns));
        }
        ours
    }
}

/// What is known of a process's processor time beside its threads' words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownCpu {
    /// As last seen, ns since its start.
    pub(crate) seen: u64,
    /// What it had used before its program's first instruction, ns.
    pub(crate) before: u64,
    /// Whether it is another program now.
    pub(crate) execed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_takes_what_threads_clocks_say_and_what_they_can_not_see() {
        let asking = Asking::new(200.0, 2.0);
        let clocked = Used { asked_ns: 50_000, asked_times: 10, ..Used::default() }.asking(asking);
        assert_eq!((clocked.ns, clocked.doubt_ns), (60_000, 4_500));
        // All that passed may have been looking, or none of it.
        let quiet = Used { quiet_cycles: 8_000, ..Used::default() }.asking(asking);
        assert_eq!((quiet.ns, quiet.doubt_ns), (4_000, 4_000));
        let written = Used { written_cycles: 8_000, ..Used::default() }.asking(asking);
        assert_eq!((written.ns, written.doubt_ns), (4_000, 1_000));
        // Words of a target may hold anything.
        let any = Used {
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
