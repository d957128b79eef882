//! The memory of arguments that threads copy: an entry for each system call.

use super::ring;
use systoll_model::{ArgKind, Moment, Signature, Size, Sysno};

/// Offset of the bytes for memory that is copied after the call.
pub const AT_RETURN: u64 = 6;
/// Offset of a byte with the index of the argument that is a descriptor, plus one.
pub const FD: u64 = 12;
/// Offset of the byte with the flags below.
pub const FLAGS: u64 = 13;
/// In [`FLAGS`]: the call may change the meaning of any descriptor.
pub const CHANGES_FDS: u8 = 1;
/// In [`FLAGS`]: page faults are counted around the call.
pub const FAULTS: u8 = 2;

/// In [`FLAGS`]: an expensive call that names an object: some of its calls are sampled over the whole run, see
/// [`super::look`].
pub const LOOKS: u8 = 4;
/// In [`FLAGS`]: the call changes the meaning of the descriptor that it returns, and of no other.
pub const OPENS_FD: u8 = 8;
/// In [`FLAGS`]: the call closes the descriptor in its first argument, and changes no other.
pub const CLOSES_FD: u8 = 16;
/// In [`FLAGS`], with [`OPENS_FD`]: the returned descriptor refers to the same object as the first argument; for
/// `fcntl`, with a command of [`DUPLICATE`] only.
pub const COPIES_FD: u8 = 32;
/// In [`FLAGS`], with [`OPENS_FD`]: the returned descriptor refers to a name in the folder of the first argument, if
/// the path is a single name and no link is followed.
pub const OPENS_BELOW: u8 = 64;

/// In [`FLAGS`]: the result is the number of bytes moved.
pub const MOVES: u8 = 128;

/// Errors below 64, a bit each, that a call returns only after it has read its strings, because it looked for what they
/// name. EPERM and EINVAL may come from filters and flags, before anything is read.
pub const READ_STRINGS: u64 = {
    use libc::{
        EACCES, EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENODATA, ENOENT, ENOTDIR, ENOTEMPTY, EROFS, ETXTBSY, EXDEV,
    };
    mask(&[EACCES, EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENODATA, ENOENT, ENOTDIR, ENOTEMPTY, EROFS, ETXTBSY, EXDEV], 0)
};
/// Errors from 64 on, a bit each, that a call which moves no bytes returns only after it has read a socket address.
pub const READ_ADDRESSES: u64 = {
    use libc::{
        EADDRINUSE, EADDRNOTAVAIL, EALREADY, ECONNREFUSED, EHOSTUNREACH, EINPROGRESS, EISCONN, ENETUNREACH, ETIMEDOUT,
    };
    let all =
        [EADDRINUSE, EADDRNOTAVAIL, EALREADY, ECONNREFUSED, EHOSTUNREACH, EINPROGRESS, EISCONN, ENETUNREACH, ETIMEDOUT];
    mask(&all, 64)
};

/// Returns a bit for each of these errors, counted from `first`.
const fn mask(errors: &[i32], first: i32) -> u64 {
    let (mut bits, mut rest) = (0, errors);
    while let [error, others @ ..] = rest {
        bits |= 1 << (*error - first);
        rest = others;
    }
    bits
}

/// Commands of `fcntl` that duplicate a descriptor.
pub const DUPLICATE: [u32; 2] = [libc::F_DUPFD as u32, libc::F_DUPFD_CLOEXEC as u32];

/// Offset of the byte that tells how samples of a receive are taken, one of the values below; zero for other calls.
pub const RECEIVE: u64 = 14;
/// In [`RECEIVE`]: the thread copies what it has received.
pub const ONE_BUFFER: u8 = 1;
/// In [`RECEIVE`]: what is received may lie in several buffers, and the thread asks the launcher to read them.
pub const BUFFERS: u8 = 2;

/// Offset of a byte that is 1 if an error of [`READ_STRINGS`] tells that the call has read the memory whose length an
/// argument says.
pub const READS_FIRST: u64 = 15;

/// Value of an argument's byte: copy up to the NUL.
pub const STRING: u8 = 0xff;
/// Bits of an argument's byte that hold the bytes to copy at most, in units of eight.
pub const UNITS: u8 = 0x3f;
/// Bit of an argument's byte: copy at most as many bytes as the next argument says before the call, or as the result
/// says after it.
pub const BOUNDED: u8 = 0x40;
/// Bit of an argument's byte: don't copy if the call has failed.
pub const GOOD: u8 = 0x80;

