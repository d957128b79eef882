//! The kernel's figure of the time for which threads were ready to run and waited for a processor, read now and then.

use crate::procfs::Schedstat;
use std::collections::HashMap;

/// Threads whose figure is read, at most: one reading takes a few microseconds.
const MOST_THREADS: usize = 32;
/// Threads whose readings are kept, at most.
const MOST_KEPT: usize = 1_024;
/// Readings of a thread that are kept, at most. Beyond that every second one is dropped: a call between two readings may
/// then have waited for a processor for longer than it did.
const MOST_READINGS: usize = 1_024;
/// Increase of the figure between two readings, ns, that is not worth a reading of its own.
const LITTLE_NS: u64 = 50_000;

/// A thread: its process id and its thread id.
type Thread = (u32, u32);

/// A reading: its time, ns since the run's start, and the thread's waiting time for a processor since its start, ns.
type Reading = (u64, u64);

/// Readings of threads' waiting time for a processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueuedTimes {
    of: HashMap<Thread, Vec<Reading>>,
}

impl QueuedTimes {
    /// Reads the figures of the first of these threads; `at_ns` returns the time since the run's start.
    pub(crate) fn read(&mut self, threads: impl Iterator<Item = Thread>, at_ns: impl Fn() -> u64) {
        for (pid, tid) in threads.take(MOST_THREADS) {
            let stat = Schedstat::open(pid as i32, tid as i32);
            let Some(times) = stat.and_then(|stat| stat.read()) else { continue };
            self.note((pid, tid), (at_ns(), times.queued_ns));
        }
    }

    fn note(&mut self, thread: Thread, reading: Reading) {
        if self.of.len() >= MOST_KEPT && !self.of.contains_key(&thread) {
            return;
        }
        let readings = self.of.entry(thread).or_default();
        // Of readings that are nearly alike the first and the last suffice.
        let alike = |readings: &[Reading]| matches!(readings, [.., before, _] if reading.1.saturating_sub(before.1) <= LITTLE_NS);
        if alike(readings) {
            readings.pop();
        }
        readings.push(reading);
        if readings.len() > MOST_READINGS {
            let mut keep = false;
            readings.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }

    /// Returns the time for which a thread may have waited for a processor between two moments, ns, at most; `None` if it
    /// was not read after them.
    pub(crate) fn most_within(&self, thread: Thread, (begin_ns, end_ns): (u64, u64)) -> Option<u64> {
        let readings = self.of.get(&thread)?;
        let after = readings.iter().find(|(at, _)| *at >= end_ns)?;
        let before = readings.iter().rev().find(|(at, _)| *at <= begin_ns).map_or(0, |(_, queued)| *queued);
        Some(after.1.saturating_sub(before).min(end_ns.saturating_sub(begin_ns)))
    }

    /// Returns the time for which a thread has waited for a processor since its start, ns, as last read.
    pub(crate) fn last(&self, thread: Thread) -> Option<u64> {
        self.of.get(&thread)?.last().map(|(_, queued)| *queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_calls_time_in_the_queue_is_bounded_by_the_readings_around_it() {
        let mut times = QueuedTimes::default();
        for (at, queued) in [(100, 10), (200, 10), (300, 10), (400, 90), (500, 90)] {
            times.note((1, 2), (at * MS, queued * MS));
        }
        let within = |from: u64, to: u64| times.most_within((1, 2), (from * MS, to * MS)).map(|ns| ns / MS);
        assert_eq!(within(20, 60), Some(10));
        assert_eq!(within(120, 260), Some(0));
        assert_eq!(within(310, 390), Some(80));
        assert_eq!(within(310, 340), Some(30), "no more than the call's own time");
        assert_eq!(within(450, 510), None, "it was not read afterwards");
        assert_eq!(times.last((1, 2)), Some(90 * MS));
        assert_eq!((times.last((1, 3)), times.most_within((1, 3), (0, 1))), (None, None));
    }

    #[test]
    fn the_readings_of_a_thread_are_bounded() {
        let mut times = QueuedTimes::default();
        for at in 0..10 * MOST_READINGS as u64 {
            times.note((1, 1), (at * MS, at * MS));
        }
        assert!(times.of[&(1, 1)].len() <= MOST_READINGS);
        let last = 10 * MOST_READINGS as u64 - 1;
        assert!(times.most_within((1, 1), (5 * MS, (last - 1) * MS)).is_some());
    }

    #[test]
    fn this_thread_is_read() {
        let (pid, tid) = (std::process::id(), nix::unistd::gettid().as_raw() as u32);
        let mut times = QueuedTimes::default();
        times.read([(pid, tid), (pid, 1)].into_iter(), || 5);
        assert!(times.last((pid, tid)).is_some() && times.last((pid, 1)).is_none());
    }
}
