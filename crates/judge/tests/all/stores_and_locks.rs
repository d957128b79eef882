//! Tests of stores that are overwritten, repeated flushes, locks in the kernel and useless waits, with their healthy
//! neighbours.

use crate::common::*;
use systoll_judge::{Finding, Kind};

/// Flags of an opening that makes a file anew: O_WRONLY | O_CREAT | O_TRUNC.
const ANEW: u64 = 0o1101;

fn write(fd: u64, name: &'static str, bytes: u64) -> Call {
    call("write", "write", &[fd, 0x1000, bytes], bytes as i64).fd(name).toll(600)
}

fn close(fd: u64, name: &'static str) -> Call {
    call("close", "close", &[fd], 0).fd(name).toll(300)
}

/// Returns the calls that write a state file and move it into place.
fn kept(between: &[Call]) -> Vec<Call> {
    let opens = call("openat", "open", &[CWD, 1, ANEW, 0o600], 4).path(1, "/srv/state.new").toll(2_000);
    let moves = call("rename", "rename", &[1, 2], 0).path(0, "/srv/state.new").path(1, "/srv/state").toll(3_000);
    let mut calls = vec![opens, write(4, "/srv/state.new", 2_000)];
    calls.extend_from_slice(between);
    calls.extend([close(4, "/srv/state.new"), moves]);
    calls
}

#[test]
fn a_file_written_anew_before_anybody_could_look() {
    let f = only(judged(&rounds(2_000, |_| kept(&[])), BUSY));
    assert_eq!((f.kind, f.calls), (Kind::SlowPath, 8_000), "{f:#?}");
    // Not claimed: a sync was promised to others, a message makes others look, or the program
    // itself reads the file.
    let syncs = || call("fsync", "fsync", &[4], 0).fd("/srv/state.new").waited(900_000);
    let tells = || write(7, "socket:[7]", 3_000);
    let reads = || call("openat", "open", &[CWD, 1, 0, 0], 5).path(1, "/srv/state").toll(2_000);
    let healthy = [
        rounds(2_000, |_| kept(&[syncs()])),
        rounds(2_000, |_| [kept(&[]), vec![tells()]].concat()),
        rounds(2_000, |_| [kept(&[]), vec![reads(), close(5, "/srv/state")]].concat()),
    ];
    for calls in healthy {
        let judgement = judged(&calls, BUSY);
        assert!(judgement.findings.iter().all(|f| f.kind != Kind::SlowPath), "{judgement:#?}");
    }
}

#[test]
fn a_flush_of_what_was_just_flushed() {
    let commit = |again: bool| {
        let sync = |name, api| call(name, api, &[4], 0).fd("/srv/ledger").waited(400_000).toll(3_000);
        let answer = call("sendto", "send", &[7, 0x1000, 8, 0, 0, 0], 8).fd("socket:[7]");
        let asks = call("recvfrom", "recv", &[7, 0x1000, 64, 0, 0, 0], 64).fd("socket:[7]").waited(50_000);
        let mut calls = vec![asks, write(4, "/srv/ledger", 64), sync("fdatasync", "fdatasync")];
        calls.extend(again.then(|| sync("fsync", "fsync")));
        calls.push(answer);
        calls
    };
    let f = only(judged(&rounds(1_000, |_| commit(true)), BUSY));
    assert_eq!((f.kind, &*f.apis[0], f.calls), (Kind::NoOp, "fsync", 1_000), "{f:#?}");
    no_finding(&rounds(1_000, |_| commit(false)), BUSY);
    // A sync at the end of each request, though one in forty writes; and the same file mapped, whose stores no call
    // shows.
    let request = |n: u64, maps: bool| {
        let sync = call("fdatasync", "fdatasync", &[4], 0).fd("/srv/ledger").waited(400_000).toll(3_000);
        let writes = n.is_multiple_of(40).then(|| write(4, "/srv/ledger", 64));
        let map = call("mmap", "mmap", &[0, 4096, 3, 1, 4, 0], 0x7000_0000).fd("/srv/ledger");
        [writes.into_iter().collect(), vec![sync], (maps && n.is_multiple_of(40)).then_some(map).into_iter().collect()]
            .concat()
    };
    let f = only(judged(&rounds(2_000, |n| request(n, false)), BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::NoOp, Some("sync-per-op")), "{f:#?}");
    let mapped = judged(&rounds(2_000, |n| request(n, true)), BUSY);
    assert!(mapped.findings.iter().all(|f| f.kind != Kind::NoOp), "{mapped:#?}");
}

/// Returns the calls that take and release a System V semaphore.
fn semaphore(waited: u64) -> Vec<Call> {
    let op = |by: i16| [0u16.to_le_bytes(), by.to_le_bytes(), 0x1000u16.to_le_bytes()].concat();
    let semop = |by: i16| call("semop", "semop", &[11, 0x1000, 1], 0).input(1, &op(by)).toll(800);
    vec![semop(-1).waited(waited), semop(1)]
}

#[test]
fn a_lock_of_the_kernels_that_is_free() {
    let f = only(judged(&rounds(4_000, |_| semaphore(0)), BUSY));
    assert_eq!((f.kind, f.calls), (Kind::SlowPath, 8_000));
    // A thread that waits for another needs the kernel; a thread that only releases hands over to another.
    silent(&rounds(4_000, |_| semaphore(300_000)), BUSY);
    silent(&rounds(4_000, |_| semaphore(0).split_off(1)), BUSY);
}

