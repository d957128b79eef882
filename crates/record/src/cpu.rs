//! What processor time can be, beside what calls cost.

/// Both are measured: the time may be found this much shorter than what was paid in calls, as a part of that.
const SLACK: f64 = 0.05;
/// The same for very short programs, ns.
const SLACK_NS: u64 = 100_000;

/// Why a time is not told that is less than its calls alone came to.
pub(crate) const IMPOSSIBLE: &str = "its calls came to more than what was left of it";

/// A processor time of which calls took `toll_ns`, that at least; `None` where it was found to be so much less
/// that one of the two is wrong.
pub(crate) fn not_below(cpu_ns: u64, toll_ns: u64) -> Option<u64> {
    let missing = toll_ns.saturating_sub(cpu_ns);
    (missing <= SLACK_NS.max((toll_ns as f64 * SLACK) as u64)).then_some(cpu_ns.max(toll_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_never_take_more_than_all_there_is() {
        let ms = 1_000_000;
        assert_eq!(not_below(17 * ms, 4 * ms), Some(17 * ms));
        assert_eq!(not_below(48 * ms, 49 * ms), Some(49 * ms));
        assert_eq!(not_below(17 * ms, 49 * ms), None);
        assert_eq!(not_below(0, 50_000), Some(50_000));
    }
}
