//! Calls that only make sense together with others: a question before the call that answers it,
//! a timer set again before it fired, an error that can't but come again.

use super::When::{self, AllBits, Is, NoBits, NotNull, OneOf};

/// What ties two calls together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// Both have the descriptor as their first argument.
    Descriptor,
    /// The first makes the descriptor that the second is about.
    Made,
    /// Both are about the same path.
    Path,
}

/// Which of the two calls is needless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spare {
    /// The first.
    First,
    /// The second.
    Second,
}

/// Two calls that one could have done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequel {
    /// The first call.
    pub first: &'static str,
    /// What must hold of it.
    pub when: &'static [When],
    /// The calls that may follow.
    pub then: &'static [&'static str],
    /// What must hold of the one that does.
    pub then_when: &'static [When],
    /// What they have in common.
    pub tie: Tie,
    /// How many calls later the second comes at most.
    pub within: usize,
    /// The one that is needless.
    pub spare: Spare,
    /// Whether it takes two questions about one thing to be sure.
    pub unsure: bool,
    /// What the program does, for a sentence.
    pub does: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

const READS_AND_WRITES: &[&str] = &["read", "write", "readv", "writev"];
const OPENS: &[&str] = &["open", "openat", "openat2"];
/// AT_SYMLINK_NOFOLLOW: asking whether a name is a link is a question that opening does not answer.
const NOFOLLOW: u64 = 0x100;
const O_CLOEXEC: u64 = 0o2_000_000;
const O_NONBLOCK: u64 = 0o4000;

const fn asks_first(first: &'static str, when: &'static [When], unsure: bool) -> Sequel {
    Sequel {
        first,
        when,
        then: OPENS,
        then_when: &[],
        tie: Tie::Path,
        within: 5,
        spare: Spare::First,
        unsure,
        does: "asks about a file right before opening it, which would say the same",
        instead: "open it and look at the error; ask the descriptor (fstat) for the rest",
    }
}

const fn peeks(first: &'static str, when: &'static [When], then: &'static [&'static str]) -> Sequel {
    Sequel {
        first,
        when,
        then,
        then_when: &[],
        tie: Tie::Descriptor,
        within: 1,
        spare: Spare::First,
        unsure: false,
        does: "looks at what there is to read and then reads it",
        instead: "read into a buffer of your own and look there",
    }
}

const fn flags(first: &'static str, when: &'static [When], set: &'static [When], instead: &'static str) -> Sequel {
    Sequel {
        first,
        when,
        then: &["fcntl", "ioctl"],
        then_when: set,
        tie: Tie::Made,
        within: 3,
        spare: Spare::Second,
        unsure: false,
        does: "makes a descriptor and then sets a flag that it could have been made with",
        instead,
    }
}

const fn seeks(when: &'static [When]) -> Sequel {
    Sequel {
        first: "lseek",
        when,
        then: READS_AND_WRITES,
        then_when: &[],
        tie: Tie::Descriptor,
        within: 1,
        spare: Spare::First,
        unsure: false,
        does: "moves the file's position and then reads or writes there",
        instead: "pread or pwrite, which take the position along",
    }
}

/// F_SETFD with FD_CLOEXEC; FIOCLEX takes no argument and is left out.
const SETS_CLOEXEC: &[When] = &[Is(1, 2), AllBits(2, 1)];
/// F_SETFL with O_NONBLOCK.
const SETS_NONBLOCK: &[When] = &[Is(1, 4), AllBits(2, O_NONBLOCK)];

/// The table.
#[rustfmt::skip]
pub(crate) static SEQUELS: &[Sequel] = &[
    // SEEK_SET; SEEK_CUR by more than nothing. Where it does not move, other lines claim it.
    seeks(&[Is(2, 0)]),
    seeks(&[Is(2, 1), NotNull(1)]),
    asks_first("access", &[], false),
    asks_first("faccessat", &[], false),
    asks_first("faccessat2", &[], false),
    asks_first("stat", &[], true),
    asks_first("newfstatat", &[NoBits(3, NOFOLLOW)], true),
    asks_first("statx", &[NoBits(2, NOFOLLOW)], true),
    peeks("recvfrom", &[AllBits(3, 2)], &["read", "recvfrom", "recvmsg", "readv"]),
    peeks("recvmsg", &[AllBits(2, 2)], &["read", "recvfrom", "recvmsg", "readv"]),
    // FIONREAD.
    peeks("ioctl", &[Is(1, 0x541b)], &["read", "recvfrom", "recvmsg", "readv"]),
    flags("open", &[NoBits(1, O_CLOEXEC)], SETS_CLOEXEC, "open it with O_CLOEXEC"),
    flags("openat", &[NoBits(2, O_CLOEXEC)], SETS_CLOEXEC, "open it with O_CLOEXEC"),
    flags("socket", &[NoBits(1, O_CLOEXEC)], SETS_CLOEXEC, "make it with SOCK_CLOEXEC"),
    flags("accept", &[], SETS_CLOEXEC, "accept4 with SOCK_CLOEXEC"),
    flags("accept4", &[NoBits(3, O_CLOEXEC)], SETS_CLOEXEC, "accept4 with SOCK_CLOEXEC"),
    flags("dup", &[], SETS_CLOEXEC, "fcntl F_DUPFD_CLOEXEC"),
    flags("socket", &[NoBits(1, O_NONBLOCK)], SETS_NONBLOCK, "make it with SOCK_NONBLOCK"),
    flags("accept", &[], SETS_NONBLOCK, "accept4 with SOCK_NONBLOCK"),
    flags("accept4", &[NoBits(3, O_NONBLOCK)], SETS_NONBLOCK, "accept4 with SOCK_NONBLOCK"),
];

