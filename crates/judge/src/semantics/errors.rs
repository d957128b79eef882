//! Errors that show a call to be futile.

use super::io::Nothing;
use super::vocabulary::When::{self, Is};
use systoll_model::Errno;

/// Errors of calls that found no such name.
pub(crate) const MISSING: [Errno; 2] = [Errno::ENOENT, Errno::ENOTDIR];

/// An error that a repeated call gets again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hopeless {
    /// The errno of the failed call.
    pub errno: Errno,
    /// True if the error tells of a series of calls that goes through the numbers of descriptors, open or not.
    pub in_series: bool,
    /// The waste, for a sentence: a verb and its object.
    pub does: &'static str,
    /// The advice, for a sentence.
    pub instead: &'static str,
}

const fn refused(errno: Errno, does: &'static str) -> Hopeless {
    Hopeless { errno, in_series: false, does, instead: "remember the first refusal" }
}

/// Errors that come again. Errors that depend on the object (ENOENT, EEXIST, EACCES, ENODATA, EINVAL of readlink) are
/// answers; other tables hold them.
#[rustfmt::skip]
pub(crate) static HOPELESS: &[Hopeless] = &[
    Hopeless { errno: Errno::EBADF, in_series: true, does: "works on descriptors that are not open",
        instead: "close_range(2), closefrom(3), or only the descriptors in /proc/self/fd" },
    Hopeless { errno: Errno::ENOSYS, in_series: false, does: "tries a call that this kernel does not have, again and again",
        instead: "remember the first ENOSYS" },
    refused(Errno::EOPNOTSUPP, "tries what is not supported here, again and again"),
    refused(Errno::ENOPROTOOPT, "tries an option that is not supported here, again and again"),
    refused(Errno::EAFNOSUPPORT, "tries an address family that is not supported here, again and again"),
    Hopeless { errno: Errno::ENOTTY, in_series: false, does: "asks files whether they are terminals, which none was",
        instead: "fstat has said that it is a regular file: don't ask" },
    Hopeless { errno: Errno::ESPIPE, in_series: false, does: "seeks in pipes and sockets, which can't be done",
        instead: "remember that this descriptor can't seek" },
    Hopeless { errno: Errno::ENOTSOCK, in_series: false, does: "treats descriptors as sockets, which none was",
        instead: "remember what the descriptor is" },
];

/// A call and the error with which it always refuses a certain type of file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InVain {
    /// The system call's name.
    pub call: &'static str,
    /// The errno with which the call refuses the file.
    pub errno: Errno,
    /// The argument that holds the refused descriptor.
    pub about: u8,
}

/// The refused calls. Regular files and directories are always ready: epoll takes none of them (man 2 epoll_ctl).
pub(crate) static IN_VAIN: &[InVain] = &[InVain { call: "epoll_ctl", errno: Errno::EPERM, about: 2 }];

/// A call that asks a file for an attribute by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    /// The system call's name.
    pub call: &'static str,
    /// The argument that points to the attribute's name.
    pub name: u8,
    /// Errors that say that the file lacks the attribute.
    pub absent: &'static [Errno],
}

const fn attribute(call: &'static str) -> Attribute {
    Attribute { call, name: 1, absent: &[Errno::ENODATA, Errno::EOPNOTSUPP] }
}

/// The calls that ask for attributes.
pub(crate) static ATTRIBUTE_QUESTIONS: &[Attribute] =
    &[attribute("getxattr"), attribute("lgetxattr"), attribute("fgetxattr")];

/// A question whose answer says that what is waited for is not there yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotYet {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The answer.
    pub answer: Nothing,
}

const fn not_yet(call: &'static str, errno: Errno) -> NotYet {
    NotYet { call, when: &[], answer: Nothing::Error(errno) }
}

/// The questions, besides polls: a file that does not exist yet, a name that somebody else still holds, a server that
/// does not listen yet, a process that still runs (signal 0 only asks for it).
#[rustfmt::skip]
pub(crate) static NOT_YETS: &[NotYet] = &[
    not_yet("access", Errno::ENOENT), not_yet("faccessat", Errno::ENOENT), not_yet("faccessat2", Errno::ENOENT),
    not_yet("stat", Errno::ENOENT), not_yet("lstat", Errno::ENOENT), not_yet("newfstatat", Errno::ENOENT),
    not_yet("statx", Errno::ENOENT), not_yet("readlink", Errno::ENOENT), not_yet("readlinkat", Errno::ENOENT),
    not_yet("open", Errno::ENOENT), not_yet("openat", Errno::ENOENT), not_yet("openat2", Errno::ENOENT),
    not_yet("open", Errno::EEXIST), not_yet("openat", Errno::EEXIST), not_yet("openat2", Errno::EEXIST),
    not_yet("mkdir", Errno::EEXIST), not_yet("mkdirat", Errno::EEXIST), not_yet("link", Errno::EEXIST),
    not_yet("linkat", Errno::EEXIST), not_yet("symlink", Errno::EEXIST), not_yet("symlinkat", Errno::EEXIST),
    not_yet("connect", Errno::ECONNREFUSED), not_yet("connect", Errno::ENOENT),
    NotYet { call: "kill", when: &[Is(1, 0)], answer: Nothing::Zero },
    NotYet { call: "tgkill", when: &[Is(2, 0)], answer: Nothing::Zero },
];
