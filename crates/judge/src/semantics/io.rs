//! Calls that move bytes, and calls that poll without waiting.

use super::vocabulary::When::{self, AllBits, InControl, InShort, InZero, Is, NoBits, NoneOf, NotNull, OneOf};
use systoll_model::constants::*;
use systoll_model::{Errno, Sysno, WindowCall};

/// The direction in which bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// Into the program.
    In,
    /// Out of the program.
    Out,
}

/// The unit in which a transfer moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes of a stream: two transfers could have been one.
    Stream,
    /// A whole message: one call can move many messages, but they can't be joined.
    Message,
    /// Many messages in one call.
    Batch,
    /// Random bytes, which a pool could serve as well.
    Random,
    /// A connection or an event.
    Item,
}

/// A call that moves data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The direction in which the call moves data.
    pub way: Way,
    /// The unit in which the call moves data.
    pub unit: Unit,
    /// The argument that holds the descriptor.
    pub fd: Option<u8>,
    /// The argument that holds the number of bytes asked for.
    pub asked: Option<u8>,
    /// The argument that holds the position in the file; `None` if the transfer begins where the last one ended.
    pub at: Option<u8>,
    /// True if the transfer may pass descriptors to another process.
    pub carries: bool,
}

const fn transfer(call: &'static str, way: Way) -> Transfer {
    Transfer { call, when: &[], way, unit: Unit::Stream, fd: Some(0), asked: None, at: None, carries: false }
}

const fn reads(call: &'static str) -> Transfer {
    transfer(call, Way::In)
}

const fn writes(call: &'static str) -> Transfer {
    transfer(call, Way::Out)
}

impl Transfer {
    /// Returns the line with these conditions.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// Returns the line with this unit.
    const fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// Returns the line with the argument that holds the number of bytes asked for.
    const fn asked(self, arg: u8) -> Self {
        Self { asked: Some(arg), ..self }
    }

    /// Returns the line with the argument that holds the position in the file.
    const fn at(self, arg: u8) -> Self {
        Self { at: Some(arg), ..self }
    }

    /// Returns the line of a call that may pass descriptors to others.
    const fn carries(self) -> Self {
        Self { carries: true, ..self }
    }

    /// Returns the line of a call without a descriptor.
    const fn no_descriptor(self) -> Self {
        Self { fd: None, ..self }
    }
}

/// Flags with which the bytes stay in the socket.
const PEEKS: u32 = MSG_PEEK | MSG_ERRQUEUE;

/// The transfers. A call with MSG_MORE is left out, since the kernel joins it with the next.
#[rustfmt::skip]
pub(crate) static TRANSFERS: &[Transfer] = &[
    reads("read").asked(2),
    reads("readv"),
    reads("pread64").asked(2).at(3),
    reads("preadv").at(3),
    reads("preadv2").at(3),
    reads("recvfrom").asked(2).when(&[NoBits(3, PEEKS)]),
    reads("recvmsg").when(&[NoBits(2, PEEKS)]),
    reads("recvmmsg").unit(Unit::Batch).when(&[NoBits(3, PEEKS)]),
    writes("write").asked(2),
    writes("writev"),
    writes("pwrite64").asked(2).at(3),
    writes("pwritev").at(3),
    writes("pwritev2").at(3),
    writes("sendto").unit(Unit::Message).asked(2).when(&[NotNull(4), NoBits(3, MSG_MORE)]),
    writes("sendto").asked(2).when(&[NoBits(3, MSG_MORE)]),
    // Descriptors that a message passes on belong to its bytes, so no two of them can be joined.
    writes("sendmsg").carries().unit(Unit::Item).when(&[InControl(1)]),
    writes("sendmsg").carries().when(&[NoBits(2, MSG_MORE)]),
    writes("sendmmsg").carries().unit(Unit::Batch),
    writes("sendfile").asked(3),
    writes("splice").asked(4),
    writes("vmsplice"),
    writes("tee").asked(2),
    writes("copy_file_range").asked(4),
    writes("mq_timedsend").unit(Unit::Message).asked(2),
    reads("mq_timedreceive").unit(Unit::Message).asked(2),
    writes("msgsnd").unit(Unit::Message).asked(2),
    reads("msgrcv").unit(Unit::Message).asked(2),
    reads("process_vm_readv").no_descriptor(),
    writes("process_vm_writev").no_descriptor(),
    reads("getrandom").unit(Unit::Random).asked(1).no_descriptor(),
    reads("accept").unit(Unit::Item),
    reads("accept4").unit(Unit::Item),
];

