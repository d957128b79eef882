//! Keeps a processor time consistent with the cost of the program's calls.

/// Share of the calls' cost by which the processor time may be lower than that cost: both figures are measured.
const SLACK: f64 = 0.05;
/// Part of the tolerance that does not depend on the calls' cost, for very short programs, ns.
const SLACK_NS: u64 = 100_000;

/// Reason that a recording gives if it shows no processor time: the calls alone would have cost more.
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
