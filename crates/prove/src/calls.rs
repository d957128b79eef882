//! Counts the system calls of one side, from watched runs.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{Recording, SyscallTotal, Sysno};

/// A count over several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least count of a run.
    pub low: u64,
    /// The median count.
    pub median: u64,
    /// The largest count of a run.
    pub high: u64,
}

impl Range {
    fn of(mut counts: Vec<u64>) -> Self {
        counts.sort_unstable();
        let at = |i: usize| counts.get(i).copied().unwrap_or(0);
        Self { low: at(0), median: at(counts.len() / 2), high: at(counts.len().saturating_sub(1)) }
    }

    /// Returns true if the count was the same in all runs.
    pub fn is_same(self) -> bool {
        self.low == self.high
    }

    /// Returns the change from `self` to `other`: [`CountChange::Varies`] if the ranges overlap.
    pub fn change_to(self, other: Self) -> CountChange {
        let apart = self.high < other.low || other.high < self.low;
        match (apart || (self.is_same() && other.is_same()), self.median.cmp(&other.median)) {
            (false, _) => CountChange::Varies,
            (true, Ordering::Equal) => CountChange::Same,
            (true, Ordering::Less) => CountChange::More(other.median - self.median),
            (true, Ordering::Greater) => CountChange::Fewer(self.median - other.median),
        }
    }
}

/// The change of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountChange {
    /// The count varies by itself: the ranges overlap.
    Varies,
    /// No change.
    Same,
    /// The increase of the median.
    More(u64),
    /// The decrease of the median.
    Fewer(u64),
}

/// A system call whose number changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedCount {
    /// The system call.
    pub syscall: Sysno,
    /// Number of the system call's calls on the unchanged side.
    pub a: Range,
    /// Number of the system call's calls on the changed side.
    pub b: Range,
}

/// Calls by system call, over the runs of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Number of all calls.
    pub total: Range,
    /// Number of calls of each system call that any of the runs made.
    pub by_syscall: BTreeMap<Sysno, Range>,
    /// Number of watched runs.
    pub runs: usize,
    /// True if each run was counted exactly.
    pub exact: bool,
    /// Processor time of all calls in the median run, without waiting, ns; `None` if it is not
    /// known.
    pub toll_ns: Option<u64>,
    /// Processor time of each system call in the median run, without waiting, ns; absent if it is
    /// not known.
    pub toll_by_syscall: BTreeMap<Sysno, u64>,
    /// Time that threads waited in calls in the median run, ns; `None` if it is not known.
    pub waited_ns: Option<u64>,
}

impl CallCounts {
    /// Collects the counts of a side's recordings.
    pub fn of(recordings: &[Recording]) -> Self {
        let totals: Vec<_> = recordings.iter().map(Recording::by_syscall).collect();
        let runs: Vec<BTreeMap<Sysno, u64>> =
            totals.iter().map(|r| r.iter().map(|t| (t.syscall, t.counts.calls)).collect()).collect();
        let made: BTreeSet<Sysno> = runs.iter().flat_map(|r| r.keys().copied()).collect();
        let of = |s: Sysno| Range::of(runs.iter().map(|r| r.get(&s).copied().unwrap_or(0)).collect());
        let toll = |s: Sysno| {
            let of_run =
                |r: &Vec<SyscallTotal>| r.iter().find(|t| t.syscall == s).map_or(Some(0), |t| t.counts.toll_ns);
            Some((s, Range::of(totals.iter().map(of_run).collect::<Option<Vec<u64>>>()?).median))
        };
        let total = |r: &BTreeMap<Sysno, u64>| r.values().fold(0u64, |sum, n| sum.saturating_add(*n));
        Self {
            total: Range::of(runs.iter().map(total).collect()),
            toll_by_syscall: made.iter().filter_map(|s| toll(*s)).collect(),
            by_syscall: made.into_iter().map(|s| (s, of(s))).collect(),
            runs: recordings.len(),
            exact: recordings.iter().all(Recording::exact),
            toll_ns: middle(recordings, |r| r.total().toll_ns),
            waited_ns: middle(recordings, |r| r.total().waited_ns),
        }
    }