/// Files whose bytes are random.
pub(crate) const RANDOM_FILES: &[&str] = &["/dev/urandom", "/dev/random"];
/// Beginnings of terminals' paths.
pub(crate) const TERMINALS: &[&str] = &["/dev/pts/", "/dev/tty", "/dev/console"];
/// The name of timers' descriptors.
pub(crate) const TIMERS: &str = "anon_inode:[timerfd]";
/// Beginning of the names of descriptors that return small records of fixed size: `anon_inode:[eventfd]` and others.
pub(crate) const COUNTERS: &str = "anon_inode:";
/// The name of eventfds, which threads use to wake each other.
pub(crate) const WAKE_COUNTERS: &str = "anon_inode:[eventfd]";
/// Beginnings of the names of sockets that carry whole messages. Local streams are `UNIX-STREAM:`.
pub(crate) const DATAGRAMS: [&str; 5] = ["UDP:", "UDPv6:", "UNIX:", "UNIX-DGRAM:", "UNIX-SEQPACKET:"];
/// Beginnings of the names of TCP sockets.
pub(crate) const NETWORK_STREAMS: [&str; 2] = ["TCP:", "TCPv6:"];
/// Beginnings of the names of TCP sockets with both ends on this box.
pub(crate) const ON_THIS_BOX: [&str; 2] = ["TCP:[127.", "TCPv6:[[::1]"];

/// Returns the kind of a connected socket and the addresses of its ends, this one first: of `TCP:[FROM->TO]`.
pub(crate) fn connection(name: &str) -> Option<(&str, &str, &str)> {
    let (kind, ends) = name.split_once(":[")?;
    let (from, to) = ends.strip_suffix(']')?.split_once("->")?;
    Some((kind, from, to))
}

/// Folder of devices.
const DEVICES: &str = "/dev/";
/// Folders of other file systems among the devices: they hold files in memory.
const IN_MEMORY: [&str; 2] = ["/dev/shm/", "/dev/hugepages/"];

/// Returns true if the path is that of a device; files in memory, whose folders lie among the devices, are none.
pub(crate) fn is_device(path: &str) -> bool {
    path.starts_with(DEVICES) && !IN_MEMORY.iter().any(|folder| path.starts_with(folder))
}

/// Returns true if the path is that of a file that stores bytes: neither a device nor a file that the kernel makes up.
pub(crate) fn is_stored(path: &str) -> bool {
    path.starts_with('/') && !is_device(path) && !MADE_UP.iter().any(|folder| path.starts_with(folder))
}
/// Beginning of pipes' names.
pub(crate) const PIPES: &str = "pipe:";
/// Folders of files that the kernel makes at each read: they hold state, not stored bytes.
pub(crate) const MADE_UP: &[&str] = &["/proc/", "/sys/"];

/// A call that enters a ring (io_uring) to submit entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enter {
    /// The system call's name.
    pub call: &'static str,
    /// The argument that holds the number of entries to submit.
    pub entries: u8,
}

/// The calls that enter io_uring's rings.
pub(crate) static ENTERS: &[Enter] = &[Enter { call: "io_uring_enter", entries: 1 }];

/// The result with which a poll tells that it found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// The poll returns 0.
    Zero,
    /// The poll fails with this error.
    Error(Errno),
}

impl Nothing {
    /// Returns true if a call has this result.
    pub(crate) fn is_of(self, call: &WindowCall) -> bool {
        match self {
            Self::Zero => call.result == Some(0),
            Self::Error(errno) => call.errno() == Some(errno),
        }
    }
}

