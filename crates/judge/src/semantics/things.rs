//! Things that one call makes and another ends. Two things of the same description could have been one
//! (loop-invariant creation).

use super::read::ObservedCall;
use super::vocabulary::Source::{self, Arg, Args, In};
use super::vocabulary::When::{self, AllBits, AnyBits, Is, NoBits, OneOf};
use systoll_model::Moment;
use systoll_model::constants::*;

/// The place of a new thing's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handle {
    /// The result.
    Result,
    /// The first 32 bits that an argument points to after the call.
    Out32(u8),
    /// The first 64 bits that an argument points to after the call.
    Out64(u8),
    /// Two descriptors, one after the other, that an argument points to after the call.
    OutTwo(u8),
    /// An argument: the thing existed before and is locked or held.
    Arg(u8),
}

/// A call that ends a thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The argument that holds the handle.
    pub handle: u8,
}

/// A thing that one call makes and another ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thing {
    /// The call that makes the thing.
    pub makes: &'static str,
    /// Conditions of the making call; all must hold.
    pub when: &'static [When],
    /// The place of the thing's handle.
    pub handle: Handle,
    /// Values that describe the thing: two things of the same description could have been one.
    pub sort: &'static [Source],
    /// The argument with the descriptor of the thing's file, which is part of the description.
    pub file: Option<u8>,
    /// The call that moves the thing or changes its size, if there is one; its first argument is
    /// the handle, its result the new one.
    pub moves: Option<&'static str>,
    /// The call that ends the thing.
    pub ends: End,
    /// The argument of the ending call with the length to end, and the argument of the making call
    /// with the whole length. An end of a smaller length only trims the thing.
    pub ends_length: Option<(u8, u8)>,
    /// Largest number of calls between making and ending the thing for it to count as hardly used.
    pub life: usize,
    /// True if the thing's content ends with it, so that work on it is lost.
    pub holds: bool,
    /// True if the thing carries questions and their answers. If these are the same each time, their calls are needless
    /// together with the thing.
    pub asks: bool,
    /// True if the thing can't outlive the file in [`Thing::file`]: it counts only if that stays open.
    pub of_open: bool,
    /// True if the thing is a duplicate of the descriptor in the making call's first argument.
    pub copy: bool,
    /// The calls that unlink the thing's path; empty if it has none. If the maker reads back what
    /// it wrote and then unlinks the path, nothing of the thing stays, and nobody else was told of
    /// it.
    pub unnamed_by: &'static [&'static str],
    /// True if the thing carries messages: the calls that prepare it go with it, and one that only sends needs no new
    /// one each time, whatever [`Thing::unsure`] says.
    pub carries: bool,
    /// True if the thing counts only if bytes went through it. An unused one may have been made to
    /// see whether that is possible.
    pub used: bool,
    /// True if the program may need a new thing each time, so that the claims are remarks; not of what holds bytes, if a
    /// window shows that none were left in it.
    pub unsure: bool,
    /// The thing's name, for a sentence.
    pub thing: &'static str,
    /// The advice, for a sentence.
    pub instead: &'static str,
    /// The drawback of the advice; empty if there is none.
    pub gives_up: &'static str,
}

const CLOSE: End = End { call: "close", when: &[], handle: 0 };

const fn ends(call: &'static str) -> End {
    End { call, ..CLOSE }
}

const fn thing(makes: &'static str, thing: &'static str) -> Thing {
    Thing {
        makes,
        when: &[],
        handle: Handle::Result,
        sort: &[],
        file: None,
        moves: None,
        ends: CLOSE,
        ends_length: None,
        life: 8,
        holds: false,
        asks: false,
        of_open: false,
        copy: false,
        unnamed_by: &[],
        carries: false,
        used: false,
        unsure: false,
        thing,
        instead: "make it once and keep it",
        gives_up: "",
    }
}

impl Thing {
    /// Returns the line with these conditions.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// Returns the line with the values that describe the thing.
    const fn sort(self, sort: &'static [Source]) -> Self {
        Self { sort, ..self }
    }

    /// Returns the line with the place of the handle.
    const fn handle(self, handle: Handle) -> Self {
        Self { handle, ..self }
    }

    /// Returns the line with the call that ends the thing.
    const fn ends(self, ends: End) -> Self {
        Self { ends, ..self }
    }

    /// Returns the line of a thing that counts only after bytes went through it.
    const fn used(self) -> Self {
        Self { used: true, ..self }
    }

    /// Returns the line of a socket that carries messages.
    const fn carries(self) -> Self {
        Self { carries: true, life: 24, ..self.used() }
    }

