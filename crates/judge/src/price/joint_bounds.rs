//! Bounds of findings that hold together: the program took at least the processor time that all of them claim, and what
//! one of them surely takes is left to no other.

use crate::collections::hash::{Map, Set};
use crate::results::finding::{Estimate, Finding};
use systoll_model::{Recording, RowId};

/// Cuts the figures of findings so that they can all be true. Returns the processor time that the calls, the started
/// processes and the costs after calls take together, ns: the program took no less. Returns 0 if its time is unknown.
pub(crate) fn hold_together(findings: &mut [Finding], recording: &Recording) -> u64 {
    cut_calls(findings);
    let Some(own) = recording.own_cpu_ns() else { return 0 };
    let most = recording.own_cpu_span_ns().map_or(own, |span| *span.end());
    let first = FirstProcesses::of(recording);
    let starts: u64 = sum(findings.iter().filter(|finding| finding.starts).map(|finding| finding.needless_toll_ns));
    let later = findings.iter().filter_map(|finding| finding.later).map(|later| later.ns.estimate);
    let beside = calls_beside_starts(findings, &first, recording).saturating_add(sum(later));
    // Times of started processes are estimates where processes were folded.
    let part = (most.saturating_sub(beside) as f64 / starts.max(1) as f64).min(1.0);
    if part < 1.0 {
        findings.iter_mut().filter(|finding| finding.starts).for_each(|finding| scale_starts(finding, part));
    }
    let claimed = beside.saturating_add((starts as f64 * part) as u64).min(most);
    let whole = own.max(claimed);
    for finding in findings.iter_mut() {
        let scaled = |share: f64| share * own as f64 / whole as f64;
        finding.share_of_cpu = match finding.starts {
            true => Some(finding.needless_toll_ns as f64 / whole as f64).filter(|share| *share <= 1.0),
            false => finding.share_of_cpu.map(scaled),
        };
        if let Some(later) = &mut finding.later {
            later.share_of_cpu = later.share_of_cpu.map(scaled);
        }
    }
    cut_gains(findings, most.max(whole), &first, recording);
    claimed
}

fn sum(all: impl Iterator<Item = u64>) -> u64 {
    all.fold(0, u64::saturating_add)
}

/// The processes that no watched process made.
struct FirstProcesses(Set<u32>);

impl FirstProcesses {
    fn of(recording: &Recording) -> Self {
        let parentless = recording.processes.iter().filter(|process| process.parent.is_none());
        Self(parentless.map(|process| process.pid).collect())
    }

    /// Returns true if one of them makes the row's calls, also after it began to run another program.
    fn make(&self, row: RowId, recording: &Recording) -> bool {
        let process = recording.process(recording.row(row).process);
        !process.is_many() && self.0.contains(&process.pid)
    }
}

/// Returns the toll of calls, ns, that lies outside of the times of started processes: if some are, only the calls of first
/// processes surely do.
fn calls_beside_starts(findings: &[Finding], first: &FirstProcesses, recording: &Recording) -> u64 {
    let starts = findings.iter().filter(|finding| finding.starts);
    let of_starts: Set<RowId> = starts.clone().flat_map(|finding| finding.rows.iter().copied()).collect();
    let any = starts.count() > 0;
    let rows = (0..).map(RowId).zip(&recording.rows);
    let beside = rows.filter(|(id, _)| !any || first.make(*id, recording) && !of_starts.contains(id));
    sum(beside.filter_map(|(_, row)| row.counts.toll_ns))
}

/// Scales the times of a finding about starts.
fn scale_starts(finding: &mut Finding, part: f64) {
    let scale = |ns: &mut u64| *ns = (*ns as f64 * part) as u64;
    scale(&mut finding.needless_toll_ns);
    finding.by_row.iter_mut().for_each(|row| scale(&mut row.toll_ns));
    if let Some(gain) = &mut finding.expected_gain {
        scale(&mut gain.low);
        scale(&mut gain.high);
    }
}

/// Cuts the upper bounds of gains: all gains together are at most `most_ns`, the program's processor time. Without its
/// start, a process makes no calls either: that gain holds those of the calls of started processes.
fn cut_gains(findings: &mut [Finding], most_ns: u64, first: &FirstProcesses, recording: &Recording) {
    let low = |finding: &Finding| finding.expected_gain.map_or(0, |gain| gain.low);
    let is_within = |finding: &Finding| !finding.starts && !finding.rows.iter().all(|id| first.make(*id, recording));
    let all = sum(findings.iter().map(low));
    let of_starts = sum(findings.iter().filter(|finding| finding.starts).map(low));
    let within = sum(findings.iter().filter(|finding| is_within(finding)).map(low));
    for finding in findings {
        let apart = match (finding.starts, is_within(finding)) {
            (true, _) => all.saturating_sub(within),
            (false, true) => all.saturating_sub(of_starts),
            (false, false) => all,
        };
        let others = apart.saturating_sub(low(finding));
        if let Some(gain) = &mut finding.expected_gain {
            gain.high = gain.high.min(most_ns.saturating_sub(others)).max(gain.low);
        }
    }
}

