//! Predicts the gain of a change from the findings of the unchanged side.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use systoll_judge::{Catalogue, Estimate, Finding, Options, judge};
use systoll_model::{Recording, Sysno};
use systoll_prove::{CallCounts, ExpectedWin};

/// Least fraction of a finding's lower bound of needless calls that must be gone for the finding to
/// count as gone.
const GONE: f64 = 0.9;

/// Returns the gain predicted by the findings that the change removed, from the least disturbed run.
pub(super) fn expected(
    recordings: &[Recording],
    a: &CallCounts,
    b: &CallCounts,
    catalogue: &Catalogue,
) -> Option<ExpectedWin> {
    ExpectedWin::least_disturbed(recordings.iter().filter_map(|recording| of_run(recording, a, b, catalogue)).collect())
}

/// Returns one run's prediction. Returns `None` if no finding is gone, or if one that is gone
/// predicts no gain (it is about waiting).
fn of_run(recording: &Recording, a: &CallCounts, b: &CallCounts, catalogue: &Catalogue) -> Option<ExpectedWin> {
    let judgement = judge(recording, catalogue, &Options::default());
    let mut told: Vec<&Finding> = judgement.findings.iter().chain(&judgement.also).collect();
    told.sort_by_key(|finding| Reverse(finding.needless_toll_ns));
    let fewer = |s: &Sysno| a.of_syscall(*s).median.saturating_sub(b.of_syscall(*s).median);
    let mut left: BTreeMap<Sysno, u64> = a.by_syscall.keys().map(|s| (*s, fewer(s))).collect();
    let gone: Vec<&Finding> = told.into_iter().filter(|f| takes(&mut left, &f.syscalls, f.needless)).collect();
    let gains: Option<Vec<_>> = gone.iter().map(|finding| finding.expected_gain).collect();
    let gains = gains.filter(|gains| !gains.is_empty())?;
    let sum = |of: fn(&systoll_judge::ExpectedGain) -> u64| gains.iter().map(of).fold(0u64, u64::saturating_add) as f64;
    let own_cpu_ns = recording.own_cpu_ns();
    let most = own_cpu_ns.map_or(f64::INFINITY, |own| own as f64);
    Some(ExpectedWin {
        low_ns: sum(|g| g.low).min(most),
        high_ns: sum(|g| g.high).min(most),
        is_at_least: gone.iter().any(|finding| finding.gains_at_least()),
        own_cpu_ns,
    })
}

/// Returns true if a finding's needless calls are among those that are gone, and subtracts them: no
/// two findings are about one call.
fn takes(left: &mut BTreeMap<Sysno, u64>, syscalls: &[Sysno], needless: Estimate) -> bool {
    let there = |s: &Sysno| left.get(s).copied().unwrap_or(0);
    let all = syscalls.iter().map(there).fold(0u64, u64::saturating_add);
    if all == 0 || (all as f64) < GONE * needless.low as f64 {
        return false;
    }
    let mut owed = needless.estimate;
    for syscall in syscalls {
        if let Some(n) = left.get_mut(syscall) {
            let taken = owed.min(*n);
            (*n, owed) = (*n - taken, owed - taken);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_gone_are_of_one_finding() {
        let [stat, read] = [Sysno(4), Sysno(0)];
        let needless = |estimate| Estimate { estimate, low: estimate, high: estimate };
        let mut left = BTreeMap::from([(stat, 1_000), (read, 0)]);
        assert!(!takes(&mut left, &[read], needless(500)), "its calls are still made");
        assert!(!takes(&mut left, &[stat], needless(5_000)), "most of them are");
        assert!(takes(&mut left, &[stat, read], needless(950)));
        assert!(!takes(&mut left, &[stat], needless(500)), "they were another finding's");
        assert_eq!(left[&stat], 50);
    }
}
