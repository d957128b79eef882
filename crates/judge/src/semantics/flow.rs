//! Which calls move bytes, which look without waiting, which wait.

use super::When::{self, AllBits, InShort, InZero, Is, NoBits, NotNull, OneOf};

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
    /// Random bytes, of which nobody keeps count: a pool serves as well.
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
}

const fn moves(call: &'static str, way: Way, asked: Option<u8>, at: Option<u8>) -> Transfer {
    Transfer { call, when: &[], way, unit: Unit::Stream, fd: Some(0), asked, at }
}

const fn message(call: &'static str, way: Way, when: &'static [When], asked: Option<u8>) -> Transfer {
    Transfer { call, when, way, unit: Unit::Message, fd: Some(0), asked, at: None }
}

const fn item(call: &'static str) -> Transfer {
    Transfer { call, when: &[], way: Way::In, unit: Unit::Item, fd: Some(0), asked: None, at: None }
}

/// MSG_PEEK and MSG_ERRQUEUE leave the bytes where they are; MSG_MORE says that more follows.
const PEEKS: u64 = 0x2 | 0x2000;
const MORE: u64 = 0x8000;

/// The table.
#[rustfmt::skip]
pub(crate) static TRANSFERS: &[Transfer] = &[
    moves("read", Way::In, Some(2), None),
    moves("readv", Way::In, None, None),
    moves("pread64", Way::In, Some(2), Some(3)),
    moves("preadv", Way::In, None, Some(3)),
    moves("preadv2", Way::In, None, Some(3)),
    Transfer { when: &[NoBits(3, PEEKS)], ..moves("recvfrom", Way::In, Some(2), None) },
    Transfer { when: &[NoBits(2, PEEKS)], ..moves("recvmsg", Way::In, None, None) },
    Transfer { unit: Unit::Batch, ..message("recvmmsg", Way::In, &[NoBits(3, PEEKS)], None) },
    moves("write", Way::Out, Some(2), None),
    moves("writev", Way::Out, None, None),
    moves("pwrite64", Way::Out, Some(2), Some(3)),
    moves("pwritev", Way::Out, None, Some(3)),
    moves("pwritev2", Way::Out, None, Some(3)),
    message("sendto", Way::Out, &[NotNull(4), NoBits(3, MORE)], Some(2)),
    Transfer { when: &[NoBits(3, MORE)], ..moves("sendto", Way::Out, Some(2), None) },
    Transfer { when: &[NoBits(2, MORE)], ..moves("sendmsg", Way::Out, None, None) },
    Transfer { unit: Unit::Batch, ..message("sendmmsg", Way::Out, &[], None) },
    moves("sendfile", Way::Out, Some(3), None),
    moves("splice", Way::Out, Some(4), None),
    moves("vmsplice", Way::Out, None, None),
    moves("tee", Way::Out, Some(2), None),
    moves("copy_file_range", Way::Out, Some(4), None),
    message("mq_timedsend", Way::Out, &[], Some(2)),
    message("mq_timedreceive", Way::In, &[], Some(2)),
    message("msgsnd", Way::Out, &[], Some(2)),
    message("msgrcv", Way::In, &[], Some(2)),
    Transfer { call: "process_vm_readv", when: &[], way: Way::In, unit: Unit::Stream, fd: None, asked: None, at: None },
    Transfer { call: "process_vm_writev", when: &[], way: Way::Out, unit: Unit::Stream, fd: None, asked: None, at: None },
    Transfer { call: "getrandom", when: &[], way: Way::In, unit: Unit::Random, fd: None, asked: Some(1), at: None },
    item("accept"),
    item("accept4"),
];

/// Files whose bytes are random.
pub(crate) const RANDOM_FILES: &[&str] = &["/dev/urandom", "/dev/random"];
/// Where transfers go to somebody who reads along: a small one is as it should be.
pub(crate) const TERMINALS: &[&str] = &["/dev/pts/", "/dev/tty", "/dev/console"];
/// Descriptors that hand out fixed small records: `anon_inode:[eventfd]` and the like.
pub(crate) const COUNTERS: &str = "anon_inode:";
/// Files made up by the kernel at each reading: their paths lead to state, not to bytes.
pub(crate) const MADE_UP: &[&str] = &["/proc/", "/sys/"];

/// How a look without waiting tells that there was nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// It returns 0.
    Zero,
    /// It fails with EAGAIN.
    Again,
    /// It fails with this.
    Error(u16),
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
    /// Whether it is of use where somebody else gets the processor.
    pub hands_over: bool,
}

