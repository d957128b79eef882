//! Calls with a cheaper way to the same result (strength reduction).

use super::vocabulary::When::{self, Above, AllBits, AtOnce, InZero, Is, Negative, NoBits, Null, OfBytes, OneOf};
use systoll_model::constants::*;

/// A call with a cheaper way to the same result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cheaper {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// True if the call's price is the time that it waits, and not the crossing.
    pub by_wait: bool,
    /// The waste, for a sentence: a verb and its object.
    pub does: &'static str,
    /// The cheaper way, for a sentence.
    pub instead: &'static str,
    /// Least time that the cheaper way saves of a call, ns; `None` if it saves nearly all of it.
    pub saves_ns: Option<f64>,
}

/// Clocks that the vDSO answers without a system call: lib/vdso/gettimeofday.c of Linux, VDSO_HRES,
/// VDSO_COARSE and VDSO_RAW.
const VDSO_CLOCKS: &[u32] = &[
    CLOCK_REALTIME,
    CLOCK_MONOTONIC,
    CLOCK_MONOTONIC_RAW,
    CLOCK_REALTIME_COARSE,
    CLOCK_MONOTONIC_COARSE,
    CLOCK_BOOTTIME,
    CLOCK_TAI,
];
/// Clocks of processor time; those of other processes and threads have negative numbers.
const CPU_CLOCKS: &[u32] = &[CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID];

const CLOCK_IN_KERNEL: &str = "asks the kernel for a clock the vDSO serves";
const CPU_TIME: &str = "reads processor time from the kernel";
const USAGE: &str = "reads usage meters from the kernel";

/// Returns a line for a call that libc answers from the vDSO.
const fn in_vdso(call: &'static str, does: &'static str) -> Cheaper {
    let instead = "call it through libc, which asks the vDSO without a system call";
    Cheaper { call, when: &[], by_wait: false, does, instead, saves_ns: None }
}

/// Returns a line for a meter that need not be read so often.
const fn seldom(call: &'static str, does: &'static str) -> Cheaper {
    Cheaper { instead: "look every N steps, or at a clock the vDSO serves", ..in_vdso(call, does) }
}

/// Returns a line for a call with many descriptors: the kernel goes through all bits up to the highest one.
const fn of_many_descriptors(call: &'static str) -> Cheaper {
    let does = "has the kernel go through hundreds of descriptors each time";
    let instead = "epoll or poll, which look only at those of interest";
    Cheaper { call, when: &[Above(0, 256)], by_wait: false, does, instead, saves_ns: None }
}

/// Least extra cost of a list with one piece over the piece itself, ns. For 16 bytes written to a file and to
/// /dev/null and read from a file and /dev/zero, writev took 165 and 190 ns more than write, preadv 85 ns and more
/// above pread, where a getppid took 115 ns (the least of 40 rounds of 20,000 each).
const LIST_OF_ONE_NS: f64 = 80.0;

/// Returns a line for a call with a list that has one piece.
const fn list_of_one(call: &'static str, instead: &'static str) -> Cheaper {
    let does = "has the kernel read a list that has one piece";
    Cheaper { call, when: &[Is(2, 1)], by_wait: false, does, instead, saves_ns: Some(LIST_OF_ONE_NS) }
}

/// Returns a line for a wait with a timeout of zero.
const fn no_wait(call: &'static str, when: &'static [When]) -> Cheaper {
    let does = "waits for no time at all";
    Cheaper {
        call,
        when,
        by_wait: false,
        does,
        instead: "leave it out, or sched_yield where others are to run",
        saves_ns: None,
    }
}

/// Returns a line for a wait until a time that is past.
const fn past(call: &'static str, when: &'static [When]) -> Cheaper {
    let does = "waits until a time that has come already";
    let instead = "look at the clock, which the vDSO serves, and wait where there is time left";
    Cheaper { does, instead, ..no_wait(call, when) }
}

impl Cheaper {
    /// Returns the line with these conditions.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }
}

/// Returns a line for a transfer of no bytes.
const fn moves_nothing(call: &'static str, when: &'static [When]) -> Cheaper {
    let does = "reads or writes no byte at all, which does nothing";
    Cheaper { does, instead: "look at the length first", ..no_wait(call, when) }
}

/// Table of the calls that have a cheaper way.
#[rustfmt::skip]
pub(crate) static CHEAPER: &[Cheaper] = &[
    in_vdso("clock_gettime", CLOCK_IN_KERNEL).when(&[OneOf(0, VDSO_CLOCKS)]),
    seldom("clock_gettime", CPU_TIME).when(&[OneOf(0, CPU_CLOCKS)]),
    seldom("clock_gettime", CPU_TIME).when(&[Negative(0)]),
    in_vdso("gettimeofday", CLOCK_IN_KERNEL),
    in_vdso("time", CLOCK_IN_KERNEL),
    in_vdso("getcpu", "asks the kernel for the processor's number"),
    seldom("getrusage", USAGE),
    seldom("times", CPU_TIME),
    seldom("sysinfo", USAGE),
    list_of_one("readv", "read, which takes one piece without a list"),
    list_of_one("writev", "write, which takes one piece without a list"),
    list_of_one("preadv", "pread, which takes one piece without a list"),
    list_of_one("pwritev", "pwrite, which takes one piece without a list"),
    moves_nothing("read", &[Null(2), OfBytes]),
    moves_nothing("pread64", &[Null(2), OfBytes]),
    moves_nothing("write", &[Null(2), OfBytes]),
    moves_nothing("pwrite64", &[Null(2), OfBytes]),
    moves_nothing("sendfile", &[Null(3), OfBytes]),
    moves_nothing("splice", &[Null(4), OfBytes]),
    moves_nothing("tee", &[Null(2), OfBytes]),
    moves_nothing("copy_file_range", &[Null(4), OfBytes]),
    no_wait("nanosleep", &[InZero(0)]),
    no_wait("clock_nanosleep", &[NoBits(1, TIMER_ABSTIME), InZero(2)]),
    past("clock_nanosleep", &[AllBits(1, TIMER_ABSTIME), AtOnce]),
    no_wait("poll", &[Is(1, 0), Is(2, 0)]),
    no_wait("ppoll", &[Is(1, 0), InZero(2)]),
    no_wait("select", &[Is(0, 0), InZero(4)]),
    no_wait("pselect6", &[Is(0, 0), InZero(4)]),
    of_many_descriptors("select"),
    of_many_descriptors("pselect6"),
    // Since Linux 2.6.19 the call with MS_ASYNC alone does nothing (msync(2)): the kernel notes changed pages itself.
    Cheaper {
        does: "asks for changed pages to be written some time, which the kernel does without being asked",
        instead: "leave it out; msync with MS_SYNC, or fdatasync, where it must be on the disk",
        ..no_wait("msync", &[Is(2, MS_ASYNC)])
    },
    // Called SHARED before Linux 4.16.
    Cheaper {
        call: "membarrier", when: &[Is(0, MEMBARRIER_CMD_GLOBAL)], by_wait: true,
        does: "waits until every processor has been through the scheduler",
        instead: "register once, then MEMBARRIER_CMD_PRIVATE_EXPEDITED (Linux 4.14)", saves_ns: None,
    },
];
