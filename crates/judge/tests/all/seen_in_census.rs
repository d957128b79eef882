//! Tests of findings that a census of everyday programs showed to be missing, or ridiculous.

use crate::common::*;
use systoll_judge::{Confidence, Kind};

const NO_FOLLOW: u64 = 0x100;
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
fn a_missing_name_is_asked_about_four_times_before_it_is_made() {
    let calls = rounds(5_000, |i| {
        let path = format!("/out/{i}");
        let asks = [0, NO_FOLLOW, 0, NO_FOLLOW].map(|flags| stat_at(&path, flags, MISSING));
        asks.into_iter().chain([open(&path, MAKE, 3), close(3)]).collect()
    });
    let f = only(judged(&calls, BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Repeat, Some("missing-asked-again")));
    assert!((9_000..=10_300).contains(&f.needless.estimate) && f.needless.low <= 10_000, "{f:#?}");
}

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

#[test]
fn names_asked_about_again_and_again_have_one_cause_however_many_they_are() {
    for names in [1, 2, 7] {
        let calls = rounds(20_000, |i| vec![stat_at(&format!("/out/{}", i * names / 20_000), 0, MISSING)]);
        let f = only(judged(&calls, BUSY));
        assert_eq!((f.cause.as_deref(), f.calls), (Some("missing-asked-again"), 20_000));
    }
}

#[test]
fn with_links_followed_and_without_are_two_questions() {
    silent(
        &rounds(5_000, |i| {
            let path = format!("/out/{i}");
            vec![stat_at(&path, 0, MISSING), stat_at(&path, NO_FOLLOW, MISSING), open(&path, MAKE, 3), close(3)]
        }),
        BUSY,
    );
}

#[test]
fn what_is_no_link_is_nothing_else_either() {
    let calls = rounds(5_000, |i| {
        let path = format!("/out/{i}");
        vec![stat_at(&path, NO_FOLLOW, MISSING), stat_at(&path, 0, MISSING), open(&path, MAKE, 3), close(3)]
    });
    assert_eq!(only(judged(&calls, BUSY)).cause.as_deref(), Some("missing-asked-again"));
}

