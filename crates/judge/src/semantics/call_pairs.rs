//! Pairs of calls of which one could have done the work of both.

use super::vocabulary::When::{self, AllBits, AnyBits, Is, NoBits, NotNull, OutZero, Zero};
use systoll_model::Errno;
use systoll_model::constants::*;

/// The link between two calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// Both calls have the same descriptor as their first argument.
    Descriptor,
    /// The first makes the descriptor that the second works on.
    Made,
    /// The second opens the path that the first is about.
    Path,
    /// Both calls ask the same question about the same path or descriptor.
    Question,
    /// Both calls have the same process as their first argument.
    Process,
    /// Both calls are about one descriptor of one epoll set.
    Interest,
}

/// The needless call of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spare {
    /// The first call.
    First,
    /// The second call.
    Second,
}

/// A pair of calls of which one could have done the work of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequel {
    /// The first call.
    pub first: &'static str,
    /// Conditions of the first call; all must hold.
    pub when: &'static [When],
    /// The error with which the first call fails; `None` if it succeeds.
    pub refusal: Option<Errno>,
    /// The calls that may be the second.
    pub then: &'static [&'static str],
    /// Conditions of the second call; all must hold.
    pub then_when: &'static [When],
    /// The link between the two calls.
    pub tie: Tie,
    /// Largest distance from the first call to the second, calls.
    pub within: usize,
    /// The needless one of the two calls.
    pub spare: Spare,
    /// True if one pair makes a weak claim only: a strong one takes two questions about one thing.
    pub unsure: bool,
    /// True if the first call is needed unless one of `then` was made before it.
    pub once: bool,
    /// The waste, for a sentence: a verb and its object.
    pub does: &'static str,
    /// The advice, for a sentence.
    pub instead: &'static str,
}

const READS_AND_WRITES: &[&str] = &["read", "write", "readv", "writev"];
const READS: &[&str] = &["read", "recvfrom", "recvmsg", "readv"];
const TRANSFERS: &[&str] = &[
    "read", "readv", "recvfrom", "recvmsg", "recvmmsg", "write", "writev", "sendto", "sendmsg", "sendmmsg", "sendfile",
];
const SENDS: &[&str] = &["write", "writev", "sendto", "sendmsg", "sendmmsg"];
const OPENS: &[&str] = &["open", "openat", "openat2"];

/// Returns a line for a question that the following call answers as well.
const fn asks_first(first: &'static str) -> Sequel {
    Sequel {
        first,
        when: &[],
        refusal: None,
        then: OPENS,
        then_when: &[],
        tie: Tie::Path,
        within: 5,
        spare: Spare::First,
        unsure: false,
        once: false,
        does: "asks about a file right before opening it, which would say the same",
        instead: "open it and look at the error; ask the descriptor (fstat) for the rest",
    }
}

