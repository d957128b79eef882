//! Tests of waste found in everyday tools: searches, timers around a short action, limits set again.

use crate::common::*;
use systoll_judge::Kind;

const MISSING: i64 = -2;

fn open(path: &str, result: i64) -> Call {
    call("openat", "open", &[CWD, 1, 0, 0], result).path(1, path).toll(1_000)
}

fn close() -> Call {
    call("close", "close", &[3], 0)
}

/// Returns the calls of a search for headers in one directory after another; `misses` is the number of directories
/// without the i-th.
fn headers(misses: impl Fn(u64) -> u64) -> Vec<Call> {
    rounds(1_000, |i| {
        let misses = misses(i);
        let mut calls: Vec<Call> = (0..misses).map(|d| open(&format!("/inc/d{d}/h{i}.h"), MISSING)).collect();
        calls.extend([open(&format!("/inc/d{misses}/h{i}.h"), 3), close()]);
        calls
    })
}

#[test]
fn a_long_search_through_directories_that_hold_nothing() {
    let f = only(judged(&headers(|_| 20), BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Failing, Some("search-path")));
    assert!(f.calls >= 20_000, "{f:#?}");
}

#[test]
fn a_search_so_long_that_windows_do_not_hold_its_end() {
    let calls: Vec<Call> = headers(|_| 300).into_iter().take(30_000).collect();
    let judgement = judged(&calls, BUSY);
    let f = judgement.findings.iter().chain(&judgement.also).next().expect("it is told");
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Failing, Some("search-path")));
    assert!(f.needless.high > 20_000, "{f:#?}");
}

#[test]
fn a_short_search_is_how_searching_is_done() {
    silent(&headers(|_| 4), BUSY);
}

#[test]
fn directories_that_hold_something_now_and_then_are_looked_into_for_good_reason() {
    no_finding(&headers(|i| i * 8 % 21), BUSY);
}

#[test]
fn different_names_looked_for_in_turn_are_no_search() {
    silent(&rounds(2_000, |i| (0..10).map(|d| open(&format!("/d{d}/n{d}-{i}"), MISSING)).collect()), BUSY);
}

fn alarm(seconds: u64) -> Call {
    call("alarm", "alarm", &[seconds], 0).toll(300)
}

#[test]
fn a_timer_armed_and_disarmed_around_a_moment() {
    let f = only(judged(&rounds(20_000, |_| vec![alarm(5), alarm(0)]), BUSY));
    assert_eq!((f.kind, f.cause.as_deref(), f.calls), (Kind::Toggle, Some("timer-rearm"), 40_000));
}

#[test]
fn a_timer_around_what_may_wait_is_what_timers_are_for() {
    let read = || call("read", "read", &[3, 0x1000, 4096], 4096).fd("socket:[1]");
    silent(&rounds(20_000, |_| vec![alarm(5), read(), alarm(0)]), BUSY);
}

#[test]
fn a_receive_limit_set_to_what_it_is() {
    let limit = |us: u64| {
        let value = [5u64.to_le_bytes(), us.to_le_bytes()].concat();
        call("setsockopt", "setsockopt", &[3, 1, 20, 0x1000, 16], 0).input(3, &value).fd("socket:[1]").toll(300)
    };
    let f = only(judged(&rounds(10_000, |_| vec![limit(0)]), BUSY));
    assert_eq!(f.cause.as_deref(), Some("sockopt-per-op"));
    let reads = || call("recvfrom", "recv", &[3, 0x1000, 4096, 0, 0, 0], 4096).fd("TCP:[1.2.3.4:5->1.2.3.4:6]");
    silent(&rounds(10_000, |i| vec![limit(i), reads()]), BUSY);
    // Each limit is set again before anything happened under it.
    assert_eq!(only(judged(&rounds(10_000, |i| vec![limit(i)]), BUSY)).kind, Kind::SlowPath);
}

#[test]
fn groups_are_joined_and_left_by_the_same_numbers_for_good_reason() {
    let join = || call("setsockopt", "setsockopt", &[3, 41, 20, 0x1000, 4], 0).input(3, &[1, 0, 0, 0]).fd("socket:[1]");
    silent(&rounds(10_000, |_| vec![join()]), BUSY);
}

/// Returns the calls that load a library, and unload it if `unloads`.
fn dlopen(path: &str, unloads: bool) -> Vec<Call> {
    let mmap =
        |prot: u64, flags: u64, fd: u64, result: i64| call("mmap", "dlopen", &[0, 4096, prot, flags, fd, 0], result);
    let mut calls = vec![
        open(path, 3),
        call("read", "dlopen", &[3, 0x1000, 832], 832).fd("/lib/x.so"),
        mmap(1, 2, 3, 0x7000_0000).toll(2_000),
        mmap(5, 0x12, 3, 0x7000_1000).toll(2_000),
        close(),
    ];
    if unloads {
        calls.push(call("munmap", "dlclose", &[0x7000_0000, 8192], 0).toll(2_000));
    }
    calls
}

#[test]
fn a_library_loaded_and_unloaded_again() {
    let f = only(judged(&rounds(2_000, |_| dlopen("/lib/x.so", true)), BUSY));
    assert_eq!((f.kind, f.cause.as_deref(), f.calls), (Kind::Repeat, Some("library-reload"), 12_000));
}

#[test]
fn many_libraries_loaded_once_are_a_program_that_starts() {
    silent(&rounds(2_000, |i| dlopen(&format!("/lib/x{i}.so"), false)), BUSY);
}

#[test]
fn a_library_looked_at_before_it_is_loaded_was_not_loaded_twice() {
    let look = |path: &str| vec![open(path, 3), close()];
    silent(
        &rounds(2_000, |i| {
            let path = format!("/lib/x{i}.so");
            [look(&path), dlopen(&path, false)].concat()
        }),
        BUSY,
    );
}

#[test]
fn a_question_that_decides_whether_a_file_is_read_anew() {
    let asks = || crate::common::stat("/srv/settings", "stat", 7, 0);
    let opens = || vec![call("openat", "open", &[CWD, 1, 0, 0], 3).path(1, "/srv/settings").toll(1_500)];
    let reads = || vec![call("read", "read", &[3, 0x1000, 4096], 700).fd("/srv/settings").toll(700)];
    let closes = || vec![call("close", "close", &[3], 0).fd("/srv/settings").toll(300)];
    let works = || vec![call("write", "write", &[4, 0x1000, 9_000], 9_000).fd("/srv/out").toll(3_000); 2];
    let round = |news: bool| {
        let whole = if news { [opens(), reads(), closes()].concat() } else { Vec::new() };
        [vec![asks()], whole, works()].concat()
    };
    let told = |trace: &[Call]| {
        let judgement = judged(trace, BUSY);
        let mut all = judgement.findings.iter().chain(&judgement.also);
        all.any(|f| f.cause.as_deref() == Some("check-then-open"))
    };
    assert!(told(&rounds(4_000, |_| round(true))));
    assert!(!told(&rounds(4_000, |n| round(n % 3 > 0))));
}