    /// Returns the line of a thing of which the program may need a new one each time.
    const fn unsure(self, gives_up: &'static str) -> Self {
        Self { unsure: true, gives_up, ..self }
    }

    /// Returns the new thing's handles; none if they were not read.
    pub(crate) fn handles(&self, call: &ObservedCall<'_>) -> Vec<u64> {
        let out = |arg| call.data(arg, Moment::Exit);
        let word = |bytes: Option<&[u8]>, at: usize| {
            let word = bytes?.get(at..at + 4)?.first_chunk()?;
            Some(u64::from(u32::from_le_bytes(*word)))
        };
        let found = match self.handle {
            Handle::Result => [call.call.result.map(|result| result as u64), None],
            Handle::Out32(arg) => [word(out(arg), 0), None],
            Handle::Out64(arg) => {
                [out(arg).and_then(|b| b.get(..8)?.first_chunk()).map(|b| u64::from_le_bytes(*b)), None]
            }
            Handle::OutTwo(arg) => [word(out(arg), 0), word(out(arg), 4)],
            Handle::Arg(arg) => [Some(call.arg(arg)), None],
        };
        found.into_iter().flatten().collect()
    }
}

const DESCRIPTOR_PAIR: &str = "a pipe";
const LEFT_IN_IT: &str = "what is left in it comes to who reads it next";
const EVENTS: &str = "an event descriptor";
/// The name of an event descriptor each of whose reads takes one off its count.
pub(crate) const TOKENS: &str = "a descriptor of tokens";
/// The flag that makes such an event descriptor (eventfd(2)).
const EFD_SEMAPHORE: u32 = 1;
const SIGNALS: &str = "a signal descriptor";
const WATCHES: &str = "a watch descriptor";
/// The name of what an event loop waits by.
pub(crate) const EPOLL: &str = "an epoll descriptor";
/// The name of a file that ends with its descriptor, or whose name its maker removes.
pub(crate) const SCRATCH: &str = "a temporary file";
/// The advice about such a file.
pub(crate) const IN_MEMORY: &str =
    "keep what would be written there in memory (a string, StringIO, BytesIO, open_memstream)";
/// Condition of making a segment or set that only the maker uses (IPC_PRIVATE).
const PRIVATE: &[When] = &[Is(0, 0)];
/// Condition of a shmctl or msgctl that removes its object (IPC_RMID).
const REMOVES: &[When] = &[Is(1, 0)];
/// Condition of a semctl that removes a set (IPC_RMID).
const REMOVES_SET: &[When] = &[Is(2, 0)];
/// The bit of O_TMPFILE without O_DIRECTORY (open(2)).
const O_TMPFILE: u32 = 0o2000_0000;
const AF_UNIX: u32 = 1;
const AF_NETLINK: u32 = 16;

/// Returns a line for a temporary file without a name, of which nothing remains.
const fn scratch(makes: &'static str, flags: &'static [When], sort: &'static [Source]) -> Thing {
    Thing { life: 24, holds: true, instead: IN_MEMORY, ..thing(makes, SCRATCH).when(flags).sort(sort) }
}

/// Returns a line for a temporary file with a path, which O_EXCL makes sure is new; `flags` are the
/// conditions of its opening.
const fn named(makes: &'static str, flags: &'static [When], sort: &'static [Source]) -> Thing {
    Thing { unnamed_by: &["unlink", "unlinkat"], ..scratch(makes, flags, sort) }
}

/// Returns a line for a duplicate of a descriptor.
const fn copy(makes: &'static str) -> Thing {
    Thing {
        copy: true,
        instead: "use the descriptor that is there (in Rust &File, or an Arc<File>, instead of try_clone)",
        ..thing(makes, "a second descriptor").sort(&[Arg(0)])
    }
}

/// Line of a mapping of a file, which shows the same bytes at another address. Its length is no part of the
/// description: of two mappings from one place on, the longer shows what the shorter does.
const MAPPING: Thing = Thing {
    file: Some(4),
    ends_length: Some((1, 1)),
    ..thing("mmap", "a mapping of a file")
        .when(&[NoBits(3, MAP_ANONYMOUS | MAP_FIXED), NoBits(2, PROT_EXEC)])
        .sort(&[Arg(2), Arg(5)])
        .ends(ends("munmap"))
};

