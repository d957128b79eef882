//! Tests of small writes, and of the reads and waits that separate them.

use crate::common::{Call, call, judged, no_finding, only, rounds};
use systoll_judge::Kind;

const BUSY: u64 = 100_000_000;

fn write(fd: u64, to: &'static str) -> Call {
    call("write", "fflush", &[fd, 0x1000, 40], 40).fd(to).toll(900)
}

/// Returns the calls that open, read and close a file.
fn input(n: u64) -> Vec<Call> {
    let path = format!("/srv/in/{n}");
    let open = call("openat", "fopen", &[(-100i32) as u32 as u64, 1, 0, 0], 3).path(1, &path).toll(900);
    let read = call("read", "fread", &[3, 1, 4096], 900).fd("/srv/in/x").toll(600);
    vec![open, read, call("close", "fclose", &[3], 0)]
}

#[test]
fn a_result_for_each_input_goes_out_when_it_is_known() {
    for to in ["pipe:[77]", "/tmp/sums"] {
        let sums = rounds(20_000, |n| input(n).into_iter().chain([write(1, to)]).collect());
        no_finding(&sums, BUSY);
    }
}

#[test]
fn lines_of_one_input_do_not() {
    for to in ["pipe:[77]", "/tmp/lines"] {
        let finding = only(judged(&rounds(20_000, |_| vec![write(1, to)]), BUSY));
        assert_eq!((finding.kind, finding.cause.as_deref()), (Kind::SmallIo, Some("unbuffered-output")));
    }
    // Ten lines for each input: most have no input of their own.
    let lines = rounds(5_000, |n| input(n).into_iter().chain((0..10).map(|_| write(1, "/tmp/lines"))).collect());
    assert_eq!(only(judged(&lines, BUSY)).kind, Kind::SmallIo);
}

#[test]
fn what_the_program_opened_itself_nobody_waits_for() {
    let sums = rounds(20_000, |n| input(n).into_iter().chain([write(7, "/tmp/sums")]).collect());
    assert_eq!(only(judged(&sums, BUSY)).cause.as_deref(), Some("unbuffered-output"));
}

#[test]
fn datagrams_are_not_joined_by_a_buffer() {
    let from =
        |name| rounds(20_000, |_| vec![call("recvfrom", "recv", &[4, 0x1000, 40, 0, 0, 0], 40).fd(name).toll(900)]);
    // Each message costs as much as before: taking many at once may win nothing.
    let datagrams = judged(&from("UDP:[1.2.3.4:5]"), BUSY);
    assert!(datagrams.findings.is_empty(), "{datagrams:#?}");
    let datagrams = datagrams.also.into_iter().next().expect("a remark");
    assert_eq!((datagrams.kind, datagrams.cause.as_deref()), (Kind::SmallIo, Some("no-batching")));
    assert!(datagrams.stop()[0].contains("recvmmsg"), "{:?}", datagrams.stop());
    assert_eq!(only(judged(&from("TCP:[1.2.3.4:5->1.2.3.4:6]"), BUSY)).cause.as_deref(), Some("tiny-io"));
}

#[test]
fn few_small_reads_of_each_file_are_claimed_where_windows_cut_them() {
    // Seven reads of a file and three other calls: a window of 32 shows two files whole and two in part.
    let read = |_| call("read", "read", &[3, 0x1000, 4], 4).fd("/srv/in/x").toll(900);
    let open = || call("openat", "open", &[(-100i32) as u32 as u64, 1, 0, 0], 3).path(1, "/srv/in/x").toll(900);
    let file = |_| [open()].into_iter().chain((0..6).map(read)).chain([call("close", "close", &[3], 0)]).collect();
    let finding = judged(&rounds(2_000, file), BUSY).findings.into_iter().find(|f| f.kind == Kind::SmallIo);
    let finding = finding.expect("reads of a few bytes");
    let share = finding.needless.estimate as f64 / finding.calls as f64;
    assert!((0.75..=0.9).contains(&share), "{share}: five of six");
}