/// Bytes copied if a command decides what the memory holds.
const BY_COMMAND: u64 = 64;
/// Bytes copied if a word in memory tells the length (socket addresses).
const SOCKADDR: u64 = 128;
/// Calls that give the returned descriptor a new meaning; `fcntl` with a command of [`DUPLICATE`] only.
const OPEN_FD: [&str; 22] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "socket",
    "accept",
    "accept4",
    "eventfd",
    "eventfd2",
    "epoll_create",
    "epoll_create1",
    "timerfd_create",
    "signalfd",
    "signalfd4",
    "inotify_init",
    "inotify_init1",
    "memfd_create",
    "pidfd_open",
];
/// Calls that may change the meaning or the names of several descriptors.
const CHANGE_FDS: [&str; 14] = [
    "close_range",
    "pipe",
    "pipe2",
    "socketpair",
    "pidfd_getfd",
    "recvmsg",
    "recvmmsg",
    "unshare",
    "setns",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
];
/// Bytes of a signal set; the kernel accepts no other size.
const SIGNAL_SET: u64 = 8;
/// Calls around which page faults are counted.
const COUNT_FAULTS: [&str; 5] = ["brk", "munmap", "madvise", "mmap", "mremap"];

/// Expensive calls that ask about a path, or open it.
const LOOKED_AT: [&str; 17] = [
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "open",
    "openat",
    "openat2",
    "getxattr",
    "lgetxattr",
    "listxattr",
    "llistxattr",
    "statfs",
];

/// Calls that read the memory whose length an argument says before they look for what it names (`__sys_connect` in
/// net/socket.c of Linux).
const READ_FIRST: [&str; 1] = ["connect"];

/// Calls that may receive from a socket into one buffer, and into several.
const RECEIVES: [(&str, u8); 4] =
    [("read", ONE_BUFFER), ("recvfrom", ONE_BUFFER), ("readv", BUFFERS), ("recvmsg", BUFFERS)];

/// Calls that write to a descriptor, from one buffer or several.
const WRITES: [&str; 2] = ["write", "writev"];

/// Returns true if calls of this kind write to a descriptor.
#[must_use]
pub fn is_write(signature: &Signature) -> bool {
    WRITES.contains(&signature.name)
}

/// Returns true if calls of this kind may receive from a socket.
#[must_use]
pub fn is_receive(signature: &Signature) -> bool {
    RECEIVES.iter().any(|(name, _)| *name == signature.name)
}

/// Returns true if some calls of this kind are sampled over the whole run, see [`super::look`].
#[must_use]
pub fn is_looked_at(signature: &Signature) -> bool {
    LOOKED_AT.contains(&signature.name)
}

/// Returns the entry of a system call, as it lies in the global area.
#[must_use]
pub fn entry(number: u32) -> [u8; 16] {
    let mut entry = [0; 16];
    let Some(signature) = Sysno(number).signature() else { return entry };
    for (at, arg) in (0u8..).zip(signature.args) {
        let is_signal_set = match arg.kind.size() {
            Some(Size::Arg { arg, .. }) => signature.args.get(usize::from(arg)).is_some_and(|a| a.name == "sigsetsize"),
            _ => false,
        };
        for (moment, from) in [(Moment::Entry, 0), (Moment::Exit, AT_RETURN as usize)] {
            if let Some(byte) = entry.get_mut(from + usize::from(at)) {
                *byte = of_argument(arg.kind, at, moment, is_signal_set);
            }
        }
    }
    let fd = signature.fd_arg().and_then(|at| u8::try_from(at + 1).ok());
    entry[RECEIVE as usize] = RECEIVES.iter().find(|(name, _)| *name == signature.name).map_or(0, |(_, how)| *how);
    entry[READS_FIRST as usize] = u8::from(READ_FIRST.contains(&signature.name));
    let flag = |all: &[&str], flag: u8| if all.contains(&signature.name) { flag } else { 0 };
    entry[FD as usize] = fd.unwrap_or(0);
    entry[FLAGS as usize] = flag(&CHANGE_FDS, CHANGES_FDS)
        | flag(&OPEN_FD, OPENS_FD)
        | flag(&["close"], CLOSES_FD)
        | flag(&["dup", "dup2", "dup3", "fcntl"], COPIES_FD)
        | flag(&["openat"], OPENS_BELOW)
        | flag(&COUNT_FAULTS, FAULTS)
        | flag(&LOOKED_AT, LOOKS)
        | if signature.transfers { MOVES } else { 0 };
    entry
}

