//! Tests of state that several threads change: what one thread set may be another value by its next call.

use crate::common::*;
use systoll_judge::{Catalogue, Judgement, Options, judge};

const EPOLL: &str = "anon_inode:[eventpoll]";

/// Returns the judgement of a program with two threads.
fn of_two_threads(trace: &[Call]) -> Judgement {
    let mut recording = recording(trace, BUSY);
    recording.processes[0].threads = 2;
    judge(&recording, &Catalogue::builtin(), &Options::default())
}

/// Returns the number of calls of `name` that findings and remarks call needless.
fn needless(judgement: &Judgement, name: &str) -> u64 {
    let all = judgement.findings.iter().chain(&judgement.also);
    let of = all.filter(|f| f.syscalls.iter().any(|call| call.name() == Some(name)));
    of.map(|f| f.needless.estimate).sum()
}

fn by(thread: u32, call: Call) -> Call {
    Call { thread, ..call }
}

fn interest(api: &'static str, op: u64, events: u32) -> Call {
    let event = [&events.to_le_bytes()[..], &[7; 8]].concat();
    call("epoll_ctl", api, &[3, op, 7, 0x1000], 0).input(3, &event).fd(EPOLL).toll(900)
}

/// Returns a trace in which two threads take turns, each with a wait that gives the other its turn.
fn in_turns(one: impl Fn() -> Call, other: impl Fn() -> Call) -> Vec<Call> {
    let waits = || call("futex", "sem_wait", &[0x7000, 128, 0], 0).waited(9_000).toll(500);
    rounds(6_000, |_| vec![by(0, waits()), by(0, one()), by(1, waits()), by(1, other())])
}

#[test]
fn an_interest_that_one_thread_takes_out_and_another_puts_in_is_changed_by_each() {
    let trace = in_turns(|| interest("epoll_ctl:listener", 2, 0), || interest("epoll_ctl:worker", 1, 1));
    assert_eq!(needless(&of_two_threads(&trace), "epoll_ctl"), 0);
    // EPOLL_CTL_MOD to no events and back to some.
    let trace = in_turns(|| interest("epoll_ctl:listener", 3, 0), || interest("epoll_ctl:worker", 3, 1));
    assert_eq!(needless(&of_two_threads(&trace), "epoll_ctl"), 0);
    // Both threads set what is set: nothing changes.
    let trace = in_turns(|| interest("epoll_ctl:listener", 3, 1), || interest("epoll_ctl:worker", 3, 1));
    assert!(needless(&of_two_threads(&trace), "epoll_ctl") > 10_000);
}

#[test]
fn flags_that_two_threads_set_to_different_values_are_set_for_good_reason() {
    let flags = |api: &'static str, flags: u64| call("fcntl", api, &[5, 4, flags], 0).fd("UNIX-STREAM:[7]").toll(500);
    let trace = in_turns(|| flags("fcntl:one", 0), || flags("fcntl:other", 0o4000));
    assert_eq!(needless(&of_two_threads(&trace), "fcntl"), 0);
    let trace = in_turns(|| flags("fcntl:one", 0o4000), || flags("fcntl:other", 0o4000));
    assert!(needless(&of_two_threads(&trace), "fcntl") > 10_000);
}