/// Cuts the upper bounds of needless calls of findings about different objects of the same rows: a call is claimed once.
fn cut_calls(findings: &mut [Finding]) {
    let is_part = |finding: &&Finding| finding.calls_about.is_some() && !finding.starts;
    let mut taken: Map<Vec<RowId>, (u64, u64)> = Map::default();
    for finding in findings.iter().filter(is_part) {
        let (needless, about) = taken.entry(sorted(&finding.rows)).or_default();
        *needless = needless.saturating_add(finding.needless.low);
        *about = about.saturating_add(finding.calls_about.map_or(0, |about| about.low));
    }
    if taken.is_empty() {
        return;
    }
    for finding in findings.iter_mut() {
        let Some((needless, about)) = Some(&*finding).filter(is_part).and_then(|f| taken.get(&sorted(&f.rows))) else {
            continue;
        };
        let calls = finding.calls;
        let cut = |bounds: &mut Estimate, all: u64| {
            let left = calls.saturating_sub(all.saturating_sub(bounds.low));
            bounds.high = bounds.high.min(left).max(bounds.estimate);
        };
        cut(&mut finding.needless, *needless);
        finding.calls_about.iter_mut().for_each(|bounds| cut(bounds, *about));
    }
}

fn sorted(rows: &[RowId]) -> Vec<RowId> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::finding::ExpectedGain;
    use systoll_model::{Counts, Process, ProcessId, Row, Sysno};

    const MS: u64 = 1_000_000;

    /// Returns a recording of a program that took 100 ms, or 80 to 160 ms, with a row of 10 ms; a child has a row of 30 ms.
    fn recording() -> Recording {
        let mut recording = Recording::default();
        let header = &mut recording.header;
        (header.own_cpu_ns, header.own_cpu_least_ns, header.own_cpu_most_ns) =
            (Some(100 * MS), Some(80 * MS), Some(160 * MS));
        let process = |pid: u32, parent: Option<u32>| Process {
            pid,
            parent: parent.map(ProcessId),
            instances: 1,
            ..Process::default()
        };
        recording.processes = vec![process(1, None), process(2, Some(0))];
        for (process, toll) in [(0, 10), (1, 30), (0, 1)] {
            let counts = Counts { calls: 1_000, toll_ns: Some(toll * MS), ..Counts::default() };
            recording.rows.push(Row::new(ProcessId(process), Sysno::named("read"), counts));
        }
        recording
    }

    /// Returns a finding about starts of processes, forked by the calls of the third row, that take `ms`.
    fn starts(ms: u64) -> Finding {
        Finding { starts: true, rows: vec![RowId(2)], needless_toll_ns: ms * MS, ..about_calls(2, ms) }
    }

    /// Returns a finding about the calls of a row, all of which are needless.
    fn about_calls(row: u32, ms: u64) -> Finding {
        let gain = ExpectedGain { low: ms * MS, high: 2 * ms * MS, ..ExpectedGain::default() };
        Finding {
            rows: vec![RowId(row)],
            needless_toll_ns: ms * MS,
            share_of_cpu: Some(ms as f64 / 100.0),
            expected_gain: Some(gain),
            ..Finding::default()
        }
    }

    #[test]
    fn a_program_took_at_least_what_its_starts_and_calls_take() {
        let mut both = [starts(70), starts(40)];
        // The calls of children may be part of the starts; those of the first process are not.
        assert_eq!(hold_together(&mut both, &recording()), 120 * MS);
        assert_eq!(both[0].share_of_cpu, Some(70.0 / 120.0));
        assert_eq!(both[1].share_of_cpu, Some(40.0 / 120.0));
    }

    #[test]
    fn starts_take_no_more_than_the_program_has_beside_its_calls() {
        let mut both = [starts(200), starts(100)];
        assert_eq!(hold_together(&mut both, &recording()), 160 * MS);
        assert_eq!(both.clone().map(|finding| finding.needless_toll_ns / MS), [100, 50]);
        let shares: f64 = both.iter().filter_map(|finding| finding.share_of_cpu).sum();
        assert!(shares <= 1.0, "{shares}");
    }

    #[test]
    fn what_one_finding_surely_wins_no_other_does() {
        let high =
            |findings: &[Finding]| findings.iter().map(|f| f.expected_gain.unwrap().high / MS).collect::<Vec<_>>();
        let mut both = [starts(70), starts(40)];
        hold_together(&mut both, &recording());
        assert_eq!(high(&both), [120, 80]);
        let mut far = [starts(70), about_calls(0, 50)];
        hold_together(&mut far, &recording());
        assert_eq!(high(&far), [110, 90]);
        // The calls of a process that is not started are not made.
        let mut within = [starts(90), about_calls(1, 75)];
        hold_together(&mut within, &recording());
        assert_eq!(high(&within), [160, 150]);
    }

    #[test]
    fn calls_about_one_object_are_not_about_another() {
        let part = |low: u64, estimate: u64, high: u64| {
            let bounds = Estimate { low, estimate, high };
            Finding { calls: 1_000, needless: bounds, calls_about: Some(bounds), ..about_calls(0, 1) }
        };
        let mut parts = [part(600, 700, 1_000), part(200, 300, 500)];
        hold_together(&mut parts, &recording());
        assert_eq!(parts.map(|f| (f.needless.high, f.calls_about.unwrap().high)), [(800, 800), (400, 400)]);
        let mut other_rows = [part(600, 700, 1_000), Finding { rows: vec![RowId(1)], ..part(200, 300, 500) }];
        hold_together(&mut other_rows, &recording());
        assert_eq!(other_rows.map(|finding| finding.needless.high), [1_000, 500]);
    }

    #[test]
    fn without_starts_all_calls_count() {
        let mut calls = [about_calls(0, 10)];
        assert_eq!(hold_together(&mut calls, &recording()), 41 * MS);
        assert_eq!(calls[0].share_of_cpu, Some(0.1));
        assert_eq!(hold_together(&mut calls, &Recording::default()), 0);
    }
}