/// The descriptors whose meaning a call may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdsChanged {
    /// No descriptor.
    None,
    /// The descriptor with this number, which the call has opened or closed.
    One(i32),
    /// Any descriptor.
    Any,
}

/// Returns the descriptors whose meaning a call may have changed, by its arguments and its result.
#[must_use]
pub fn fds_changed(signature: &Signature, args: &[u64; 6], result: Option<i64>) -> FdsChanged {
    if CHANGE_FDS.contains(&signature.name) {
        FdsChanged::Any
    } else if signature.name == "fcntl" && !DUPLICATE.contains(&(args[1] as u32)) {
        FdsChanged::None
    } else if OPEN_FD.contains(&signature.name) {
        match result {
            // A pending call may still return any descriptor.
            None => FdsChanged::Any,
            Some(fd) => i32::try_from(fd).ok().filter(|fd| *fd >= 0).map_or(FdsChanged::None, FdsChanged::One),
        }
    } else if signature.name == "close" {
        FdsChanged::One(args[0] as i32)
    } else {
        FdsChanged::None
    }
}

/// Returns the words of all entries, as (offset in the global area, value). `looks` is true if single calls are
/// sampled, `receives` if receives are sampled too. At sampled calls for which `asks` returns true, threads ask the
/// launcher.
#[must_use]
pub fn words(looks: bool, receives: bool, asks: &dyn Fn(&Signature) -> bool) -> Vec<(u64, u64)> {
    let of = |number: u64| {
        let mut halves = entry(u32::try_from(number).unwrap_or(u32::MAX));
        if !looks {
            halves[FLAGS as usize] &= !LOOKS;
        } else if receives && halves[RECEIVE as usize] != 0 {
            halves[FLAGS as usize] |= LOOKS;
        }
        if Sysno(u32::try_from(number).unwrap_or(u32::MAX)).signature().is_some_and(asks) {
            halves[FLAGS as usize] |= LOOKS;
            halves[RECEIVE as usize] = BUFFERS;
        }
        let at = super::global::CAPTURES + number * super::global::CAPTURE_ENTRY;
        let (first, second) = (halves.first_chunk().copied(), halves.last_chunk().copied());
        [(at, u64::from_le_bytes(first.unwrap_or_default())), (at + 8, u64::from_le_bytes(second.unwrap_or_default()))]
    };
    (0..super::NUMBERS).flat_map(of).filter(|(_, word)| *word != 0).collect()
}

fn of_argument(kind: ArgKind, at: u8, moment: Moment, is_signal_set: bool) -> u8 {
    let units = |bytes: u64| u8::try_from(bytes.min(ring::MOST).div_ceil(8)).unwrap_or(0);
    if kind == ArgKind::ByCommand {
        return units(BY_COMMAND) | if moment == Moment::Exit { GOOD } else { 0 };
    }
    if !kind.read_at(moment) {
        return 0;
    }
    // Memory that a failed call has not written may never have been touched.
    let good = if moment == Moment::Exit { GOOD } else { 0 };
    match (kind, kind.size()) {
        (ArgKind::Path | ArgKind::Str, _) => STRING,
        (_, Some(_)) if is_signal_set => good | units(SIGNAL_SET),
        (_, Some(Size::Fixed(bytes))) => good | units(bytes.into()),
        (_, Some(Size::AtArg(_))) => good | units(SOCKADDR),
        (_, Some(Size::Arg { arg, scale: 1 })) if moment == Moment::Entry && arg == at + 1 => {
            BOUNDED | units(ring::MOST)
        }
        (_, Some(Size::Result { scale: 1, .. })) if moment == Moment::Exit => good | BOUNDED | units(ring::MOST),
        (_, Some(_)) => good | units(ring::MOST),
        (_, None) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_sets_take_no_more_than_their_size() {
        let number = |name: &str| (0..400).find(|n| Sysno(*n).signature().is_some_and(|s| s.name == name)).unwrap();
        for (name, argument) in [("rt_sigprocmask", 1), ("ppoll", 3), ("epoll_pwait", 4), ("rt_sigtimedwait", 0)] {
            assert_eq!(entry(number(name))[argument] & UNITS, 1, "{name}");
        }
        assert_eq!(entry(number("rt_sigprocmask"))[AT_RETURN as usize + 2] & UNITS, 1);
    }
}
