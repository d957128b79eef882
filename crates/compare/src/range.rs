//! Counts calls over several runs, and tells whether the counts changed.

/// A count over the runs of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The lowest count.
    pub low: u64,
    /// The median count.
    pub median: u64,
    /// The highest count.
    pub high: u64,
}

impl Range {
    /// Returns the range of `counts`, one for each run; zero if there are none.
    pub fn of(counts: &[u64]) -> Self {
        let mut sorted = counts.to_vec();
        sorted.sort_unstable();
        let at = |i: usize| sorted.get(i).copied().unwrap_or(0);
        Self { low: at(0), median: at(sorted.len() / 2), high: at(sorted.len().saturating_sub(1)) }
    }

    /// Returns the range of a count that is the same in all runs.
    pub fn exactly(count: u64) -> Self {
        Self { low: count, median: count, high: count }
    }

    /// Returns the difference between the highest and the lowest count.
    pub fn spread(self) -> u64 {
        self.high.saturating_sub(self.low)
    }

    /// Returns the distance between two ranges; 0 if they touch or overlap.
    pub fn gap(self, other: Self) -> u64 {
        other.low.saturating_sub(self.high).max(self.low.saturating_sub(other.high))
    }

    /// Returns true if `other` is a change: the ranges lie further apart than the sum of their
    /// spreads, and than `slack`. If both sides vary alike, with three runs each, this calls one
    /// row in about 40 a change; ranges that merely do not touch would be one in 10.
    pub(crate) fn differs(self, other: Self, slack: u64) -> bool {
        self.gap(other) > self.spread().saturating_add(other.spread()).max(slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_change_exceeds_the_variation() {
        let of = |counts: &[u64]| Range::of(counts);
        assert!(of(&[5, 5, 5]).differs(of(&[6, 6, 6]), 0));
        assert!(!of(&[5, 6, 7]).differs(of(&[8, 9, 8]), 0));
        assert!(of(&[5, 6, 7]).differs(of(&[50, 60, 55]), 0));
        assert!(!of(&[5]).differs(of(&[9]), 4) && of(&[5]).differs(of(&[10]), 4));
        assert_eq!(of(&[]), Range::exactly(0));
    }

    /// Compares three runs with three others of one program, which vary by chance, and counts the
    /// differences that are called changes.
    #[test]
    fn chance_is_seldom_called_a_change() {
        let mut random = systoll_model::Random::new(7);
        // A sum of many small chances resembles a count that depends on scheduling.
        let mut count = || (0..24).map(|_| random.below(8)).sum::<u64>();
        let mut called = 0;
        for _ in 0..4000 {
            let (a, b) = ([count(), count(), count()], [count(), count(), count()]);
            called += u32::from(Range::of(&a).differs(Range::of(&b), 0));
        }
        assert!((1..200).contains(&called), "{called} of 4,000");
    }

    proptest! {
        #[test]
        fn nothing_differs_from_itself_and_order_means_nothing(mut counts in proptest::collection::vec(any::<u64>(), 0..6)) {
            let a = Range::of(&counts);
            prop_assert!(!a.differs(a, 0));
            counts.reverse();
            prop_assert_eq!(a, Range::of(&counts));
            prop_assert!(a.low <= a.median && a.median <= a.high);
        }
    }
}
