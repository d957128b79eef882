//! Tests of state that several calls set: after a set by one call, the next set by another is useful.

use crate::common::*;
use systoll_judge::Kind;

const ROUNDS: u64 = 20_000;

const NONBLOCK: u64 = 0o4000;
const FIONBIO: u64 = 0x5421;
const FIOASYNC: u64 = 0x5452;

fn word(value: u32) -> [u8; 4] {
    value.to_le_bytes()
}

fn ioctl(fd: u64, command: u64, value: &[u8]) -> Call {
    call("ioctl", "ioctl", &[fd, command, 0x7fff_0000], 0).input(2, value).fd("socket:[7]")
}

fn fcntl(fd: u64, command: u64, value: u64) -> Call {
    call("fcntl", "fcntl", &[fd, command, value], 0).fd("socket:[7]")
}

fn limits(soft: u64) -> Vec<u8> {
    [soft, 4096].map(u64::to_le_bytes).as_flattened().to_vec()
}

fn setrlimit(soft: u64) -> Call {
    call("setrlimit", "setrlimit", &[7, 0x7fff_0000], 0).input(1, &limits(soft))
}

fn prlimit(pid: u64, soft: u64) -> Call {
    call("prlimit64", "prlimit", &[pid, 7, 0x7fff_0000, 0], 0).input(2, &limits(soft))
}

fn setsockopt(option: u64, value: u32) -> Call {
    call("setsockopt", "setsockopt", &[5, 1, option, 0x7fff_0000, 4], 0).input(3, &word(value)).fd("socket:[7]")
}

fn settings(fd: u64, name: &'static str, command: u64, byte: u8) -> Call {
    call("ioctl", "tcsetattr", &[fd, command, 0x7fff_0000], 0).input(2, &[byte; 36]).fd(name)
}

fn madvise(start: u64, length: u64, advice: u64) -> Call {
    call("madvise", "madvise", &[start, length, advice], 0)
}

fn epoll_mod(events: u32) -> Call {
    let event = [word(events), word(9), word(0)].concat();
    call("epoll_ctl", "epoll_ctl", &[4, 3, 9, 0x7fff_0000], 0).input(3, &event)
}

fn ftruncate(fd: u64, size: u64) -> Call {
    call("ftruncate", "ftruncate", &[fd, size], 0).fd("/tmp/data")
}

fn lseek(fd: u64, at: u64) -> Call {
    call("lseek", "lseek", &[fd, at, 0], at as i64).fd("/tmp/data")
}

fn write(fd: u64) -> Call {
    call("write", "write", &[fd, 0x1000, 5000], 5000).fd("/tmp/data").toll(900)
}

/// Returns sets, each with another call that sets the same state to something else.
fn roads() -> Vec<(&'static str, Call, Call)> {
    let name = |text: &str| call("prctl", "prctl", &[15, 0x7fff_0000], 0).path(1, text);
    let comm = call("write", "write", &[3, 0x1000, 4], 4).fd("/proc/77/comm");
    let nice = |which: u64, who: u64, value: u64| call("setpriority", "setpriority", &[which, who, value], 0);
    let cpus =
        |pid: u64, mask: u8| call("sched_setaffinity", "affinity", &[pid, 8, 0x7fff_0000], 0).input(2, &[mask; 8]);
    let sched_attr = call("sched_setattr", "sched_setattr", &[0, 0x7fff_0000, 0], 0).input(1, &[1; 48]);
    let truncate = call("truncate", "truncate", &[0x7fff_0000, 0], 0).path(0, "/tmp/data");
    vec![
        ("FIONBIO, F_SETFL", ioctl(5, FIONBIO, &word(1)), fcntl(5, 4, 0)),
        ("F_SETFL, FIONBIO", fcntl(5, 4, NONBLOCK), ioctl(5, FIONBIO, &word(0))),
        ("F_SETFL, FIOASYNC", fcntl(5, 4, 0x2000), ioctl(5, FIOASYNC, &word(0))),
        ("F_SETFL of a duplicate", fcntl(5, 4, NONBLOCK), fcntl(6, 4, 0)),
        ("F_SETFD, FIONCLEX", fcntl(5, 2, 1), ioctl(5, 0x5450, &[])),
        ("FIOCLEX, F_SETFD", ioctl(5, 0x5451, &[]), fcntl(5, 2, 0)),
        ("close_range(CLOEXEC)", fcntl(5, 2, 0), call("close_range", "close_range", &[3, 99, 4], 0)),
        ("setrlimit, prlimit64", setrlimit(100), prlimit(0, 200)),
        ("prlimit64, setrlimit", prlimit(0, 100), setrlimit(200)),
        ("prlimit64 by one's number", setrlimit(100), prlimit(77, 200)),
        ("prlimit64 by one's number, first", prlimit(77, 100), prlimit(0, 200)),
        ("setpriority of a group", nice(0, 0, 5), nice(1, 0, 6)),
        ("sched_setattr", nice(0, 0, 5), sched_attr),
        ("sched_setaffinity by number", cpus(0, 1), cpus(77, 2)),
        (
            "a group's processors",
            cpus(0, 1),
            call("write", "write", &[3, 0x1000, 4], 4).fd("/sys/fs/cgroup/cpuset.cpus"),
        ),
        ("a thread's name", name("worker"), comm),
        ("TCSETS, TCSETSW", settings(0, "/dev/pts/1", 0x5402, 1), settings(0, "/dev/pts/1", 0x5403, 2)),
        ("TCSETS by another name", settings(0, "/dev/pts/1", 0x5402, 1), settings(3, "/dev/tty", 0x5402, 2)),
        ("SO_RCVTIMEO, new", setsockopt(20, 1), setsockopt(66, 2)),
        ("SO_RCVBUF, forced", setsockopt(8, 4096), setsockopt(33, 8192)),
        ("IP_TOS and SO_PRIORITY", setsockopt(12, 6), {
            call("setsockopt", "setsockopt", &[5, 0, 1, 0x7fff_0000, 4], 0).input(3, &word(8)).fd("socket:[7]")
        }),
        ("an overlapping range", madvise(0x10_0000, 0x20_0000, 14), madvise(0x10_0000, 0x10_0000, 15)),
        (
            "a range that is unmapped",
            madvise(0x10_0000, 0x20_0000, 14),
            call("munmap", "munmap", &[0x10_0000, 0x20_0000], 0),
        ),
        ("EPOLLONESHOT in between", epoll_mod(1), epoll_mod(4 | 0x4000_0000)),
        ("a write to a file of a size", ftruncate(5, 100), write(6)),
        ("truncate of a file of a size", ftruncate(5, 100), truncate),
        ("lseek of a duplicate", lseek(5, 0), lseek(6, 4096)),
    ]
}

