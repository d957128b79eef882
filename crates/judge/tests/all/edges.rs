//! Tests of windows' edges: windows begin and end anywhere in a round. Calls that their edges hide are neither
//! needless nor useful, and the share is that of the calls that could be judged.

use crate::common::*;
use systoll_judge::Finding;

const PEER: &str = "TCP:[127.0.0.1:80->127.0.0.1:4711]";

fn flags(api: &'static str, fd: u64, flags: i64) -> Call {
    call("fcntl", api, &[fd, 3], flags)
}

fn set_flags(api: &'static str, fd: u64, flags: u64) -> Call {
    call("fcntl", api, &[fd, 4, flags], 0)
}

fn takes(fd: u64) -> Call {
    call("read", "read", &[fd, 0x1000, 4096], 80).fd(PEER)
}

/// Asserts that the interval holds the truth, and that the estimate is near.
fn holds(f: &Finding, needless: u64) {
    let n = &f.needless;
    assert!(n.low <= needless && needless <= n.high, "{needless}: {n:?}");
    assert!(n.estimate.abs_diff(needless) <= needless / 100, "{needless}: {n:?}");
}

#[test]
fn flags_toggled_three_times_a_request_are_all_counted() {
    // Number of needless calls: all except the very first question and the first set.
    const ALL: u64 = 59_998;
    let round = |apis: [&'static str; 3]| {
        move |_| vec![flags(apis[0], 5, 2), set_flags(apis[1], 5, 0x402), takes(5), set_flags(apis[2], 5, 2)]
    };
    holds(&only(judged(&rounds(20_000, round(["fcntl"; 3])), BUSY)), ALL);
    holds(&only(judged(&rounds(20_000, round(["get:fcntl", "on:fcntl", "off:fcntl"])), BUSY)), ALL);
}

#[test]
fn flags_of_what_was_just_made_are_set_for_good_reason() {
    let once = |_| {
        let accepts = call("accept4", "accept", &[3, 0, 0, 0], 5).fd("TCP:[0.0.0.0:80]");
        vec![accepts, flags("fcntl", 5, 2), set_flags("fcntl", 5, 0x402), takes(5), call("close", "close", &[5], 0)]
    };
    silent(&rounds(20_000, once), BUSY);
    // A flag is set once and then toggled: the first of each descriptor's eight sets is useful, wherever windows
    // begin.
    let toggles = |_| {
        let mut calls = vec![call("accept4", "accept", &[3, 0, 0, 0], 5).fd("TCP:[0.0.0.0:80]")];
        calls.extend((0..8).map(|n| set_flags("fcntl", 5, if n % 2 == 0 { 0x402 } else { 2 })));
        calls.extend([takes(5), call("close", "close", &[5], 0)]);
        calls
    };
    let f = only(judged(&rounds(10_000, toggles), BUSY));
    assert!(f.needless.estimate <= 70_000 + 700, "{:?}", f.needless);
}

#[test]
fn descriptors_seen_once_a_window_stay_out_of_it() {
    let in_turn = |i: u64| {
        let (fd, now, next) = if (i / 64).is_multiple_of(2) { (5 + i % 64, 2, 0x402) } else { (5 + i % 64, 0x402, 2) };
        vec![flags("fcntl", fd, now), set_flags("fcntl", fd, next), takes(fd)]
    };
    silent(&rounds(20_000, in_turn), BUSY);
}

#[test]
fn an_option_set_again_and_again_is_counted_whole() {
    let nodelay = || call("setsockopt", "setsockopt", &[4, 6, 1, 1, 4], 0).input(3, &1u32.to_le_bytes());
    let f = only(judged(&rounds(10_000, |_| vec![nodelay(), takes(4), takes(6), takes(7)]), BUSY));
    holds(&f, 9_999);
    assert_eq!(f.evidence.claimed + 1, f.evidence.calls, "{:?}", f.evidence);
}

#[test]
fn of_two_questions_the_first_is_of_use() {
    let fstat = || call("fstat", "fstat", &[3, 1], 0).output(1, &stat_bytes(1, 1));
    let read = || call("read", "read", &[3, 1, 4096], 100).fd("/tmp/f");
    let judgement = judged(&rounds(10_000, |_| vec![fstat(), fstat(), read()]), BUSY);
    let f = judgement.findings.iter().chain(&judgement.also).next().unwrap();
    assert!(f.needless.estimate.abs_diff(10_000) <= 500 && f.needless.high >= 10_000, "{:?}", f.needless);
}

#[test]
fn a_byte_at_a_time_is_counted_whole() {
    let reads = || call("read", "getc", &[3, 0x1000, 1], 1).fd("/tmp/f");
    let open = || call("openat", "open", &[(-100i32) as u32 as u64, 1, 0, 0], 3).path(1, "/tmp/f");
    let trace: Vec<Call> = std::iter::once(open()).chain(rounds(100_000, |_| vec![reads()])).collect();
    // A buffer of 4 KiB takes 25 reads.
    holds(&only(judged(&trace, BUSY)), 100_000 - 25);
    // A few bytes from each of many files are another matter: the first read of each is needed.
    let each =
        |_| [open()].into_iter().chain((0..9).map(|_| reads())).chain([call("close", "close", &[3], 0)]).collect();
    let f = only(judged(&rounds(10_000, each), BUSY));
    // Some first reads stand so near to a window's edge that they are left out, though they are needed.
    assert!(f.needless.estimate <= 80_000 + 2_000 && f.needless.low <= 80_000, "{:?}", f.needless);
}

#[test]
fn a_spin_that_goes_on_is_counted_whole() {
    let polls = || call("poll", "poll", &[0x1000, 1, 0], 0).toll(300);
    holds(&only(judged(&rounds(50_000, |_| vec![polls()]), BUSY)), 49_999);
    // The first call after something was found is useful.
    let found = || call("poll", "poll", &[0x1000, 1, 0], 1).toll(300);
    let round = |_| [found(), takes(5)].into_iter().chain((0..10).map(|_| polls())).collect();
    let f = only(judged(&rounds(5_000, round), BUSY));
    assert!(f.needless.estimate <= 45_000 + 450, "{:?}", f.needless);
}

#[test]
fn a_timer_put_off_again_and_again_is_counted_whole() {
    let set = |i: u64| {
        let words = [0, 0, 100 + i, 0].map(u64::to_le_bytes);
        call("timerfd_settime", "timerfd_settime", &[7, 1, 0x1000, 0], 0).input(2, words.as_flattened()).toll(400)
    };
    holds(&only(judged(&rounds(20_000, |i| vec![set(i), takes(5)]), BUSY)), 19_999);
    // A timer that is read in between has fired.
    let fires = || call("read", "read:timer", &[7, 0x1000, 8], 8).fd("anon_inode:[timerfd]");
    silent(&rounds(20_000, |i| vec![set(i), takes(5), fires()]), BUSY);
}

#[test]
fn an_alarm_around_each_moment_is_counted_whole() {
    let alarm = |seconds: u64| call("alarm", "alarm", &[seconds], 0).toll(300);
    let round = |_| vec![alarm(5), alarm(0), takes(5)];
    holds(&only(judged(&rounds(10_000, round), BUSY)), 19_998);
}