const WAIT: &str = "let the call wait: a timeout costs nothing while there is nothing";
const BLOCK: &str = "wait for it with poll or epoll, or let the descriptor block";
const LOOKS: &str = "looks without waiting and finds nothing, again and again";
const TRIES: &str = "tries a descriptor that has nothing, again and again";

const fn look(call: &'static str, when: &'static [When], nothing: Nothing, at: Option<u8>) -> Look {
    Look { call, when, nothing, at, does: LOOKS, instead: WAIT, sleeps: false, hands_over: false }
}

const fn tries(call: &'static str) -> Look {
    Look { does: TRIES, instead: BLOCK, ..look(call, &[], Nothing::Again, Some(0)) }
}

const fn slice(call: &'static str, when: &'static [When]) -> Look {
    Look {
        does: "sleeps in slices of a millisecond or less and looks again",
        instead: "wait for the event itself: a condition variable, an eventfd, poll with a timeout",
        sleeps: true,
        ..look(call, when, Nothing::Zero, None)
    }
}

/// The table.
#[rustfmt::skip]
pub(crate) static LOOK: &[Look] = &[
    look("poll", &[Is(2, 0)], Nothing::Zero, None),
    look("ppoll", &[NotNull(2), InZero(2)], Nothing::Zero, None),
    look("select", &[NotNull(4), InZero(4)], Nothing::Zero, None),
    look("pselect6", &[NotNull(4), InZero(4)], Nothing::Zero, None),
    look("epoll_wait", &[Is(3, 0)], Nothing::Zero, Some(0)),
    look("epoll_pwait", &[Is(3, 0)], Nothing::Zero, Some(0)),
    look("epoll_pwait2", &[NotNull(3), InZero(3)], Nothing::Zero, Some(0)),
    // WNOHANG.
    look("wait4", &[AllBits(2, 1)], Nothing::Zero, None),
    look("rt_sigtimedwait", &[NotNull(2), InZero(2)], Nothing::Again, None),
    // A minimum of 0 events and no timeout; IORING_ENTER_GETEVENTS with nothing to submit or wait for.
    look("io_getevents", &[Is(1, 0), NotNull(4), InZero(4)], Nothing::Zero, Some(0)),
    look("io_pgetevents", &[Is(1, 0), NotNull(4), InZero(4)], Nothing::Zero, Some(0)),
    look("io_uring_enter", &[Is(1, 0), Is(2, 0)], Nothing::Zero, Some(0)),
    // FUTEX_WAIT and its private form: the value was another already. FUTEX_TRYLOCK_PI.
    Look { does: "waits for a value that is another already, again and again",
        instead: "look at the value before waiting, and wait less often: a lock is fought over",
        ..look("futex", &[OneOf(1, &[0, 128])], Nothing::Again, Some(0)) },
    look("futex", &[OneOf(1, &[8, 136])], Nothing::Again, Some(0)),
    Look { does: "gives the processor up and is given it back at once, again and again",
        instead: "wait on a futex, a condition variable or an eventfd instead of yielding",
        hands_over: true,
        ..look("sched_yield", &[], Nothing::Zero, None) },
    tries("read"), tries("readv"), tries("recvfrom"), tries("recvmsg"), tries("recvmmsg"),
    tries("write"), tries("writev"), tries("sendto"), tries("sendmsg"), tries("splice"),
    tries("accept"), tries("accept4"), tries("mq_timedreceive"), tries("mq_timedsend"), tries("semop"), tries("semtimedop"),
    // ENOMSG, with IPC_NOWAIT.
    look("msgrcv", &[AllBits(4, 0o4000)], Nothing::Error(42), Some(0)),
    // LOCK_NB; F_SETLK and F_OFD_SETLK.
    look("flock", &[AllBits(1, 4)], Nothing::Again, Some(0)),
    look("fcntl", &[OneOf(1, &[6, 37])], Nothing::Again, Some(0)),
    slice("nanosleep", &[InShort(0)]),
    // Not TIMER_ABSTIME.
    slice("clock_nanosleep", &[NoBits(1, 1), InShort(2)]),
    // Of no descriptors: these only sleep.
    slice("poll", &[Is(1, 0), Is(2, 1)]),
    slice("ppoll", &[Is(1, 0), NotNull(2), InShort(2)]),
    slice("pselect6", &[Is(0, 0), NotNull(4), InShort(4)]),
];