/// A poll: a call that returns at once, whether it finds something or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The result that means nothing was found.
    pub nothing: Nothing,
    /// The argument that holds what was polled.
    pub at: Option<u8>,
    /// The waste, for a sentence: a verb and its object.
    pub does: &'static str,
    /// The advice, for a sentence.
    pub instead: &'static str,
    /// True if the call sleeps for a moment, which may be on purpose.
    pub sleeps: bool,
    /// True if the call is useful when another thread gets the processor.
    pub hands_over: bool,
    /// Longest call that still counts as a poll, ns; a longer one is a wait.
    pub most_ns: u64,
    /// True if the call is a wait that timed out.
    pub runs_out: bool,
}

/// Timeouts of `poll` and `epoll_wait`, ms, that set no limit in time: zero, and infinite.
const NO_TIME: &[u32] = &[0, u32::MAX];
/// Flag of a futex operation whose time is one of the wall clock (linux/futex.h).
const FUTEX_CLOCK_REALTIME: u32 = 0x100;
/// Operations of futex that wait until a moment.
const TIMED: &[u32] = &[
    FUTEX_WAIT_BITSET,
    FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG,
    FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME,
    FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME | FUTEX_PRIVATE_FLAG,
];

const WAIT: &str = "let the call wait: a timeout costs nothing while there is nothing";
const BLOCK: &str = "wait for it with poll or epoll, or let the descriptor block";
const FINDS_NOTHING: &str = "looks without waiting and finds nothing, again and again";
const TRIES_AGAIN: &str = "tries a descriptor that has nothing, again and again";

const fn look(call: &'static str) -> Look {
    let (does, instead) = (FINDS_NOTHING, WAIT);
    Look {
        call,
        when: &[],
        nothing: Nothing::Zero,
        at: None,
        does,
        instead,
        sleeps: false,
        hands_over: false,
        most_ns: u64::MAX,
        runs_out: false,
    }
}

const fn tries(call: &'static str) -> Look {
    Look { does: TRIES_AGAIN, instead: BLOCK, ..look(call).at(0).fails(Errno::EAGAIN) }
}

const fn slice(call: &'static str) -> Look {
    Look {
        does: "sleeps in slices of a millisecond or less and looks again",
        instead: "wait for the event itself: a condition variable, an eventfd, poll with a timeout",
        sleeps: true,
        ..look(call)
    }
}

/// Returns a line for a wait that timed out soon, which counts as a poll.
const fn times_out(call: &'static str) -> Look {
    Look { does: "waits for a moment, in vain, and looks again", most_ns: SOON, runs_out: true, ..slice(call) }
}

/// Longest sleep until a moment that counts as one of a millisecond, ns: waking a thread takes the rest.
const MILLISECOND: u64 = 1_200_000;
/// Longest timed-out wait that counts as a poll, ns.
const SOON: u64 = 50_000_000;

impl Look {
    /// Returns the line with these conditions.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// Returns the line with the argument that tells what was polled.
    const fn at(self, arg: u8) -> Self {
        Self { at: Some(arg), ..self }
    }

    /// Returns the line of a call that fails with this error if it finds nothing.
    const fn fails(self, errno: Errno) -> Self {
        Self { nothing: Nothing::Error(errno), ..self }
    }
}

