//! Calls that have a cheaper twin, and calls that wait for something a program need not wait for.

use super::When;
use super::When::{Above, AnyBits, Is, Negative, OneOf};

/// A call with a cheaper way to the same end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cheaper {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// Whether its price is the time it waits rather than the crossing.
    pub by_wait: bool,
    /// What it does, for a sentence.
    pub does: &'static str,
    /// The cheaper way, for a sentence.
    pub instead: &'static str,
}

/// Clocks the vDSO answers without a system call: lib/vdso/gettimeofday.c of Linux, VDSO_HRES,
/// VDSO_COARSE and VDSO_RAW.
const VDSO_CLOCKS: &[u32] = &[0, 1, 4, 5, 6, 7, 11];
/// CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID.
const CPU_CLOCKS: &[u32] = &[2, 3];
const IN_VDSO: &str = "call it through libc, which asks the vDSO without a system call";
const SELDOM: &str = "look every N steps, or at a clock the vDSO serves";

const fn cheaper(call: &'static str, when: &'static [When], does: &'static str, instead: &'static str) -> Cheaper {
    Cheaper { call, when, by_wait: false, does, instead }
}

/// The table.
#[rustfmt::skip]
pub(crate) static CHEAPER: &[Cheaper] = &[
    cheaper("clock_gettime", &[OneOf(0, VDSO_CLOCKS)], "asks the kernel for a clock the vDSO serves", IN_VDSO),
    cheaper("clock_gettime", &[OneOf(0, CPU_CLOCKS)], "reads processor time from the kernel", SELDOM),
    cheaper("clock_gettime", &[Negative(0)], "reads processor time from the kernel", SELDOM),
    cheaper("gettimeofday", &[], "asks the kernel for a clock the vDSO serves", IN_VDSO),
    cheaper("time", &[], "asks the kernel for a clock the vDSO serves", IN_VDSO),
    cheaper("getcpu", &[], "asks the kernel for the processor's number", IN_VDSO),
    cheaper("getrusage", &[], "reads usage meters from the kernel", SELDOM),
    cheaper("times", &[], "reads processor time from the kernel", SELDOM),
    cheaper("sysinfo", &[], "reads usage meters from the kernel", SELDOM),
    // The kernel goes through all bits up to the highest descriptor.
    cheaper("select", &[Above(0, 256)], "has the kernel go through hundreds of descriptors each time",
        "epoll or poll, which look only at those of interest"),
    cheaper("pselect6", &[Above(0, 256)], "has the kernel go through hundreds of descriptors each time",
        "epoll or poll, which look only at those of interest"),
    // MEMBARRIER_CMD_GLOBAL, called SHARED before Linux 4.16.
    Cheaper {
        call: "membarrier", when: &[Is(0, 1)], by_wait: true,
        does: "waits until every processor has been through the scheduler",
        instead: "register once, then MEMBARRIER_CMD_PRIVATE_EXPEDITED (Linux 4.14)",
    },
];

/// Where a wait before `main` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Anywhere before `main`, also where nobody saw `main`.
    Anywhere,
    /// Before a `main` that was seen, or in a constructor.
    BeforeMain,
    /// In a constructor only.
    Constructor,
}

/// A call whose waiting before `main` is worth telling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// The system call's name.
    pub call: &'static str,
    /// Where it counts.
    pub place: Place,
    /// What it waits for, for a sentence.
    pub waits_for: &'static str,
}

const fn wait(call: &'static str, place: Place, waits_for: &'static str) -> Wait {
    Wait { call, place, waits_for }
}

/// The suspects. Absent on purpose: futex (the program's own threads), wait4 and waitid, reads
/// from pipes and sockets (the program's own children).
#[rustfmt::skip]
pub(crate) static WAITS: &[Wait] = &[
    wait("membarrier", Place::Anywhere, "until every processor has been through the scheduler"),
    wait("flock", Place::BeforeMain, "for a lock on a file"),
    wait("connect", Place::BeforeMain, "for a connection"),
    wait("sync", Place::BeforeMain, "for the disk"),
    wait("syncfs", Place::BeforeMain, "for the disk"),
    wait("fsync", Place::BeforeMain, "for the disk"),
    wait("fdatasync", Place::BeforeMain, "for the disk"),
    wait("getrandom", Place::BeforeMain, "for random numbers"),
    wait("poll", Place::Constructor, "for a descriptor or a timeout"),
    wait("ppoll", Place::Constructor, "for a descriptor or a timeout"),
    wait("select", Place::Constructor, "for a descriptor or a timeout"),
    wait("pselect6", Place::Constructor, "for a descriptor or a timeout"),
    wait("nanosleep", Place::Constructor, "for time to pass"),
    wait("clock_nanosleep", Place::Constructor, "for time to pass"),
];

/// Something made by one call and unmade by another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// The call that makes it; its result is the handle.
    pub makes: &'static str,
    /// All must hold of that call.
    pub when: &'static [When],
    /// The argument that tells one sort of it from another.
    pub sort: u8,
    /// The call that puts it elsewhere or changes its size, if there is one; its first argument is the handle,
    /// its result the new one.
    pub moves: Option<&'static str>,
    /// The call that unmakes it; its first argument is the handle.
    pub ends: &'static str,
    /// What it is, for a sentence.
    pub thing: &'static str,
}

const fn pair(makes: &'static str, when: &'static [When], sort: u8, ends: &'static str, thing: &'static str) -> Pair {
    Pair { makes, when, sort, moves: None, ends, thing }
}

/// The table. Sockets and files are absent on purpose: making one says something to others.
#[rustfmt::skip]
pub(crate) static PAIRS: &[Pair] = &[
    // MAP_ANONYMOUS, by length.
    Pair { moves: Some("mremap"), ..pair("mmap", &[AnyBits(3, 0x20)], 1, "munmap", "a block of memory") },
    pair("shmat", &[], 0, "shmdt", "a shared block of memory"),
    pair("pkey_alloc", &[], 1, "pkey_free", "a protection key"),
    pair("dup", &[], 0, "close", "a second descriptor"),
    pair("eventfd2", &[], 1, "close", "an event descriptor"),
    pair("timerfd_create", &[], 0, "close", "a timer"),
    pair("epoll_create1", &[], 0, "close", "an epoll descriptor"),
    pair("inotify_init1", &[], 0, "close", "a watch descriptor"),
];