#[test]
fn what_another_road_has_set_in_between_is_set_again_for_good_reason() {
    for (name, one, other) in roads() {
        let judgement = judged(&rounds(ROUNDS, |_| vec![one.clone(), other.clone()]), BUSY);
        let no_op = judgement.findings.iter().chain(&judgement.also).find(|f| f.kind == Kind::NoOp);
        assert!(no_op.is_none(), "{name}: {no_op:?}");
    }
}

#[test]
fn what_nobody_has_set_in_between_is_set_again_for_nothing() {
    let roads = roads();
    let alone = [
        "FIONBIO, F_SETFL",
        "F_SETFL, FIONBIO",
        "F_SETFD, FIONCLEX",
        "FIOCLEX, F_SETFD",
        "setrlimit, prlimit64",
        "prlimit64, setrlimit",
        "setpriority of a group",
        "sched_setaffinity by number",
        "a thread's name",
        "TCSETS, TCSETSW",
        "SO_RCVTIMEO, new",
        "an overlapping range",
        "EPOLLONESHOT in between",
    ];
    for wanted in alone {
        let (_, one, _) = roads.iter().find(|(name, ..)| *name == wanted).unwrap();
        let found = only(judged(&rounds(ROUNDS, |_| vec![one.clone()]), BUSY));
        assert_eq!(found.kind, Kind::NoOp, "{wanted}");
    }
    // Two calls set the same value: the second one knows the first one's.
    let both = rounds(ROUNDS, |_| vec![setrlimit(100), prlimit(0, 100)]);
    let found = judged(&both, BUSY).findings;
    assert!(!found.is_empty() && found.iter().all(|f| f.kind == Kind::NoOp), "{found:?}");
}

#[test]
fn a_timer_that_two_calls_set_is_one() {
    let value = |seconds: u64| [0, 0, seconds, 0].map(u64::to_le_bytes).as_flattened().to_vec();
    let setitimer = |seconds| call("setitimer", "setitimer", &[0, 0x7fff_0000, 0], 0).input(1, &value(seconds));
    let alarm = |seconds| call("alarm", "alarm", &[seconds], 0);
    let read = || call("read", "read", &[3, 0x1000, 9000], 9000).fd("/tmp/data").toll(900);
    // The other call disarms the timer, but something was done before, which the timer limits.
    silent(&rounds(ROUNDS, |_| vec![alarm(10), read(), setitimer(0), read()]), BUSY);
    // Either call sets the timer again and again before it fires.
    let found = judged(&rounds(ROUNDS, |_| vec![alarm(10), read(), setitimer(10), read()]), BUSY);
    assert!(!found.findings.is_empty());
}
