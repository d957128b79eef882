//! Which calls move bytes, and which look without waiting.

use super::vocabulary::When::{self, AllBits, InShort, InZero, Is, NoBits, NoneOf, NotNull, OneOf};
use systoll_model::Errno;
use systoll_model::constants::*;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// To the program.
    In,
    /// From it.
    Out,
}

/// What a transfer moves at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes of a stream: two transfers could have been one.
    Stream,
    /// A whole message: many can be moved by one call, but not joined.
    Message,
    /// Many messages at once already.
    Batch,
    /// Random bytes: a pool of them serves as well.
    Random,
    /// A connection, an event.
    Item,
}

/// A call that moves something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// Which way.
    pub way: Way,
    /// What it moves.
    pub unit: Unit,
    /// The argument that holds the descriptor.
    pub fd: Option<u8>,
    /// The argument that says how many bytes are wanted.
    pub asked: Option<u8>,
    /// The argument that says where in the file; else it is where the last one ended.
    pub at: Option<u8>,
    /// Whether it may hand descriptors to others.
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
    /// Only where all of these hold.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// It moves these at a time.
    const fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// This argument says how many bytes are wanted.
    const fn asked(self, arg: u8) -> Self {
        Self { asked: Some(arg), ..self }
    }

    /// This argument says where in the file.
    const fn at(self, arg: u8) -> Self {
        Self { at: Some(arg), ..self }
    }

    /// It may hand descriptors to others.
    const fn carries(self) -> Self {
        Self { carries: true, ..self }
    }

    /// No argument holds a descriptor.
    const fn no_descriptor(self) -> Self {
        Self { fd: None, ..self }
    }
}

/// The bytes stay where they are.
const PEEKS: u32 = MSG_PEEK | MSG_ERRQUEUE;

/// The table. With MSG_MORE more follows, so that the call is not one of several that could have been one.
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
/// Where a person types and reads along.
pub(crate) const TERMINALS: &[&str] = &["/dev/pts/", "/dev/tty", "/dev/console"];
/// Descriptors that hand out fixed small records: `anon_inode:[eventfd]` and the like.
pub(crate) const COUNTERS: &str = "anon_inode:";
/// Those that one thread adds to so that another wakes.
pub(crate) const WAKE_COUNTERS: &str = "anon_inode:[eventfd]";
/// What the names of sockets begin with through which whole messages go. Those of streams on this box are `UNIX-STREAM:`.
pub(crate) const DATAGRAMS: [&str; 5] = ["UDP:", "UDPv6:", "UNIX:", "UNIX-DGRAM:", "UNIX-SEQPACKET:"];
/// What the names of streams over a network begin with, and those of two ends on one box.
pub(crate) const NETWORK_STREAMS: [&str; 2] = ["TCP:", "TCPv6:"];
pub(crate) const ON_THIS_BOX: [&str; 2] = ["TCP:[127.", "TCPv6:[[::1]"];
/// Where devices lie.
pub(crate) const DEVICES: &[&str] = &["/dev/"];
/// What the names of pipes begin with.
pub(crate) const PIPES: &str = "pipe:";
/// Files made up by the kernel at each reading: their paths lead to state, not to bytes.
pub(crate) const MADE_UP: &[&str] = &["/proc/", "/sys/"];

/// A call that enters a ring for the entries that lie in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enter {
    /// The system call's name.
    pub call: &'static str,
    /// The argument that tells how many entries it is to take.
    pub entries: u8,
}

/// The table.
pub(crate) static ENTERS: &[Enter] = &[Enter { call: "io_uring_enter", entries: 1 }];

/// How a look without waiting tells that there was nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// It returns 0.
    Zero,
    /// It fails with this.
    Error(Errno),
}

/// A call that comes back at once, whether or not there is something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// What says that there was nothing.
    pub nothing: Nothing,
    /// The argument that tells what was looked at.
    pub at: Option<u8>,
    /// What it does, for a sentence.
    pub does: &'static str,
    /// What to do instead.
    pub instead: &'static str,
    /// Whether it gives time up on purpose, which may be meant.
    pub sleeps: bool,
    /// Whether it is of use where another thread gets the processor.
    pub hands_over: bool,
    /// A longer one is no look but a wait, in ns.
    pub most_ns: u64,
}

/// Times of `poll` and `epoll_wait` in ms that are none, and no end.
const NO_TIME: &[u32] = &[0, u32::MAX];
/// That the moment is one of the wall clock (linux/futex.h).
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

/// A wait that ran out soon is a look.
const fn times_out(call: &'static str) -> Look {
    Look { does: "waits for a moment, in vain, and looks again", most_ns: SOON, ..slice(call) }
}

/// A wait that runs out within this is one of many, in ns.
const SOON: u64 = 50_000_000;

impl Look {
    /// Only where all of these hold.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// Whether it is a wait that ran out.
    pub(crate) fn runs_out(&self) -> bool {
        self.most_ns < u64::MAX
    }

    /// This argument tells what was looked at.
    const fn at(self, arg: u8) -> Self {
        Self { at: Some(arg), ..self }
    }

    /// Finding nothing, it fails with this.
    const fn fails(self, errno: Errno) -> Self {
        Self { nothing: Nothing::Error(errno), ..self }
    }
}

/// The table.
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
    // A minimum of 0 events and no timeout; nothing to submit and none to wait for.
    look("io_getevents").when(&[Is(1, 0), NotNull(4), InZero(4)]).at(0),
    look("io_pgetevents").when(&[Is(1, 0), NotNull(4), InZero(4)]).at(0),
    look("io_uring_enter").when(&[Is(1, 0), Is(2, 0)]).at(0),
    // The value was another already.
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
    // Of descriptors too: where the time ran out, it was a sleep.
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
    // As pthread_cond_timedwait and sem_timedwait wait.
    times_out("futex").when(&[OneOf(1, TIMED), NotNull(3)]).fails(Errno::ETIMEDOUT),
];
