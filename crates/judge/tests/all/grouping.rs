//! Tests of regrouped calls: exact figures add up, sampled ones have bounds that hold.

use crate::common::{call, recording, rounds};
use std::collections::BTreeSet;
use systoll_judge::{By, Common, Grouping, grouped};
use systoll_model::{ProcessId, Recording, Sysno, Thread, ThreadCalls};

const ALL: [By; 7] = [By::Caller, By::Api, By::Library, By::Line, By::Process, By::Thread, By::Fd];

fn sysno(name: &str) -> Sysno {
    Sysno::from_name(name).expect(name)
}

/// Returns a recording of 3,000 reads of one file and 1,000 of another by one function, and of 500 getpid by another.
fn run() -> Recording {
    let mut trace = rounds(1000, |i| {
        let mut calls = vec![call("read", "parse:read", &[3, 1, 100], 100).fd("/etc/a"); 3];
        calls.push(call("read", "parse:read", &[4, 1, 100], 100).fd("/etc/b"));
        if i % 2 == 0 {
            calls.push(call("getpid", "log:getpid", &[], 7));
        }
        calls
    });
    trace.push(call("read", "rare:read", &[5, 1, 100], 0).fd("pipe:[9]"));
    let mut rec = recording(&trace, 1_000_000);
    let calls = |syscall, calls| ThreadCalls { syscall, calls, failed: 0, toll_ns: None, waited_ns: None };
    let thread = |tid, name: &str, calls| Thread { process: ProcessId(0), tid, name: name.into(), calls };
    rec.threads = vec![
        thread(1, "app", vec![calls(sysno("read"), 1), calls(sysno("getpid"), 500)]),
        thread(2, "worker", vec![calls(sysno("read"), 4000)]),
    ];
    rec.check().expect("whole");
    rec
}

fn calls_of(grouping: &Grouping, wanted: impl Fn(&Common) -> bool) -> u64 {
    grouping.groups.iter().filter(|g| wanted(&g.common)).map(|g| g.calls).sum()
}

#[test]
fn every_grouping_adds_up() {
    let rec = run();
    let total = rec.total();
    for by in ALL {
        let all = grouped(&rec, by, None);
        assert_eq!((all.total.calls, all.sampled), (4501, by == By::Fd), "{by:?}");
        let (calls, toll) = all.groups.iter().fold((0, 0), |(c, t), g| (c + g.calls, t + g.toll_ns.unwrap_or(0)));
        // Estimates and shares are rounded one by one.
        assert!(calls.abs_diff(total.calls) <= 2 && toll.abs_diff(total.toll_ns.unwrap()) <= 4, "{by:?} {all:#?}");
        if by != By::Fd {
            assert_eq!(calls, total.calls, "{by:?}");
        }
        let only: BTreeSet<_> = [sysno("getpid")].into();
        let some = grouped(&rec, by, Some(&only));
        assert_eq!(some.groups.iter().map(|g| g.calls).sum::<u64>(), 500, "{by:?}");
        assert_eq!(some.total.calls, 500);
    }
}

#[test]
fn groups_are_told_apart_and_the_costliest_is_first() {
    let rec = run();
    let by = grouped(&rec, By::Caller, None);
    assert_eq!(by.groups.iter().map(|g| g.calls).collect::<Vec<_>>(), [4000, 500, 1]);
    let by = grouped(&rec, By::Api, None);
    assert_eq!(calls_of(&by, |c| matches!(c, Common::Api(api, _) if &**api == "read")), 4001);
    let by = grouped(&rec, By::Thread, None);
    assert_eq!(calls_of(&by, |c| matches!(c, Common::Thread { tid: 2, .. })), 4000);
    assert_eq!(by.groups.len(), 2);
}

#[test]
fn descriptors_are_estimates_with_bounds_that_hold() {
    let by = grouped(&run(), By::Fd, None);
    assert!(by.sampled);
    let group =
        |path: &str| by.groups.iter().find(|g| matches!(&g.common, Common::File(p) if &**p == path)).expect(path);
    for (path, calls) in [("/etc/a", 3000), ("/etc/b", 1000), ("pipe:[9]", 1)] {
        let g = group(path);
        assert!(g.low <= calls && calls <= g.high && g.low <= g.calls && g.calls <= g.high, "{path}: {g:?}");
        assert!(g.calls.abs_diff(calls) <= calls / 5, "{path}: {g:?}");
        assert!(g.looked_at.is_some_and(|n| n > 0) && g.failed == Some(0));
    }
    // If windows show all calls, the number is no estimate.
    assert_eq!((group("pipe:[9]").low, group("pipe:[9]").high), (1, 1));
    assert_eq!(calls_of(&by, |c| *c == Common::None), 500);
}

#[test]
fn nobody_looked_at_is_said() {
    let mut rec = run();
    rec.windows.clear();
    let by = grouped(&rec, By::Fd, None);
    assert_eq!(calls_of(&by, |c| *c == Common::Unknown), 4001);
    assert!(by.groups.iter().filter(|g| g.common == Common::Unknown).all(|g| g.low == 0 && g.high == 4001));
    rec.threads.clear();
    assert!(grouped(&rec, By::Thread, None).groups.is_empty());
}