    /// Returns the system calls that `self` makes more of than `other`, beyond the variation of
    /// both.
    pub fn more_than<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Sysno> + 'a {
        self.by_syscall.iter().filter(|(s, own)| own.low > other.of_syscall(**s).high).map(|(s, _)| *s)
    }

    /// Returns the system calls whose number differs in `other` beyond the variation of both,
    /// largest change first.
    pub fn changed_in(&self, other: &Self) -> Vec<ChangedCount> {
        let all: BTreeSet<Sysno> = self.by_syscall.keys().chain(other.by_syscall.keys()).copied().collect();
        let of = |syscall| ChangedCount { syscall, a: self.of_syscall(syscall), b: other.of_syscall(syscall) };
        let mut changed: Vec<ChangedCount> = all.into_iter().map(of).collect();
        changed.retain(|c| c.a.high < c.b.low || c.b.high < c.a.low);
        changed.sort_by_key(|c| (Reverse(c.a.median.abs_diff(c.b.median)), c.syscall));
        changed
    }

    /// Returns by how many percent `other` makes fewer calls, if it is 1 % at least.
    pub fn percent_fewer_in(&self, other: &Self) -> Option<f64> {
        let (a, b) = (self.total.median, other.total.median);
        let percent = 100.0 * a.checked_sub(b)? as f64 / a.max(1) as f64;
        (percent >= 1.0).then_some(percent)
    }

    /// Returns the calls of `syscall`.
    pub fn of_syscall(&self, syscall: Sysno) -> Range {
        self.by_syscall.get(&syscall).copied().unwrap_or_default()
    }
}

fn middle(recordings: &[Recording], of: fn(&Recording) -> Option<u64>) -> Option<u64> {
    let all = recordings.iter().map(of).collect::<Option<Vec<u64>>>().filter(|all| !all.is_empty());
    all.map(|all| Range::of(all).median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, ProcessId, Row};

    fn recording(rows: &[(u32, u64)]) -> Recording {
        let row =
            |(n, calls): &(u32, u64)| Row::new(ProcessId(0), Sysno(*n), Counts { calls: *calls, ..Counts::default() });
        Recording { rows: rows.iter().map(row).collect(), ..Recording::default() }
    }

    #[test]
    fn rows_of_one_call_are_added_up() {
        let counts = CallCounts::of(&[recording(&[(0, 3), (1, 5), (0, 4)])]);
        let same = |n| Range { low: n, median: n, high: n };
        assert_eq!(
            (counts.total, counts.of_syscall(Sysno(0)), counts.of_syscall(Sysno(2))),
            (same(12), same(7), same(0))
        );
    }

    #[test]
    fn runs_that_differ_give_a_range() {
        let counts = CallCounts::of(&[recording(&[(0, 3), (9, 1)]), recording(&[(0, 5)]), recording(&[(0, 4)])]);
        assert_eq!(counts.of_syscall(Sysno(0)), Range { low: 3, median: 4, high: 5 });
        assert_eq!(counts.of_syscall(Sysno(9)), Range { low: 0, median: 0, high: 1 });
        assert_eq!((counts.total.low, counts.total.high, counts.total.is_same()), (4, 5, false));
        assert_eq!(CallCounts::of(&[]), CallCounts { exact: true, ..CallCounts::default() });
    }

    #[test]
    fn counts_that_vary_have_not_changed_where_they_overlap() {
        let r = |low, median, high| Range { low, median, high };
        assert_eq!(r(1, 2, 3).change_to(r(3, 3, 3)), CountChange::Varies);
        assert_eq!(r(5, 6, 7).change_to(r(3, 3, 3)), CountChange::Fewer(3));
        assert_eq!(r(3, 3, 3).change_to(r(3, 3, 3)), CountChange::Same);
        assert_eq!(r(3, 3, 3).change_to(r(9, 9, 9)), CountChange::More(6));
        let of = |pairs: &[(u32, Range)]| CallCounts {
            by_syscall: pairs.iter().map(|(n, range)| (Sysno(*n), *range)).collect(),
            total: r(0, pairs.iter().map(|(_, range)| range.median).sum(), 0),
            ..CallCounts::default()
        };
        let a = of(&[(1, r(100, 100, 100)), (2, r(9, 9, 9)), (3, r(1, 4, 8))]);
        let b = of(&[(1, r(90, 90, 90)), (3, r(4, 5, 9)), (4, r(30, 30, 30))]);
        let changed: Vec<u32> = a.changed_in(&b).iter().map(|c| c.syscall.0).collect();
        assert_eq!(changed, [4, 1, 2]);
        assert_eq!((a.percent_fewer_in(&b), a.percent_fewer_in(&a)), (None, None));
        assert_eq!(of(&[(1, r(0, 100, 0))]).percent_fewer_in(&of(&[(1, r(0, 3, 0))])), Some(97.0));
    }
}
