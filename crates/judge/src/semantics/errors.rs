//! Errors that tell a call was in vain, whatever it was.

use systoll_model::Errno;

/// An error that can't but come again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hopeless {
    /// Which.
    pub errno: Errno,
    /// Whether it is needless whatever else the same call does: a correct program never meets it.
    pub always: bool,
    /// What the call does, for a sentence.
    pub does: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

const fn refused(errno: Errno, does: &'static str) -> Hopeless {
    Hopeless { errno, always: false, does, instead: "remember the first refusal" }
}

/// The table. Refusals that depend on the object (ENOENT, EEXIST, EACCES, ENODATA, EINVAL of
/// readlink) are answers and stand elsewhere.
#[rustfmt::skip]
pub(crate) static HOPELESS: &[Hopeless] = &[
    Hopeless { errno: Errno::EBADF, always: true, does: "works on descriptors that are not open",
        instead: "close_range(2), closefrom(3), or only the descriptors in /proc/self/fd" },
    Hopeless { errno: Errno::ENOSYS, always: false, does: "tries a call that this kernel does not have, again and again",
        instead: "remember the first ENOSYS" },
    refused(Errno::EOPNOTSUPP, "tries what is not supported here, again and again"),
    refused(Errno::ENOPROTOOPT, "tries an option that is not supported here, again and again"),
    refused(Errno::EAFNOSUPPORT, "tries an address family that is not supported here, again and again"),
    Hopeless { errno: Errno::ENOTTY, always: false, does: "asks files whether they are terminals, which none was",
        instead: "fstat has said that it is a regular file: don't ask" },
    Hopeless { errno: Errno::ESPIPE, always: false, does: "seeks in pipes and sockets, which can't be done",
        instead: "remember that this descriptor can't seek" },
    Hopeless { errno: Errno::ENOTSOCK, always: false, does: "treats descriptors as sockets, which none was",
        instead: "remember what the descriptor is" },
];
