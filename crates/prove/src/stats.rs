//! Computes medians and intervals that assume no distribution.
//!
//! A change is judged by the signed-rank method: the estimate is the median of all averages of two
//! pairs' log ratios (Hodges and Lehmann), its interval comes from inverting Wilcoxon's test
//! (Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3.3). The method assumes that
//! pairs are independent and their log ratios symmetric about the true one, like differences of two
//! draws of one noise. Nothing is drawn at random: the same measurements always give the same
//! interval.

/// An estimate and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) estimate: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Numbers of the lowest and of the highest values that an interval excludes, for a number of
/// values and an error level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cuts {
    median: usize,
    signed_rank: usize,
}

impl Cuts {
    /// Returns the numbers for this many values; `None` if they are too few for an interval of that confidence.
    pub(crate) fn new(values: usize, alpha: f64) -> Option<Self> {
        let median = ranks_to_cut(&binomial_counts(values), alpha)?;
        Some(Self { median, signed_rank: ranks_to_cut(&signed_rank_counts(values), alpha)? })
    }
}

/// Returns the median, with an interval between two order statistics (the inverted sign test).
pub(crate) fn median_interval(values: &[f64], cuts: Cuts) -> Option<Interval> {
    let (sorted, cut) = (sorted(values), cuts.median);
    Some(Interval {
        estimate: median_of_sorted(&sorted)?,
        low: *sorted.get(cut.checked_sub(1)?)?,
        high: *sorted.get(sorted.len().checked_sub(cut)?)?,
    })
}

/// Returns the typical difference, with its interval.
pub(crate) fn signed_rank_interval(differences: &[f64], cuts: Cuts) -> Option<Interval> {
    let mut averages = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (i, a) in differences.iter().enumerate() {
        averages.extend(differences[i..].iter().map(|b| (a + b) / 2.0));
    }
    let (averages, cut) = (sorted(&averages), cuts.signed_rank);
    Some(Interval {
        estimate: median_of_sorted(&averages)?,
        low: *averages.get(cut.checked_sub(1)?)?,
        high: *averages.get(averages.len().checked_sub(cut)?)?,
    })
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

/// Returns the largest `c` such that the statistic falls below `c` with a probability of at most
/// `alpha` / 2. `ways[t]` is proportional to the probability of `t`. Returns `None` if even 0 is
/// too likely.
fn ranks_to_cut(ways: &[f64], alpha: f64) -> Option<usize> {
    let all: f64 = ways.iter().sum();
    let mut below = 0.0;
    let mut cut = 0;
    for ways in ways {
        below += ways / all;
        // A small tolerance is allowed: 2^-8 against (1 - 0.9921875) / 2 must not depend on
        // rounding.
        if below > alpha / 2.0 * (1.0 + 1e-9) {
            break;
        }
        cut += 1;
    }
    (cut > 0).then_some(cut)
}

/// Returns, for each `t`, the number of ways in which `t` of `n` coins fall heads.
fn binomial_counts(n: usize) -> Vec<f64> {
    let mut ways = vec![0.0; n + 1];
    ways[0] = 1.0;
    for _ in 0..n {
        for t in (1..=n).rev() {
            ways[t] += ways[t - 1];
        }
    }
    ways
}

/// Returns, for each `t`, the number of ways in which ranks out of `1..=n` add up to `t`.
fn signed_rank_counts(n: usize) -> Vec<f64> {
    let mut ways = vec![0.0; n * (n + 1) / 2 + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for t in (rank..ways.len()).rev() {
            ways[t] += ways[t - rank];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares critical values with textbooks: those of Wilcoxon's two-sided signed-rank test at
    /// 0.01 and 0.05. A statistic up to them is significant.
    #[test]
    fn critical_values_are_those_of_the_tables() {
        let critical = |n, alpha| ranks_to_cut(&signed_rank_counts(n), alpha).map(|c| c - 1);
        for (n, at_01) in [(7, None), (8, Some(0)), (9, Some(1)), (10, Some(3)), (15, Some(15)), (20, Some(37))] {
            assert_eq!(critical(n, 0.01), at_01, "{n}");
        }
        for (n, at_05) in [(5, None), (6, Some(0)), (10, Some(8)), (20, Some(52)), (25, Some(89))] {
            assert_eq!(critical(n, 0.05), at_05, "{n}");
        }
    }

    /// The sign test's interval of 20 values at 95 % reaches from the 6th to the 15th.
    #[test]
    fn the_median_lies_between_order_statistics() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let interval = median_interval(&values, Cuts::new(20, 0.05).unwrap()).unwrap();
        assert_eq!(interval, Interval { estimate: 10.5, low: 6.0, high: 15.0 });
        assert_eq!(Cuts::new(5, 0.01), None);
    }

    #[test]
    fn equal_differences_leave_no_room() {
        let i = signed_rank_interval(&[-0.5; 20], Cuts::new(20, 0.01).unwrap()).unwrap();
        assert_eq!((i.low, i.estimate, i.high), (-0.5, -0.5, -0.5));
    }

    /// Checks the promise of an interval: of 2,000 samples around a known centre, about 99 in 100
    /// hold it.
    #[test]
    fn the_interval_holds_the_truth_as_often_as_promised() {
        let mut state = 7u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let cuts = Cuts::new(12, 0.01).unwrap();
        let (mut signed_rank, mut median) = (0, 0);
        for _ in 0..2_000 {
            let sample: Vec<f64> = (0..12).map(|_| uniform() + uniform() - 1.0 + 3.0).collect();
            let holds = |i: Interval| i.low <= 3.0 && 3.0 <= i.high;
            signed_rank += u32::from(holds(signed_rank_interval(&sample, cuts).unwrap()));
            median += u32::from(holds(median_interval(&sample, cuts).unwrap()));
        }
        assert!((1_965..2_000).contains(&signed_rank), "{signed_rank}");
        assert!((1_965..=2_000).contains(&median), "{median}");
    }

    #[test]
    fn too_few_values_are_no_panic() {
        let cuts = Cuts::new(8, 0.01).unwrap();
        assert_eq!((signed_rank_interval(&[], cuts), median_interval(&[], cuts)), (None, None));
        for n in 0..3 {
            assert_eq!(Cuts::new(n, 0.01), None);
        }
    }
}
