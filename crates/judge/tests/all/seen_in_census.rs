//! Tests of findings that a census of everyday programs showed to be missing, or ridiculous, where windows are short or the
//! upper bound counts. Others are in `cases/text`.

use crate::common::*;
use systoll_judge::{Confidence, Kind};

const MISSING: i64 = -2;

fn stat_at(path: &str, flags: u64, result: i64) -> Call {
    call("newfstatat", if flags == 0 { "stat" } else { "lstat" }, &[CWD, 1, 2, flags], result).path(1, path).toll(1_000)
}

fn open(path: &str, flags: u64, fd: i64) -> Call {
    call("openat", "open", &[CWD, 1, flags, 0o644], fd).path(1, path).toll(1_000)
}

fn close(fd: u64) -> Call {
    call("close", "close", &[fd], 0)
}

const MAKE: u64 = 0o1 | 0o100 | 0o1000;

// Tests of names found missing.

#[test]
fn the_first_question_may_be_needless_too_if_the_making_answers_it() {
    const ONLY_NEW: u64 = 0o200;
    let bounds = |flags: u64| {
        let calls = rounds(5_000, |i| {
            let path = format!("/out/{i}");
            let asks = [0, 0, 0].map(|follows| stat_at(&path, follows, MISSING));
            asks.into_iter().chain([open(&path, flags, 3), close(3)]).collect()
        });
        only(judged(&calls, BUSY)).needless
    };
    let (anew, over) = (bounds(MAKE | ONLY_NEW), bounds(MAKE));
    assert!((9_700..=10_300).contains(&anew.estimate) && anew.high > 14_900, "{anew:?}");
    assert!((9_700..=10_300).contains(&over.estimate) && over.high < 11_500, "{over:?}");
}

// Tests of names that no folder holds.

#[test]
fn one_name_that_no_folder_holds_is_a_remark() {
    let calls = rounds(5_000, |i| vec![stat_at(&format!("/tree/{i}/.skip"), 0, MISSING)]);
    let judgement = judged(&calls, BUSY);
    assert!(judgement.findings.is_empty(), "{judgement:#?}");
    let f = judgement.also.first().expect("it is told");
    assert_eq!((f.kind, f.cause.as_deref(), f.confidence), (Kind::Failing, Some("name-nowhere"), Confidence::Low));
}

#[test]
fn a_name_that_some_folder_holds_is_looked_for_for_good_reason() {
    let found = |i: u64| if i.is_multiple_of(8) { 0 } else { MISSING };
    silent(&rounds(5_000, |i| vec![stat_at(&format!("/tree/{i}/.skip"), 0, found(i))]), BUSY);
}

#[test]
fn different_names_are_different_looks() {
    silent(&rounds(5_000, |i| vec![stat_at(&format!("/store/{}/{i}", i % 256), 0, MISSING)]), BUSY);
}

// Tests of wakeups of a thread that is awake already.

fn ring(fd: &'static str, bytes: &[u8]) -> Call {
    call("write", "write", &[5, 0x1000, bytes.len() as u64], bytes.len() as i64).fd(fd).input(1, bytes).toll(500)
}

fn see(fd: &'static str, size: i64) -> Call {
    call("read", "read", &[6, 0x1000, 64], size).fd(fd).toll(500)
}

#[test]
fn what_tells_something_is_no_bell() {
    let calls = rounds(3_000, |i| {
        let jobs = (0..10).map(|n| ring("pipe:[7]", &[((i * 7 + n) % 251) as u8]));
        jobs.chain([see("pipe:[7]", 10)]).collect()
    });
    let judgement = judged(&calls, BUSY);
    assert!(judgement.findings.is_empty(), "{judgement:#?}");
}
