//! Intervals that hold 19 times in 20, also if few were looked at.

use std::ops::Add;

/// Number of standard errors of the interval of a share, a little more than the 1.96 of a large sample.
const ERRORS: f64 = 2.0;
/// Student's t at 97.5 %, by degrees of freedom from one on; the last value is used for all more.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086,
];

/// An estimate and the distances to its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Interval {
    pub(super) estimate: f64,
    /// Distance of the lower bound below the estimate.
    pub(super) below: f64,
    /// Distance of the upper bound above the estimate.
    pub(super) above: f64,
}

impl Interval {
    /// Returns an interval for the number of calls with a property, if `with` of `sampled` calls have it and each was
    /// drawn from `stands_for`.
    ///
    /// The share has Wilson's score interval with correction for continuity (Newcombe 1998, method 4), which is as wide as
    /// promised also if no sampled call has the property, or all have.
    pub(super) fn of_share(with: u64, sampled: u64, stands_for: f64) -> Self {
        let n = sampled.max(1) as f64;
        let share = (with as f64 / n).min(1.0);
        let (z, other) = (ERRORS * ERRORS, 1.0 - share);
        let side = |sign: f64| {
            let root = (z - sign * -2.0 - 1.0 / n + 4.0 * share * (n * other - sign)).max(0.0).sqrt();
            (2.0 * n * share + z + sign + sign * ERRORS * root) / (2.0 * (n + z))
        };
        let low = if with == 0 { 0.0 } else { side(-1.0).clamp(0.0, share) };
        let high = if with >= sampled { 1.0 } else { side(1.0).clamp(share, 1.0) };
        let all = n * stands_for;
        Self { estimate: share * all, below: (share - low) * all, above: (high - share) * all }
    }

    /// Returns an interval for a mean of values that come in groups, each given as the number of its values and their sum.
    /// Values of a group may be alike, hence Student's distribution over groups. `None` as bounds if there is one group.
    pub(super) fn of_mean(groups: &[(f64, f64)]) -> (f64, Option<f64>) {
        let (n, all) = groups.iter().fold((0.0, 0.0), |(n, sum), group| (n + group.0, sum + group.1));
        let mean = if n > 0.0 { all / n } else { 0.0 };
        let Some(freedom) = groups.len().checked_sub(1).filter(|freedom| *freedom > 0) else { return (mean, None) };
        // The bounds are those of the mean of the groups' means, which Student's distribution is about, and hold this mean.
        let means = || groups.iter().map(|(values, sum)| sum / values.max(1.0));
        let of_groups = means().sum::<f64>() / groups.len() as f64;
        let squares: f64 = means().map(|of_group| (of_group - of_groups).powi(2)).sum();
        // Groups that are all alike don't exclude one that differs: as if the next value differed by one.
        let least = 1.0 / (n + 1.0);
        let variance = squares / freedom as f64 / groups.len() as f64;
        let t = STUDENT.get(freedom - 1).or(STUDENT.last()).copied().unwrap_or(ERRORS);
        (mean, Some((t * variance.sqrt() + (mean - of_groups).abs()).max(least)))
    }
}

impl Add for Interval {
    type Output = Self;

    /// Adds estimates of disjoint calls, which were sampled independently (Zou and Donner 2008).
    fn add(self, other: Self) -> Self {
        Self {
            estimate: self.estimate + other.estimate,
            below: self.below.hypot(other.below),
            above: self.above.hypot(other.above),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::Random;

    /// Returns a number from 0 to 1.
    fn draw(random: &mut Random) -> f64 {
        random.below(1 << 30) as f64 / f64::from(1 << 30)
    }

    #[test]
    fn nothing_seen_is_not_nothing_there() {
        let none = Interval::of_share(0, 10, 100.0);
        assert!(none.estimate == 0.0 && none.below == 0.0 && none.above > 300.0, "{none:?}");
        let all = Interval::of_share(10, 10, 100.0);
        assert!(all.estimate == 1_000.0 && all.above == 0.0 && all.below > 300.0, "{all:?}");
        let one = Interval::of_share(1, 1, 40.0);
        assert!(one.estimate - one.below < 4.0, "{one:?}");
    }

    /// Draws samples as threads do, one in each part of an octave's calls, and counts how often the truth lies between the
    /// bounds.
    #[test]
    fn bounds_of_counts_hold_nineteen_times_in_twenty() {
        let mut random = Random::new(7);
        for share in [0.003, 0.03, 0.1, 0.3, 0.5, 0.9, 0.995] {
            for parts in [2u64, 5, 20, 100] {
                let (mut held, runs) = (0, 1_500);
                for _ in 0..runs {
                    let (mut sum, mut truth) = (Interval::default(), 0.0);
                    // The share drifts from octave to octave.
                    for stands_for in [2u64, 4, 8, 64] {
                        let share = (share * (0.5 + draw(&mut random))).min(1.0);
                        let mut with = 0;
                        for _ in 0..parts {
                            let place = random.below(stands_for);
                            for at in 0..stands_for {
                                let has = draw(&mut random) < share;
                                truth += f64::from(u8::from(has));
                                with += u64::from(has && at == place);
                            }
                        }
                        sum = sum + Interval::of_share(with, parts, stands_for as f64);
                    }
                    let (low, high) = (sum.estimate - sum.below, sum.estimate + sum.above);
                    held += u32::from((low - 1e-6..=high + 1e-6).contains(&truth));
                }
                assert!(f64::from(held) >= 0.95 * f64::from(runs), "{share} of {parts}: {held} of {runs}");
            }
        }
    }

    #[test]
    fn bounds_of_means_hold_nineteen_times_in_twenty() {
        let mut random = Random::new(11);
        for groups in [2u64, 3, 8, 40] {
            let (mut held, runs) = (0, 2_000);
            for _ in 0..runs {
                // Requests of one window are alike: each window has a level of its own.
                let seen: Vec<(f64, f64)> = (0..groups)
                    .map(|_| {
                        let level = 10.0 + 8.0 * (0..4).map(|_| draw(&mut random) - 0.5).sum::<f64>();
                        let of_group = 1 + random.below(3);
                        (of_group as f64, (0..of_group).map(|_| level + draw(&mut random) - 0.5).sum())
                    })
                    .collect();
                let (mean, doubt) = Interval::of_mean(&seen);
                held += u32::from((mean - 10.0).abs() <= doubt.unwrap());
            }
            assert!(f64::from(held) >= 0.94 * f64::from(runs), "{groups} groups: {held} of {runs}");
        }
        assert_eq!(Interval::of_mean(&[(3.0, 42.0)]), (14.0, None));
        assert_eq!(Interval::of_mean(&[(2.0, 28.0), (1.0, 14.0)]).1, Some(0.25));
    }
}
