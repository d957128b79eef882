//! Tests of many processes of one program, of which some have windows.

use crate::common::{call, recording, rounds};
use systoll_judge::{Catalogue, Judgement, Options, judge};
use systoll_model::*;

const CALLS: u64 = 5000;

/// Returns a recording of `processes` processes that ask the same question again and again. The first `looked_at`
/// have windows, which show waste if `sick` is true.
fn many(processes: u32, looked_at: u32, sick: impl Fn(u32) -> bool) -> Recording {
    let asking = |answer: &dyn Fn(u64) -> i64| {
        recording(&rounds(CALLS, |n| vec![call("getppid", "getppid", &[], answer(n))]), 100_000)
    };
    let (ill, well) = (asking(&|_| 7), asking(&|n| n as i64));
    let mut all = ill.clone();
    for n in 1..processes {
        let one = if sick(n) { &ill } else { &well };
        let process = ProcessId(all.processes.len() as u32);
        let first = all.rows.len() as u32;
        all.processes.extend(one.processes.first().cloned());
        all.rows.extend(one.rows.iter().cloned().map(|row| Row { process, ..row }));
        if n < looked_at {
            let shifted = |call: &WindowCall| WindowCall { row: RowId(call.row.0 + first), ..call.clone() };
            let moved = |w: &Window| Window {
                process,
                row: RowId(w.row.0 + first),
                calls: w.calls.iter().map(shifted).collect(),
                ..w.clone()
            };
            all.windows.extend(one.windows.iter().map(moved));
        }
    }
    all.header.own_cpu_ns = all.header.own_cpu_ns.map(|ns| ns * u64::from(processes));
    assert_eq!(all.check(), Ok(()));
    all
}

fn needless(recording: &Recording) -> (u64, u64, u64) {
    let judgement: Judgement = judge(recording, &Catalogue::builtin(), &Options::default());
    let finding = judgement.findings.iter().chain(&judgement.also).next().expect("it is found");
    assert!(finding.needless.low <= finding.needless.estimate && finding.needless.estimate <= finding.needless.high);
    (finding.calls, finding.needless.estimate, finding.needless.low)
}

#[test]
fn what_was_seen_of_some_processes_is_said_of_those_like_them() {
    let all = 100 * CALLS;
    let (calls, estimate, low) = needless(&many(100, 5, |_| true));
    assert_eq!(calls, all);
    assert!(estimate > all * 9 / 10 && low > all / 2 && low < estimate, "{estimate}, at least {low}");
}

#[test]
fn processes_that_showed_no_waste_count_too() {
    let all = 100 * CALLS;
    let (_, estimate, _) = needless(&many(100, 8, |n| n % 2 == 0));
    assert!(estimate < all * 6 / 10, "{estimate}");
}

#[test]
fn one_process_speaks_for_those_that_call_as_often() {
    assert_eq!(needless(&many(100, 1, |_| true)).0, 100 * CALLS);
    let mut others = many(100, 2, |_| true);
    others.rows.iter_mut().skip(2).for_each(|row| row.counts.calls /= 3);
    assert_eq!(needless(&others).0, 2 * CALLS);
}
