//! Tests of windows that are longer than the judge searches, and of files that are synced and last.

use crate::common::{BUSY, CWD, Call, call, judged, recording, rounds, stat};
use systoll_judge::{Catalogue, Finding, Judgement, Options, judge};
use systoll_model::{Window, WindowCall};

/// Returns the findings and remarks of a cause.
fn of_cause<'j>(judgement: &'j Judgement, cause: &'j str) -> impl Iterator<Item = &'j Finding> {
    judgement.findings.iter().chain(&judgement.also).filter(move |f| f.cause.as_deref() == Some(cause))
}

#[test]
fn a_file_that_lasts_is_synced_beside_those_that_are_removed() {
    let file = |n: u64| -> &'static str { format!("/tmp/sort/run{n}").leak() };
    let on = |of: &'static str, file: &'static str| call(of, of, &[9, 0x1000, 9_000], 0).fd(file).toll(900);
    let round = |n: u64| {
        let made = call("openat", "open", &[CWD, 1, 0o301, 0o600], 9).path(1, file(n)).toll(900);
        let gone = call("unlink", "unlink", &[1], 0).path(0, file(n)).toll(900);
        let sync = |file: &'static str| on("fsync", file).waited(300_000);
        let log = if n.is_multiple_of(12) { vec![sync("/tmp/sort/log")] } else { vec![] };
        [vec![made, on("write", file(n)), sync(file(n)), on("close", file(n)), gone], log].concat()
    };
    let judgement = judged(&rounds(600, round), BUSY);
    let stops: Vec<String> =
        of_cause(&judgement, "sync-per-op").flat_map(Finding::stop).map(|how| how.to_string()).collect();
    assert!(!stops.iter().any(|how| how.contains("leave the sync out")), "{stops:?}");
}

/// Judges a recording of one window with 300,000 calls, which go through the trace again and again.
fn in_one_long_window(trace: &[Call]) -> Judgement {
    let mut hostile = recording(trace, 1_000);
    let seen: Vec<WindowCall> = hostile.windows.iter().flat_map(|window| window.calls.clone()).collect();
    let calls = seen.iter().cycle().take(300_000).cloned().collect();
    hostile.windows = vec![Window { calls, ..hostile.windows[0].clone() }];
    judge(&hostile, &Catalogue::builtin(), &Options::default())
}

#[test]
fn questions_in_one_long_window_are_no_burden() {
    let read = call("read", "read", &[6, 0x1000, 4096], 4096).fd("/srv/other.bin").toll(400);
    let trace: Vec<_> = std::iter::once(read).chain((0..2_000).map(|_| stat("/srv/data.bin", "stat", 3, 4))).collect();
    // Each question looks for the reads and the closing around it: as far as the window reaches, that takes minutes.
    assert_eq!(of_cause(&in_one_long_window(&trace), "stat-per-op").count(), 1);
}

#[test]
fn files_made_in_one_long_window_are_no_burden() {
    let made = |n: u64| call("openat", "make", &[CWD, 1, 0o301, 0o600], 9).path(1, &format!("/tmp/box/{n}")).toll(900);
    let closed = || call("close", "close", &[9], 0).toll(200);
    let waits = || call("poll", "poll", &[0x1000, 1, 50], 1).toll(200).waited(9_000);
    // Each of very many files stays, and others may use them again and again.
    in_one_long_window(&rounds(2_000, |n| vec![made(n), closed(), waits()]));
}