#[test]
fn a_name_that_may_have_been_made_meanwhile_is_asked_about_for_good_reason() {
    let between: [fn(u64) -> Call; 2] = [
        |_| call("clock_nanosleep", "nanosleep", &[0, 0, 1, 0], 0),
        |i| call("mkdir", "mkdir", &[1, 0o700], 0).path(0, &format!("/out/x{i}")),
    ];
    for between in between {
        let calls = rounds(5_000, |i| {
            let path = format!("/out/{i}");
            vec![stat_at(&path, 0, MISSING), between(i), stat_at(&path, 0, MISSING)]
        });
        let judgement = judged(&calls, BUSY);
        let told = judgement.findings.iter().chain(&judgement.also);
        assert!(told.clone().all(|f| f.cause.as_deref() != Some("missing-asked-again")), "{judgement:#?}");
    }
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

// Tests of sizes that are set before or after a write.

fn truncate(fd: u64, size: u64) -> Call {
    call("ftruncate", "ftruncate", &[fd, size], 0).fd("/out/f").toll(2_000)
}

fn write(fd: u64, size: u64) -> Call {
    call("write", "write", &[fd, 0x1000, size], size as i64).fd("/out/f").toll(500)
}

/// Returns the calls that create a file, then those of `then`, and the closing.
fn files(then: impl Fn() -> Vec<Call>) -> Vec<Call> {
    rounds(5_000, |i| {
        let opened = open(&format!("/out/{i}"), MAKE, 3);
        [opened].into_iter().chain(then()).chain([close(3)]).collect()
    })
}

#[test]
fn the_size_of_a_new_file_is_set_by_what_is_written() {
    let sick: [fn() -> Vec<Call>; 4] = [
        || vec![truncate(3, 3000), write(3, 3000)],
        || vec![truncate(3, 6000), write(3, 3000), write(3, 3000)],
        || vec![write(3, 3000), truncate(3, 3000)],
        || vec![truncate(3, 0), write(3, 3000)],
    ];
    for then in sick {
        let f = only(judged(&files(then), BUSY));
        assert_eq!((f.kind, f.cause.as_deref()), (Kind::Toggle, Some("size-before-write")), "{f:#?}");
    }
}

#[test]
fn a_size_that_the_writes_do_not_set_is_needed() {
    let healthy: [fn() -> Vec<Call>; 5] = [
        || vec![write(3, 3000), call("pwrite64", "pwrite", &[3, 0x1000, 50, 8000], 50).fd("/out/f"), truncate(3, 3000)],
        || vec![truncate(3, 9000), write(3, 3000)],
        || vec![write(3, 3000), truncate(3, 2000)],
        || vec![truncate(3, 3000), call("lseek", "lseek", &[3, 100, 0], 100), write(3, 3000)],
        || vec![truncate(3, 3000), call("mmap", "mmap", &[0, 4096, 3, 1, 3, 0], 0x7000), write(3, 3000)],
    ];
    for then in healthy {
        let judgement = judged(&files(then), BUSY);
        let told =
            judgement.findings.iter().chain(&judgement.also).find(|f| f.cause.as_deref() == Some("size-before-write"));
        assert!(told.is_none(), "{told:#?}");
    }
}

#[test]
fn what_was_not_emptied_may_have_been_longer() {
    let calls =
        rounds(5_000, |i| vec![open(&format!("/out/{i}"), 0o101, 3), write(3, 3000), truncate(3, 3000), close(3)]);
    silent(&calls, BUSY);
}

// Tests of wakeups of a thread that is awake already.

const BELL: &str = "anon_inode:[eventfd]";

fn ring(fd: &'static str, bytes: &[u8]) -> Call {
    call("write", "write", &[5, 0x1000, bytes.len() as u64], bytes.len() as i64).fd(fd).input(1, bytes).toll(500)
}

fn see(fd: &'static str, size: i64) -> Call {
    call("read", "read", &[6, 0x1000, 64], size).fd(fd).toll(500)
}

#[test]
fn a_bell_rung_ten_times_for_each_look() {
    let one = 1u64.to_le_bytes();
    let calls = rounds(3_000, |_| (0..10).map(|_| ring(BELL, &one)).chain([see(BELL, 8)]).collect());
    let f = only(judged(&calls, BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::NoOp, Some("wake-awake")));
    assert!((26_000..=28_000).contains(&f.needless.estimate), "{f:#?}");
}

#[test]
fn a_bell_rung_once_for_each_look_and_a_bell_that_nobody_looks_at() {
    let one = 1u64.to_le_bytes();
    silent(&rounds(5_000, |_| vec![ring(BELL, &one), see(BELL, 8)]), BUSY);
    // A program with edge-triggered epoll need not read.
    silent(&rounds(5_000, |_| vec![ring(BELL, &one)]), BUSY);
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

#[test]
fn a_pipe_that_another_process_reads_is_no_bell() {
    let calls = rounds(3_000, |_| (0..10).map(|_| ring("pipe:[7]", b"x")).collect());
    let f = only(judged(&calls, BUSY));
    assert_eq!(f.cause.as_deref(), Some("unbuffered-output"));
}

// Tests of overwritten stores.

#[test]
fn a_mode_set_by_the_same_number_is_another_files() {
    let calls = rounds(5_000, |i| {
        vec![open(&format!("/out/{i}"), MAKE, 3), call("fchmod", "fchmod", &[3, 0o644], 0).toll(1_000), close(3)]
    });
    silent(&calls, BUSY);
}

// Tests of short-lived memory.

fn map(at: i64, length: u64) -> Call {
    call("mmap", "mmap", &[0, length, 3, 0x22, u64::MAX, 0], at).toll(1_000)
}

fn unmap(at: u64, length: u64) -> Call {
    call("munmap", "munmap", &[at, length], 0).toll(1_000)
}

#[test]
fn memory_that_is_cut_to_where_it_is_to_lie_is_kept() {
    let at = |i: u64| 0x7000_0000_0000 + i * 0x4_0000;
    let cut = |i: u64| vec![map(at(i) as i64, 0x2_0000), unmap(at(i), 0x8000), unmap(at(i) + 0x1_8000, 0x8000)];
    silent(&rounds(5_000, cut), BUSY);
    let whole = |i: u64| vec![map(at(i) as i64, 0x1_fff0), unmap(at(i), 0x2_0000)];
    assert_eq!(only(judged(&rounds(5_000, whole), BUSY)).cause.as_deref(), Some("mmap-churn"));
}
