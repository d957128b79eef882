//! Watches all processes of the box.

use super::session::Session;
use crate::table::Table;
use crate::{procfs, sys};
use foldhash::HashMap;
use std::collections::BTreeSet;

impl Session {
    /// Watches all processes that run; the kernel watches those that they make from then on. Returns the number of
    /// their threads.
    pub(super) fn enter_all(&mut self) -> i64 {
        let mut known = BTreeSet::new();
        let mut times = HashMap::default();
        let mut threads = 0;
        // A process that is watched has its children watched, so at some point no new ones appear.
        loop {
            let before = known.len();
            for pid in procfs::processes() {
                if !known.insert(pid) || self.counter.watches(pid) {
                    continue;
                }
                times.insert(pid, procfs::own_times([pid]));
                // A process that has ended meanwhile is none.
                threads += self.enter(pid).unwrap_or(0);
            }
            if known.len() == before {
                break;
            }
        }
        self.times_before = Some(times);
        threads
    }

    /// Adds the processor time of the processes that run to their images. Returns user and system time of all, ns; the
    /// kernel tells no such parts of those that have ended: their time is added to the first.
    pub(super) fn add_processor_times(&mut self, table: &mut Table) -> Option<(u64, u64)> {
        let before = self.times_before.as_ref()?;
        let now = sys::now();
        let mut ran: HashMap<u64, u64> = HashMap::default();
        for slot in self.counter.living() {
            // Threads that a kernel hides from its programs are seen to get a processor, but never to leave it.
            let is_on = slot.is_on_processor() && slot.ran > 0;
            let since = if is_on { now.saturating_sub(slot.switched_at) } else { 0 };
            *ran.entry(slot.image).or_default() += slot.ran.saturating_add(since);
        }
        let mut all = (table.images.iter().fold(0u64, |sum, image| sum.saturating_add(image.cpu_ns)), 0u64);
        for pid in procfs::processes() {
            let Some(number) = self.counter.image_of(pid) else { continue };
            let (was, is) = (before.get(&pid).copied().unwrap_or_default(), procfs::own_times([pid]));
            // A process of the same number may have ended before this one began.
            let (user, sys) = (is.0.saturating_sub(was.0), is.1.saturating_sub(was.1));
            // The kernel counts ticks of 10 ms. A thread that had its processor all the time was never seen to get it.
            let seen = ran.get(&number).copied().unwrap_or(0).saturating_add(self.images.ran_ns(number));
            let cpu_ns = user.saturating_add(sys).max(seen);
            all = (all.0.saturating_add(cpu_ns - sys.min(cpu_ns)), all.1.saturating_add(sys.min(cpu_ns)));
            let image = self.images.of(number, table);
            if let Some(image) = table.images.get_mut(image.index()) {
                image.cpu_ns = image.cpu_ns.saturating_add(cpu_ns);
            }
        }
        Some(all)
    }
}
