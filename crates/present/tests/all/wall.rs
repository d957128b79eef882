//! Tests where the elapsed time of a run went, as reports show it.

use crate::common::{Builder, counts, report};
use systoll_judge::{Judgement, WaitClass, WallPart, WallTime};
use systoll_model::{Attached, FrameClass, RowId};
use systoll_present::{ReportOptions, Style};

#[test]
fn waits_that_are_printed_alike_are_one() {
    let mut builder = Builder::new(&["app"]).times(10_000.0, 20.0);
    let frame = builder.frame("/usr/bin/app", FrameClass::User, "commit", "db.py:7");
    let rows = [8, 9].map(|n| builder.row("fsync", Some("fsync"), &[frame], counts(n, 9_000)));
    let mut rec = builder.build();
    rec.header.wall_ns = 10_000_000_000;
    let part = |row: &RowId, class| WallPart {
        class,
        row: *row,
        calls: 40,
        ns: 900_000_000,
        longest_ns: 30_000_000,
        line: None,
        unsampled: false,
        shared: false,
        corrected: false,
    };
    let waits = |class: [WaitClass; 2]| {
        let parts: Vec<WallPart> = rows.iter().zip(class).map(|(row, class)| part(row, class)).collect();
        let wall = WallTime {
            wall_ns: 10_000_000_000,
            other_ns: 8_200_000_000,
            parts,
            is_complete: true,
            ..WallTime::default()
        };
        let judgement = Judgement { wall_time: Some(wall), ..Judgement::default() };
        report(&rec, &judgement, &ReportOptions { waits: true, ..ReportOptions::default() }, &Style::default())
    };
    let joined = waits([WaitClass::Disk, WaitClass::Disk]);
    assert!(joined.contains("waited 1.80 s in 80 calls, at most 30 ms, 18 %, for the disk"), "{joined}");
    let apart = waits([WaitClass::Disk, WaitClass::Clock]);
    assert!(apart.contains("waited 0.900 s in 40 calls") && !apart.contains("80 calls"), "{apart}");
}

#[test]
fn a_servers_first_thread_that_waits_says_nothing_of_those_that_work() {
    let mut builder = Builder::new(&["app"]).times(10_000.0, 20.0);
    let row = builder.row("ppoll", Some("ppoll"), &[], counts(9, 9_000));
    let mut rec = builder.build();
    rec.header.wall_ns = 10_000_000_000;
    rec.header.attached = Some(Attached { age_ns: 9_000_000_000_000, longest_stop_ns: 300_000, left_running: true });
    rec.processes[0].cpu_ns = Some(4_000_000_000);
    let of = |running_ns: u64| {
        let part = WallPart {
            class: WaitClass::Peer,
            row,
            calls: 1,
            ns: 10_000_000_000 - running_ns,
            longest_ns: 10_000_000_000 - running_ns,
            line: None,
            unsampled: false,
            shared: false,
            corrected: false,
        };
        let wall = WallTime {
            wall_ns: 10_000_000_000,
            other_ns: running_ns,
            running_ns,
            parts: vec![part],
            is_complete: true,
            ..WallTime::default()
        };
        let judgement = Judgement { wall_time: Some(wall), ..Judgement::default() };
        report(&rec, &judgement, &ReportOptions::default(), &Style::default())
    };
    assert!(!of(10_000_000).contains("for a peer"), "{}", of(10_000_000));
    assert!(of(4_000_000_000).contains("for a peer"), "{}", of(4_000_000_000));
}
