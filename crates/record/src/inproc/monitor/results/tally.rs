//! Totals of an image that belong to no row.

use crate::inproc::monitor::results::cpu_time::{ObserverTime, ProcessorUse};
use crate::table::ImageId;
use std::collections::{BTreeMap, BTreeSet};
use systoll_hooks::assemble::{Losses, MadeInPlace};
use systoll_model::Sysno;

/// Totals of an image that belong to no row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) vdso_calls: u64,
    /// Processor time that the image's threads have spent on asking.
    pub(crate) asking: ObserverTime,
    /// Processor time of each process, as noted by its threads.
    pub(crate) used: BTreeMap<i32, ProcessorUse>,
    pub(crate) losses: Losses,
    /// Calls that were made although they were to be answered in place.
    pub(crate) in_place: MadeInPlace,
    /// Number of nodes that were new when the budget allowed no window.
    pub(crate) unopened: u64,
    /// Calls whose return is not hooked, so that their errors are unknown, by system call.
    pub(crate) blind: BTreeMap<Sysno, u64>,
    /// Number of calls of the x32 ABI that the kernel did not refuse.
    pub(crate) foreign: u64,
    /// Number of calls that can block and have no toll, because nothing tells waiting from working.
    pub(crate) untold: u64,
    /// Threads that had a slot, by image.
    pub(crate) threads: BTreeMap<ImageId, Threads>,
}

impl Tally {
    pub(crate) fn add(&mut self, more: &Self) {
        self.vdso_calls = self.vdso_calls.saturating_add(more.vdso_calls);
        self.asking.add(more.asking);
        for (pid, used) in &more.used {
            self.used.entry(*pid).or_default().add(used);
        }
        self.losses.add(&more.losses);
        self.in_place.add(&more.in_place);
        self.unopened = self.unopened.saturating_add(more.unopened);
        self.untold = self.untold.saturating_add(more.untold);
        self.foreign = self.foreign.saturating_add(more.foreign);
        for (syscall, n) in &more.blind {
            let blind = self.blind.entry(*syscall).or_default();
            *blind = blind.saturating_add(*n);
        }
        for (image, more) in &more.threads {
            let threads = self.threads.entry(*image).or_default();
            threads.threads += more.threads;
            threads.processes.extend(&more.processes);
        }
    }
}

/// Number of threads of an image, and its processes: several if images are folded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    pub(crate) threads: u64,
    pub(crate) processes: BTreeSet<i32>,
}