/// Returns a line for a question about an answer's length, which the answer itself tells.
const fn asks_length(first: &'static str, then: &'static [&'static str]) -> Sequel {
    Sequel {
        then,
        tie: Tie::Question,
        within: 1,
        does: "asks how long an answer is and then for the answer, which says so too",
        instead: "ask with a buffer that is usually enough (256 bytes), and for the length only where that fails with ERANGE",
        ..asks_first(first)
    }
}

/// Returns a line for a peek at data that the following call takes out.
const fn peeks(first: &'static str) -> Sequel {
    Sequel {
        then: READS,
        tie: Tie::Descriptor,
        within: 1,
        does: "looks at what there is to read and then reads it",
        instead: "read into a buffer of your own and look there",
        ..asks_first(first)
    }
}

/// Returns a line for a descriptor made without a flag that is set on it next.
const fn flags(first: &'static str, set: &'static [When], instead: &'static str) -> Sequel {
    Sequel {
        then: &["fcntl", "ioctl"],
        then_when: set,
        tie: Tie::Made,
        within: 3,
        spare: Spare::Second,
        does: "makes a descriptor and then sets a flag that it could have been made with",
        instead,
        ..asks_first(first)
    }
}

/// Returns a line for a set position that the following call could have taken as an argument.
const fn seeks() -> Sequel {
    Sequel {
        then: READS_AND_WRITES,
        tie: Tie::Descriptor,
        within: 1,
        does: "moves the file's position and then reads or writes there",
        instead: "pread or pwrite, which take the position along",
        ..asks_first("lseek")
    }
}

impl Sequel {
    /// Returns the line with these conditions of the first call.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// Returns the line with [`Sequel::unsure`] set.
    const fn unsure(self) -> Self {
        Self { unsure: true, ..self }
    }
}

/// Returns a line for asking a socket's error before a transfer that would fail with it. The first such question is
/// needed: it tells whether the connection was made.
const fn looks_for_error() -> Sequel {
    Sequel {
        when: &[Is(1, SOL_SOCKET), Is(2, SO_ERROR), OutZero(3)],
        then: TRANSFERS,
        tie: Tie::Descriptor,
        within: 2,
        once: true,
        does: "asks a socket for its error before each transfer, which would fail with it",
        instead: "look at what the transfer itself returns",
        ..asks_first("getsockopt")
    }
}

/// Returns a line for a look, before a message is sent, whether the other side has closed: there was nothing to read.
const fn looks_for_end(first: &'static str) -> Sequel {
    Sequel {
        refusal: Some(Errno::EAGAIN),
        then: SENDS,
        tie: Tie::Descriptor,
        within: 2,
        unsure: true,
        does: "looks whether the other side has closed before each message",
        instead: "look at what the message, or the answer to it, returns",
        ..asks_first(first)
    }
}

/// Returns a line for a question whether a child lives right after a wait that found it alive.
const fn asks_whether_it_lives() -> Sequel {
    Sequel {
        when: &[AnyBits(2, WNOHANG), Zero],
        then: &["kill"],
        then_when: &[Is(1, 0)],
        tie: Tie::Process,
        within: 1,
        spare: Spare::Second,
        does: "asks whether a child lives right after a wait that found it alive",
        instead: "waitpid with WNOHANG returns 0 for a child that lives",
        ..asks_first("wait4")
    }
}

/// Returns a line for an interest that is taken off and set anew at once. A remark only: what takes it off is often far
/// from what sets it, as in redis' event loop.
const fn sets_anew() -> Sequel {
    Sequel {
        when: &[Is(1, EPOLL_CTL_DEL)],
        then: &["epoll_ctl"],
        then_when: &[Is(1, EPOLL_CTL_ADD)],
        tie: Tie::Interest,
        within: 1,
        unsure: true,
        does: "takes a descriptor out of epoll and puts it back at once",
        instead: "EPOLL_CTL_MOD, one call for both",
        ..asks_first("epoll_ctl")
    }
}

/// Returns a line for a question about a descriptor's flags right before the descriptor is closed.
const fn asks_last() -> Sequel {
    Sequel {
        when: &[Is(1, F_GETFD)],
        then: &["close"],
        tie: Tie::Descriptor,
        within: 1,
        does: "asks for a descriptor's flags right before it closes the descriptor",
        instead: "close it without asking; a build for debugging may ask by itself",
        ..asks_first("fcntl")
    }
}

/// Conditions of the fcntl that sets close-on-exec. The ioctl FIOCLEX takes no argument and is left
/// out.
const SETS_CLOEXEC: &[When] = &[Is(1, F_SETFD), AllBits(2, FD_CLOEXEC)];
const SETS_NONBLOCK: &[When] = &[Is(1, F_SETFL), AllBits(2, O_NONBLOCK)];

/// The pairs. A question that does not follow links is absent: opening does not tell whether a name is a link.
#[rustfmt::skip]
pub(crate) static SEQUELS: &[Sequel] = &[
    // If the position does not move, other lines claim the call.
    seeks().when(&[Is(2, SEEK_SET)]),
    seeks().when(&[Is(2, SEEK_CUR), NotNull(1)]),
    asks_first("access"),
    asks_first("faccessat"),
    asks_first("faccessat2"),
    asks_first("stat").unsure(),
    asks_first("newfstatat").when(&[NoBits(3, AT_SYMLINK_NOFOLLOW)]).unsure(),
    asks_first("statx").when(&[NoBits(2, AT_SYMLINK_NOFOLLOW)]).unsure(),
    peeks("recvfrom").when(&[AllBits(3, MSG_PEEK)]),
    peeks("recvmsg").when(&[AllBits(2, MSG_PEEK)]),
    looks_for_end("recvfrom").when(&[AllBits(3, MSG_PEEK)]),
    looks_for_end("recvmsg").when(&[AllBits(2, MSG_PEEK)]),
    asks_whether_it_lives(),
    peeks("ioctl").when(&[Is(1, FIONREAD)]),
    asks_length("getxattr", &["getxattr"]).when(&[Is(3, 0)]),
    asks_length("lgetxattr", &["lgetxattr"]).when(&[Is(3, 0)]),
    asks_length("fgetxattr", &["fgetxattr"]).when(&[Is(3, 0)]),
    asks_length("listxattr", &["listxattr"]).when(&[Is(2, 0)]),
    asks_length("llistxattr", &["llistxattr"]).when(&[Is(2, 0)]),
    asks_length("flistxattr", &["flistxattr"]).when(&[Is(2, 0)]),
    looks_for_error(),
    asks_last(),
    sets_anew(),
    flags("open", SETS_CLOEXEC, "open it with O_CLOEXEC").when(&[NoBits(1, O_CLOEXEC)]),
    flags("openat", SETS_CLOEXEC, "open it with O_CLOEXEC").when(&[NoBits(2, O_CLOEXEC)]),
    flags("socket", SETS_CLOEXEC, "make it with SOCK_CLOEXEC").when(&[NoBits(1, SOCK_CLOEXEC)]),
    flags("accept", SETS_CLOEXEC, "accept4 with SOCK_CLOEXEC"),
    flags("accept4", SETS_CLOEXEC, "accept4 with SOCK_CLOEXEC").when(&[NoBits(3, SOCK_CLOEXEC)]),
    flags("dup", SETS_CLOEXEC, "fcntl F_DUPFD_CLOEXEC"),
    flags("socket", SETS_NONBLOCK, "make it with SOCK_NONBLOCK").when(&[NoBits(1, SOCK_NONBLOCK)]),
    flags("accept", SETS_NONBLOCK, "accept4 with SOCK_NONBLOCK"),
    flags("accept4", SETS_NONBLOCK, "accept4 with SOCK_NONBLOCK").when(&[NoBits(3, SOCK_NONBLOCK)]),
];
