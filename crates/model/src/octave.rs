//! Octaves of a row's count. Most windows open where a row begins, so their calls are weighted by their octaves'
//! sizes.

/// Returns for each octave of `calls` calls the number of calls in it, and the octave of `seen` that represents it:
/// itself, or the nearest, the later of two. Returns nothing if `seen` is empty.
#[must_use = "an iterator does nothing by itself"]
pub fn octaves(calls: u64, seen: impl Iterator<Item = u32> + Clone) -> impl Iterator<Item = (u64, u32)> {
    (0..=calls.max(1).ilog2()).filter_map(move |octave| {
        let first = 1u64 << octave;
        let nearest = seen.clone().min_by_key(|at| (at.abs_diff(octave), u32::MAX - at))?;
        Some((first.min(calls.max(1) - (first - 1)), nearest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_octave_that_was_not_seen_is_like_the_nearest_of_two_the_later() {
        let all = |calls, seen: &[u32]| octaves(calls, seen.iter().copied()).collect::<Vec<_>>();
        assert_eq!(all(20, &[0, 2]), [(1, 0), (2, 2), (4, 2), (8, 2), (5, 2)]);
        assert_eq!(all(1, &[5]), [(1, 5)]);
        assert_eq!(all(0, &[0]), [(1, 0)]);
        assert!(all(20, &[]).is_empty());
        let sizes = |calls| octaves(calls, [0].into_iter()).map(|(size, _)| u128::from(size)).sum::<u128>();
        for calls in [1, 2, 3, 4, 1000, u64::MAX] {
            assert_eq!(sizes(calls), u128::from(calls));
        }
    }
}