#[test]
fn sleeps_of_no_time() {
    let sleep = |seconds: u64, ns: u64, waited: u64| {
        let time = [seconds, ns].map(u64::to_le_bytes).concat();
        call("nanosleep", "nanosleep", &[0x1000, 0], 0).input(0, &time).toll(400).waited(waited)
    };
    let f = only(judged(&rounds(10_000, |_| vec![sleep(0, 0, 0)]), BUSY));
    assert_eq!((f.kind, f.calls), (Kind::SlowPath, 10_000));
    silent(&rounds(10_000, |_| vec![sleep(1, 0, 1_000_000_000)]), BUSY);
}

#[test]
fn a_reader_that_is_behind_is_woken_once() {
    const COUNTER: &str = "anon_inode:[eventfd]";
    let wakes = || call("write", "eventfd_write", &[5, 0x1000, 8], 8).fd(COUNTER).input(1, &1u64.to_le_bytes());
    let sees = |wakes: u64| {
        call("read", "eventfd_read", &[5, 0x1000, 8], 8).fd(COUNTER).output(1, &wakes.to_le_bytes()).waited(9_000)
    };
    let behind = rounds(5, |_| (0..2_000).map(|_| wakes()).chain([sees(2_000)]).collect());
    let f: Finding = only(judged(&behind, BUSY));
    assert_eq!(f.cause.as_deref(), Some("wake-awake"), "{f:#?}");
    // Not claimed: one read for each wake, or no reads at all, as with edge-triggered epoll.
    silent(&rounds(5_000, |_| vec![wakes(), sees(1)]), BUSY);
    silent(&rounds(10_000, |_| vec![wakes()]), BUSY);
}

#[test]
fn random_bytes_from_a_file_that_is_opened_for_them() {
    const RANDOM: &str = "/dev/urandom";
    let opens = |path: &str| call("openat", "open", &[CWD, 1, 0, 0], 3).path(1, path).toll(2_000);
    let reads = |name| call("read", "read", &[3, 0x1000, 8_192], 8_192).fd(name).toll(9_000);
    let f = only(judged(&rounds(2_000, |_| vec![opens(RANDOM), reads(RANDOM), close(3, RANDOM)]), BUSY));
    assert_eq!((f.cause.as_deref(), f.calls), (Some("random-per-number"), 6_000));
    let others = rounds(2_000, |n| vec![opens(&format!("/srv/in/{n}")), reads("/srv/in/n"), close(3, "/srv/in/n")]);
    no_finding(&others, BUSY);
}

#[test]
fn a_timer_that_is_not_set_is_unset() {
    let set = |seconds: u64| {
        let time = [0, 0, seconds, 0].map(u64::to_le_bytes).concat();
        call("timerfd_settime", "timerfd_settime", &[6, 0, 0x1000, 0], 0)
            .input(2, &time)
            .fd("anon_inode:[timerfd]")
            .toll(400)
    };
    let f = only(judged(&rounds(10_000, |_| vec![set(0)]), BUSY));
    assert_eq!(f.kind, Kind::NoOp);
    // Not claimed: the timer is set in between, and the program waits before it unsets the timer.
    let waits =
        || call("epoll_wait", "epoll_wait", &[3, 0x1000, 8, u64::MAX], 1).fd("anon_inode:[eventpoll]").waited(9_000);
    silent(&rounds(5_000, |_| vec![set(5), waits(), set(0), waits()]), BUSY);
}

#[test]
fn what_the_program_writes_does_not_change_whether_a_file_is_there() {
    let asks = || call("access", "access", &[1, 0], 0).path(0, "/srv/log").toll(900);
    let f = only(judged(&rounds(5_000, |_| vec![asks(), write(4, "/srv/log", 3_000)]), BUSY));
    assert_eq!((f.kind, f.calls), (Kind::Repeat, 5_000));
    // The file's permissions may have changed, or its content.
    let changes = || call("fchmod", "fchmod", &[4, 0o600], 0).fd("/srv/log").toll(900);
    let moves = || call("rename", "rename", &[1, 2], 0).path(0, "/srv/new").path(1, "/srv/log").toll(900);
    for other in [changes(), moves()] {
        let judgement = judged(&rounds(5_000, |_| vec![asks(), other.clone(), write(4, "/srv/log", 3_000)]), BUSY);
        assert!(judgement.findings.iter().all(|f| f.kind != Kind::Repeat), "{judgement:#?}");
    }
}

#[test]
fn the_status_of_a_log_that_only_the_program_writes_follows_from_what_it_wrote() {
    let status = |size: u64, when: u64| {
        let mut status = stat_bytes(when, when);
        status[48..56].copy_from_slice(&size.to_le_bytes());
        call("newfstatat", "stat", &[CWD, 1, 2, 0], 0).path(1, "log").output(2, &status).toll(1_100)
    };
    let told = |grows: u64| {
        let calls = rounds(5_000, |n| vec![status(n * grows, n), write(4, "/srv/log", 3_000)]);
        let judgement = judged(&calls, BUSY);
        judgement.findings.iter().chain(&judgement.also).any(|f| f.kind == Kind::Repeat)
    };
    assert!(told(3_000));
    // Other processes write there too.
    assert!(!told(3_100));
}
