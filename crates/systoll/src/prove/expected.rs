//! What findings of the side as it is told beforehand of the calls that the other side leaves out.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use systoll_judge::{Catalogue, Finding, Options, judge};
use systoll_model::{Recording, Sysno};
use systoll_prove::{CallCounts, ExpectedWin};

/// Of what a finding claims at least, the part that must be gone for the finding to be.
const GONE: f64 = 0.9;

/// What the findings whose calls are gone told, in the least disturbed run of the side as it is.
pub(super) fn expected(
    recordings: &[Recording],
    a: &CallCounts,
    b: &CallCounts,
    catalogue: &Catalogue,
) -> Option<ExpectedWin> {
    ExpectedWin::least_disturbed(recordings.iter().filter_map(|recording| of_run(recording, a, b, catalogue)).collect())
}

/// What one run tells; `None` where no finding is gone, or one that is tells no gain: it was about waiting.
fn of_run(recording: &Recording, a: &CallCounts, b: &CallCounts, catalogue: &Catalogue) -> Option<ExpectedWin> {
    let judgement = judge(recording, catalogue, &Options::default());
    let mut told: Vec<&Finding> = judgement.findings.iter().chain(&judgement.also).collect();
    told.sort_by_key(|finding| Reverse(finding.needless_toll_ns));
    let fewer = |s: &Sysno| a.of_syscall(*s).median.saturating_sub(b.of_syscall(*s).median);
    let mut left: BTreeMap<Sysno, u64> = a.by_syscall.keys().map(|s| (*s, fewer(s))).collect();
    let gone: Vec<&Finding> = told.into_iter().filter(|finding| takes(&mut left, finding)).collect();
    let gains: Option<Vec<_>> = gone.iter().map(|finding| finding.expected_gain).collect();
    let gains = gains.filter(|gains| !gains.is_empty())?;
    let sum = |of: fn(&systoll_judge::ExpectedGain) -> u64| gains.iter().map(of).fold(0u64, u64::saturating_add) as f64;
    let own_cpu_ns = recording.own_cpu_ns();
    let most = own_cpu_ns.map_or(f64::INFINITY, |own| own as f64);
    Some(ExpectedWin { low_ns: sum(|g| g.low).min(most), high_ns: sum(|g| g.high).min(most), own_cpu_ns })
}

/// Whether the finding's calls are among those that are gone; takes them off, for no two findings are about one call.
fn takes(left: &mut BTreeMap<Sysno, u64>, finding: &Finding) -> bool {
    let there = |s: &Sysno| left.get(s).copied().unwrap_or(0);
    let all = finding.syscalls.iter().map(there).fold(0u64, u64::saturating_add);
    if all == 0 || (all as f64) < GONE * finding.needless.low as f64 {
        return false;
    }
    let mut owed = finding.needless.estimate;
    for syscall in &finding.syscalls {
        if let Some(n) = left.get_mut(syscall) {
            let taken = owed.min(*n);
            (*n, owed) = (*n - taken, owed - taken);
        }
    }
    true
}