/// Table of the things. Streams to other processes, and files whose paths stay, are absent on
/// purpose, since others see that they are made.
#[rustfmt::skip]
pub(crate) static THINGS: &[Thing] = &[
    // A block is described by its length.
    Thing { moves: Some("mremap"), ends_length: Some((1, 1)), ..thing("mmap", "a block of memory")
        .when(&[AnyBits(3, MAP_ANONYMOUS)]).sort(&[Arg(1)]).ends(ends("munmap")) },
    MAPPING,
    thing("shmat", "a shared block of memory").sort(&[Arg(0)]).ends(ends("shmdt")),
    thing("shmget", "a shared segment").when(PRIVATE).sort(&[Arg(1)]).ends(End { when: REMOVES, ..ends("shmctl") }),
    thing("semget", "a set of semaphores").when(PRIVATE).sort(&[Arg(1)]).ends(End { when: REMOVES_SET, ..ends("semctl") }),
    thing("msgget", "a message queue").when(PRIVATE).ends(End { when: REMOVES, ..ends("msgctl") }),
    thing("pkey_alloc", "a protection key").sort(&[Arg(1)]).ends(ends("pkey_free")),
    thing("mlock", "a lock on a range of memory").handle(Handle::Arg(0)).sort(&[Args(2)]).ends(ends("munlock")),
    copy("dup"),
    copy("fcntl").when(&[OneOf(1, &[F_DUPFD, F_DUPFD_CLOEXEC])]),
    thing("eventfd", EVENTS).sort(&[Arg(0)]),
    thing("eventfd2", TOKENS).sort(&[Arg(1)]).when(&[AllBits(1, EFD_SEMAPHORE)]),
    thing("eventfd2", EVENTS).sort(&[Arg(1)]),
    thing("signalfd", SIGNALS).sort(&[In(1)]).when(&[Is(0, u32::MAX)]),
    thing("signalfd4", SIGNALS).sort(&[In(1)]).when(&[Is(0, u32::MAX)]),
    thing("timerfd_create", "a timer").sort(&[Arg(0)]),
    thing("timer_create", "a timer").sort(&[Arg(0)]).handle(Handle::Out32(2)).ends(ends("timer_delete")),
    Thing { file: Some(2), of_open: true, ..thing("epoll_ctl", "an interest in a descriptor").handle(Handle::Arg(2))
        .when(&[Is(1, EPOLL_CTL_ADD)]).sort(&[Arg(0), In(3)])
        .ends(End { when: &[Is(1, EPOLL_CTL_DEL)], handle: 2, ..ends("epoll_ctl") }) },
    Thing { life: 28, holds: true, ..thing("epoll_create", EPOLL) },
    // An event loop made for one job takes some 28 calls (asyncio.run).
    Thing { life: 28, holds: true, ..thing("epoll_create1", EPOLL).sort(&[Arg(0)]) },
    thing("inotify_init", WATCHES),
    thing("inotify_init1", WATCHES).sort(&[Arg(0)]),
    thing("fanotify_init", WATCHES).sort(&[Args(2)]),
    thing("memfd_create", "a file in memory").sort(&[In(0), Arg(1)]),
    thing("perf_event_open", "a counter of events").sort(&[In(0), Args(3)]),
    thing("io_setup", "a context for requests").sort(&[Arg(0)]).handle(Handle::Out64(1)).ends(ends("io_destroy")),
    thing("io_uring_setup", "a ring for requests").sort(&[Arg(0)]),
    thing("pipe", DESCRIPTOR_PAIR).handle(Handle::OutTwo(0)).unsure(LEFT_IN_IT),
    thing("pipe2", DESCRIPTOR_PAIR).sort(&[Arg(1)]).handle(Handle::OutTwo(0)).unsure(LEFT_IN_IT),
    thing("socketpair", "a pair of sockets").sort(&[Args(3)]).handle(Handle::OutTwo(3)).unsure(LEFT_IN_IT),
    // Datagrams have no session: one socket sends to all. A network socket may need a port of its own each time.
    thing("socket", "a socket for datagrams").sort(&[Args(3)]).when(&[Is(0, AF_UNIX), AllBits(1, 2), NoBits(1, 1)])
        .carries(),
    Thing { asks: true, ..thing("socket", "a socket to the kernel").sort(&[Args(3)]).when(&[Is(0, AF_NETLINK)]).used() },
    thing("socket", "a socket for datagrams").sort(&[Args(3)]).when(&[AllBits(1, 2), NoBits(1, 1)]).carries()
        .unsure("all are sent from one port, which makes answers easier to forge"),
    thing("mq_open", "a message queue").sort(&[In(0), Arg(1)]).when(&[NoBits(1, O_EXCL)]),
    scratch("open", &[AllBits(1, O_TMPFILE)], &[In(0), Arg(1)]),
    scratch("openat", &[AllBits(2, O_TMPFILE)], &[In(1), Arg(2)]),
    named("open", &[AllBits(1, O_CREAT | O_EXCL | O_RDWR)], &[Arg(1)]),
    named("openat", &[AllBits(2, O_CREAT | O_EXCL | O_RDWR)], &[Arg(2)]),
];