/// A call that sets a timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    /// The system call's name.
    pub call: &'static str,
    /// The argument that tells which timer; none where there is one a process.
    pub timer: Option<u8>,
    /// The argument that points to a `struct itimerspec` or `itimerval` of four words, or, with
    /// [`Arm::plain`], is the time itself.
    pub time: u8,
    /// The call whose timer it is: two may set one.
    pub of: &'static str,
    /// Whether `time` is a number of seconds.
    pub plain: bool,
    /// Whether its firing is a signal; else its descriptor is read.
    pub signals: bool,
}

/// The table.
#[rustfmt::skip]
pub(crate) static ARMS: &[Arm] = &[
    Arm { call: "timerfd_settime", of: "timerfd_settime", timer: Some(0), time: 2, plain: false, signals: false },
    Arm { call: "timer_settime", of: "timer_settime", timer: Some(0), time: 2, plain: false, signals: true },
    Arm { call: "setitimer", of: "setitimer", timer: Some(0), time: 1, plain: false, signals: true },
    // ITIMER_REAL is 0.
    Arm { call: "alarm", of: "setitimer", timer: None, time: 0, plain: true, signals: true },
];

/// The call that maps memory, and when it is a file's code: PROT_EXEC without MAP_ANONYMOUS.
pub(crate) static LOADS: (&str, &[When]) = ("mmap", &[AllBits(2, 4), NoBits(3, 0x20)]);

/// An error that can't but come again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hopeless {
    /// Its number.
    pub errno: u16,
    /// Whether it is needless whatever else the same call does: a correct program never meets it.
    pub always: bool,
    /// What the call does, for a sentence.
    pub does: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

const fn refused(errno: u16, does: &'static str) -> Hopeless {
    Hopeless { errno, always: false, does, instead: "remember the first refusal" }
}

/// The table. Refusals that depend on the object (ENOENT, EEXIST, EACCES, ENODATA, EINVAL of
/// readlink) are answers and stand elsewhere.
#[rustfmt::skip]
pub(crate) static HOPELESS: &[Hopeless] = &[
    // EBADF.
    Hopeless { errno: 9, always: true, does: "works on descriptors that are not open",
        instead: "close_range(2), closefrom(3), or only the descriptors in /proc/self/fd" },
    // ENOSYS.
    Hopeless { errno: 38, always: false, does: "tries a call that this kernel does not have, again and again",
        instead: "remember the first ENOSYS" },
    // EOPNOTSUPP, ENOPROTOOPT, EAFNOSUPPORT.
    refused(95, "tries what is not supported here, again and again"),
    refused(92, "tries an option that is not supported here, again and again"),
    refused(97, "tries an address family that is not supported here, again and again"),
    // ENOTTY.
    Hopeless { errno: 25, always: false, does: "asks files whether they are terminals, which none was",
        instead: "fstat has said that it is a regular file: don't ask" },
    // ESPIPE.
    Hopeless { errno: 29, always: false, does: "seeks in pipes and sockets, which can't be done",
        instead: "remember that this descriptor can't seek" },
    // ENOTSOCK.
    Hopeless { errno: 88, always: false, does: "treats descriptors as sockets, which none was",
        instead: "remember what the descriptor is" },
];

/// A call that wakes waiters, of which there may be none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wake {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
}

/// The table: FUTEX_WAKE and FUTEX_WAKE_BITSET, with FUTEX_PRIVATE_FLAG and without; futex_wake.
pub(crate) static WAKES: &[Wake] =
    &[Wake { call: "futex", when: &[OneOf(1, &[1, 129, 10, 138])] }, Wake { call: "futex_wake", when: &[] }];

/// A call that gives memory back to the kernel while its addresses stay the program's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivesBack {
    /// The system call's name; the range is in its first two arguments.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
}

/// How much a call gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// The bytes that an argument tells.
    Length(u8),
    /// The bytes by which the second argument named is below the first.
    Less(u8, u8),
    /// What lies between the end before and the result.
    DownTo,
}

/// A call that gives pages back, whether or not their addresses stay the program's: touched again,
/// each takes a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frees {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// How much.
    pub amount: Amount,
}

/// The table. Not MADV_FREE: its pages stay until somebody else wants them.
pub(crate) static FREES: &[Frees] = &[
    Frees { call: "munmap", when: &[], amount: Amount::Length(1) },
    Frees { call: "mremap", when: &[], amount: Amount::Less(1, 2) },
    Frees { call: "madvise", when: &[OneOf(2, &[4, 9])], amount: Amount::Length(1) },
    Frees { call: "brk", when: &[], amount: Amount::DownTo },
];

/// The table: MADV_DONTNEED, MADV_FREE, MADV_REMOVE.
pub(crate) static GIVES_BACK: &[GivesBack] = &[GivesBack { call: "madvise", when: &[OneOf(2, &[4, 8, 9])] }];