/// The calls that poll, one line each.
#[rustfmt::skip]
pub(crate) static LOOKS: &[Look] = &[
    look("poll").when(&[Is(2, 0)]),
    look("ppoll").when(&[NotNull(2), InZero(2)]),
    look("select").when(&[NotNull(4), InZero(4)]),
    look("pselect6").when(&[NotNull(4), InZero(4)]),
    look("epoll_wait").when(&[Is(3, 0)]).at(0),
    look("epoll_pwait").when(&[Is(3, 0)]).at(0),
    look("epoll_pwait2").when(&[NotNull(3), InZero(3)]).at(0),
    look("wait4").when(&[AllBits(2, WNOHANG)]),
    look("rt_sigtimedwait").when(&[NotNull(2), InZero(2)]).fails(Errno::EAGAIN),
    // The call asks for at least 0 events without a timeout, or submits nothing and waits for nothing.
    look("io_getevents").when(&[Is(1, 0), NotNull(4), InZero(4)]).at(0),
    look("io_pgetevents").when(&[Is(1, 0), NotNull(4), InZero(4)]).at(0),
    look("io_uring_enter").when(&[Is(1, 0), Is(2, 0)]).at(0),
    // FUTEX_WAIT fails with EAGAIN if the futex's value is not the expected one.
    Look { does: "waits for a value that is another already, again and again",
        instead: "look at the value before waiting, and wait less often: a lock is fought over",
        ..look("futex").when(&[OneOf(1, &[FUTEX_WAIT, FUTEX_WAIT | FUTEX_PRIVATE_FLAG])]).at(0).fails(Errno::EAGAIN) },
    look("futex").when(&[OneOf(1, &[FUTEX_TRYLOCK_PI, FUTEX_TRYLOCK_PI | FUTEX_PRIVATE_FLAG])]).at(0)
        .fails(Errno::EAGAIN),
    Look { does: "gives the processor up and is given it back at once, again and again",
        instead: "wait on a futex, a condition variable or an eventfd instead of yielding",
        hands_over: true,
        ..look("sched_yield") },
    tries("read"), tries("readv"), tries("recvfrom"), tries("recvmsg"), tries("recvmmsg"),
    tries("write"), tries("writev"), tries("sendto"), tries("sendmsg"), tries("splice"),
    tries("accept"), tries("accept4"), tries("mq_timedreceive"), tries("mq_timedsend"), tries("semop"), tries("semtimedop"),
    look("msgrcv").when(&[AllBits(4, IPC_NOWAIT)]).at(0).fails(Errno::ENOMSG),
    look("flock").when(&[AllBits(1, LOCK_NB)]).at(0).fails(Errno::EAGAIN),
    look("fcntl").when(&[OneOf(1, &[F_SETLK, F_OFD_SETLK])]).at(0).fails(Errno::EAGAIN),
    slice("nanosleep").when(&[InShort(0)]),
    slice("clock_nanosleep").when(&[NoBits(1, TIMER_ABSTIME), InShort(2)]),
    Look { most_ns: MILLISECOND, ..slice("clock_nanosleep").when(&[AllBits(1, TIMER_ABSTIME)]) },
    // These calls may wait for descriptors too: if the timeout expired, the call was a sleep.
    slice("poll").when(&[Is(2, 1)]),
    slice("ppoll").when(&[NotNull(2), InShort(2)]),
    slice("pselect6").when(&[NotNull(4), InShort(4)]),
    slice("epoll_wait").when(&[Is(3, 1)]).at(0),
    slice("epoll_pwait").when(&[Is(3, 1)]).at(0),
    slice("epoll_pwait2").when(&[NotNull(3), InShort(3)]).at(0),
    times_out("poll").when(&[NoneOf(2, NO_TIME)]),
    times_out("ppoll").when(&[NotNull(2)]),
    times_out("select").when(&[NotNull(4)]),
    times_out("pselect6").when(&[NotNull(4)]),
    times_out("epoll_wait").when(&[NoneOf(3, NO_TIME)]).at(0),
    times_out("epoll_pwait").when(&[NoneOf(3, NO_TIME)]).at(0),
    times_out("epoll_pwait2").when(&[NotNull(3)]).at(0),
    times_out("rt_sigtimedwait").when(&[NotNull(2)]).fails(Errno::EAGAIN),
    // pthread_cond_timedwait and sem_timedwait wait in this way.
    times_out("futex").when(&[OneOf(1, TIMED), NotNull(3)]).fails(Errno::ETIMEDOUT),
];

/// Calls that move bytes from one descriptor to another, or by requests that windows do not show.
pub(crate) const MOVES_UNSEEN: [&str; 6] = ["sendfile", "splice", "tee", "vmsplice", "io_submit", "io_uring_enter"];

/// Returns true if the call may pass descriptors to another process.
pub(crate) fn may_pass_descriptors(syscall: Sysno) -> bool {
    TRANSFERS.iter().any(|line| line.carries && syscall.name() == Some(line.call))
}
