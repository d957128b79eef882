//! Processor time that is consistent with what a program's calls cost.

/// Both figures are measured, so the processor time may come out lower than the cost of the calls by this share of that
/// cost.
const SLACK: f64 = 0.05;
/// The tolerance for very short programs, ns.
const SLACK_NS: u64 = 100_000;

/// Reason for not showing a processor time that is lower than the cost of its calls.
pub(crate) const IMPOSSIBLE: &str = "its calls came to more than what was left of it";

/// Returns a processor time that is at least `toll_ns`, the cost of its calls. Returns `None` if the measured time is
/// so much lower that one of the two figures must be wrong.
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
