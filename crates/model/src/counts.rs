//! The figures of a row: calls, errors, bytes and times.

use crate::errno::Errno;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A histogram of durations with one bucket per power of two of nanoseconds:
/// bucket `i` holds calls of `2^i ..= 2^(i+1)-1` ns (bucket 0 also those of 0 ns).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Histogram {
    /// The largest number of buckets a histogram can have.
    pub const MAX_BUCKETS: usize = 64;

    /// Rebuilds a histogram from the result of [`Histogram::buckets`]. Drops buckets beyond
    /// [`Histogram::MAX_BUCKETS`].
    pub fn from_buckets(mut buckets: Vec<u64>) -> Self {
        buckets.truncate(Self::MAX_BUCKETS);
        Self { buckets }
    }

    /// Adds one call of `ns` nanoseconds.
    pub fn add(&mut self, ns: u64) {
        self.add_many(ns, 1);
    }

    /// Adds `calls` calls of `ns` nanoseconds each.
    pub fn add_many(&mut self, ns: u64, calls: u64) {
        let bucket = ns.max(1).ilog2() as usize;
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] = self.buckets[bucket].saturating_add(calls);
    }

    /// Adds all calls of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// Returns the buckets up to the last one used.
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// Returns the number of calls in all buckets.
    pub fn calls(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// Number of standard errors within which a normal variable lies around its mean in 99 of 100
/// cases.
const NINETY_NINE: f64 = 2.576;

/// The figures of a row, or of several rows added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that returned, as `strace -c` counts them.
    pub calls: u64,
    /// Calls that were answered in place of the kernel ([`crate::Elision`]). They were never made
    /// and are in no other figure.
    pub elided: u64,
    /// Calls entered that never returned (`exit`, `exit_group`, a thread killed inside a call).
    pub unreturned: u64,
    /// Calls that failed, by errno; their sum is at most `calls`.
    pub errors: BTreeMap<Errno, u64>,
    /// Bytes moved by successful transfer calls (read and write families), from their results.
    pub bytes: u64,
    /// Processor time that the calling thread paid, in ns: waiting and the observer's share are
    /// left out. `None` if it is not known; see [`crate::Header::toll_estimated`].
    pub toll_ns: Option<u64>,
    /// Time the thread was scheduled out inside the calls, in ns; `None` if it can't be told.
    pub waited_ns: Option<u64>,
    /// Elapsed time inside the calls as the backend saw it, in ns, with the observer's share.
    pub elapsed_ns: u64,
    /// Elapsed time of the slowest call, in ns, with the observer's share.
    pub max_ns: u64,
    /// Elapsed time of the fastest call that was timed, in ns; `None` if none was timed, and in
    /// recordings of versions that did not keep it.
    pub min_ns: Option<u64>,
    /// Number of calls by power of two of their elapsed time.
    pub histogram: Histogram,
    /// Number of calls in `histogram` that were not timed: other calls, drawn by chance, stand for
    /// them in all figures of time.
    pub untimed: u64,
    /// Standard error of `elapsed_ns` caused by drawing only some calls, in ns. It is scaled up if
    /// few calls were drawn, to keep the promise of [`Counts::elapsed_between`].
    pub elapsed_error_ns: u64,
    /// Calls that were made before the program's `main` (see [`crate::Phase`]).
    pub startup_calls: u64,
    /// The part of `waited_ns` before `main`, in ns.
    pub startup_waited_ns: u64,
}

impl Counts {
    /// Returns the number of calls that failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Returns the number of calls that were timed.
    pub fn timed(&self) -> u64 {
        self.histogram.calls().saturating_sub(self.untimed)
    }

    /// Returns the interval that holds the true `elapsed_ns` in 99 of 100 draws; a single point if
    /// all calls were timed.
    pub fn elapsed_between(&self) -> RangeInclusive<u64> {
        let most = (self.elapsed_error_ns as f64 * NINETY_NINE) as u64;
        // The sum is no less than the time of the slowest call alone.
        let least = self.elapsed_ns.saturating_sub(most).max(self.max_ns.min(self.elapsed_ns));
        least..=self.elapsed_ns.saturating_add(most)
    }

    /// Adds the elapsed time of one call.
    pub fn time(&mut self, ns: u64) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.min_ns = least_known(self.min_ns, Some(ns));
        self.histogram.add(ns);
    }

    /// Adds all figures of `other`. An unknown toll or wait stays unknown only if both are.
    pub fn merge(&mut self, other: &Counts) {
        self.calls = self.calls.saturating_add(other.calls);
        self.elided = self.elided.saturating_add(other.elided);
        self.unreturned = self.unreturned.saturating_add(other.unreturned);
        for (errno, calls) in &other.errors {
            let mine = self.errors.entry(*errno).or_default();
            *mine = mine.saturating_add(*calls);
        }
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.toll_ns = add_known(self.toll_ns, other.toll_ns);
        self.waited_ns = add_known(self.waited_ns, other.waited_ns);
        self.elapsed_ns = self.elapsed_ns.saturating_add(other.elapsed_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.min_ns = least_known(self.min_ns, other.min_ns);
        self.histogram.merge(&other.histogram);
        self.untimed = self.untimed.saturating_add(other.untimed);
        // Samples are drawn independently, so variances add up.
        self.elapsed_error_ns = (self.elapsed_error_ns as f64).hypot(other.elapsed_error_ns as f64).ceil() as u64;
        self.startup_calls = self.startup_calls.saturating_add(other.startup_calls);
        self.startup_waited_ns = self.startup_waited_ns.saturating_add(other.startup_waited_ns);
    }
}

fn add_known(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

fn least_known(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_puts_durations_into_their_power_of_two() {
        let mut h = Histogram::default();
        for ns in [0, 1, 2, 3, 4, 1023, 1024] {
            h.add(ns);
        }
        assert_eq!(h.buckets(), [2, 2, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(h.calls(), 7);
    }

    #[test]
    fn the_shortest_call_is_kept() {
        let (mut a, mut b) = (Counts::default(), Counts::default());
        [700, 300, 900].into_iter().for_each(|ns| a.time(ns));
        assert_eq!((a.min_ns, a.max_ns, a.elapsed_ns, a.histogram.calls()), (Some(300), 900, 1900, 3));
        a.merge(&b);
        assert_eq!(a.min_ns, Some(300), "none was timed there");
        b.time(0);
        a.merge(&b);
        assert_eq!(a.min_ns, Some(0));
    }

    #[test]
    fn unknown_waits_stay_unknown_only_where_nobody_knows() {
        let mut a = Counts { calls: 1, waited_ns: None, ..Counts::default() };
        a.merge(&Counts { calls: 2, waited_ns: None, ..Counts::default() });
        assert_eq!((a.calls, a.waited_ns), (3, None));
        a.merge(&Counts { waited_ns: Some(5), ..Counts::default() });
        assert_eq!(a.waited_ns, Some(5));
    }
}
