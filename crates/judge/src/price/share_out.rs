//! Division of a whole number in proportion to weights, so that the parts add up to it.

/// Returns `total` divided in proportion to `weights`, one part for each. If no weight is positive, the first part is
/// all of it. The parts add up to `total` unless there are none.
pub(crate) fn share_out(total: u64, weights: &[f64]) -> Vec<u64> {
    let sound = |w: &f64| if w.is_finite() { w.max(0.0) } else { 0.0 };
    let sum: f64 = weights.iter().map(sound).sum();
    let last = weights.iter().rposition(|w| sound(w) > 0.0).unwrap_or(0);
    let (mut so_far, mut given) = (0.0, 0u64);
    let part = |(i, weight): (usize, &f64)| {
        so_far += sound(weight);
        // The running sum is rounded, so that later parts make up for rounding.
        let up_to = if i >= last { total } else { ((total as f64 * (so_far / sum)).round() as u64).min(total) };
        let part = up_to.saturating_sub(given);
        given = up_to.max(given);
        part
    };
    weights.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_as_large_as_their_weights() {
        assert_eq!(share_out(10, &[1.0, 1.0]), [5, 5]);
        assert_eq!(share_out(10, &[3.0, 0.0, 2.0, 0.0]), [6, 0, 4, 0]);
        assert_eq!(share_out(7, &[0.0, 0.0]), [7, 0]);
        assert_eq!(share_out(7, &[f64::NAN, f64::INFINITY, -1.0]), [7, 0, 0]);
        assert_eq!(share_out(7, &[]), [] as [u64; 0]);
    }

    proptest! {
        #[test]
        fn parts_add_up(total in any::<u64>(), weights in proptest::collection::vec(any::<f64>(), 1..9)) {
            let sum = share_out(total, &weights).into_iter().try_fold(0u64, u64::checked_add);
            prop_assert_eq!(sum, Some(total));
        }
    }
}
