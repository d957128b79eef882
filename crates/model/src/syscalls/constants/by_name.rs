//! Parses the names of constants, as strace, perf and people write them.

use super::files::*;
use super::ioctls::IOCTLS;
use super::names::*;
use super::sockets::*;
use super::table::Names;
use foldhash::HashMap;
use std::sync::OnceLock;

/// Tables in which each name stands for one number. The tables of socket options are per level; no
/// name is in two of them.
static TABLES: &[&Names] = &[
    ARCH_PRCTL,
    BPF,
    CLOCKS,
    EPOLL,
    FADVISE,
    FALLOCATE,
    FAMILIES,
    FCNTL,
    FLOCK,
    FUTEX,
    IO_URING,
    IOCTLS,
    IP,
    IPC,
    IPV6,
    ITIMERS,
    KEYCTL,
    LEVELS,
    MADVISE,
    MAP,
    MAP_TYPES,
    MASK,
    MEMBARRIER,
    MSG,
    NAMESPACES,
    NETLINK,
    PACKET,
    POLICIES,
    PRCTL,
    PRIORITIES,
    PROT,
    PTRACE,
    RANDOM,
    RLIMITS,
    SECCOMP,
    SHUTDOWN,
    SOCKET,
    SOCKET_FLAGS,
    SOCKET_TYPES,
    SYNC,
    TCP,
    UDP,
    USAGES,
    WHENCE,
];

/// Flags of the kernel's uapi headers that [`crate::WindowCall::option`] does not print.
#[rustfmt::skip]
static OTHERS: &[(&str, i64)] = &[
    ("NULL", 0), ("AT_FDCWD", AT_FDCWD as i64),
    ("O_RDONLY", 0), ("O_WRONLY", O_WRONLY as i64), ("O_RDWR", O_RDWR as i64), ("O_ACCMODE", 3),
    ("O_CREAT", O_CREAT as i64), ("O_EXCL", O_EXCL as i64), ("O_NOCTTY", 0o400), ("O_TRUNC", O_TRUNC as i64),
    ("O_APPEND", O_APPEND as i64), ("O_NONBLOCK", O_NONBLOCK as i64), ("O_NDELAY", O_NONBLOCK as i64),
    ("O_DSYNC", 0o1_0000), ("O_ASYNC", O_ASYNC as i64), ("FASYNC", O_ASYNC as i64), ("O_DIRECT", O_DIRECT as i64),
    ("O_LARGEFILE", 0o10_0000), ("O_DIRECTORY", 0o20_0000), ("O_NOFOLLOW", 0o40_0000), ("O_NOATIME", O_NOATIME as i64),
    ("O_CLOEXEC", O_CLOEXEC as i64), ("O_SYNC", 0o401_0000), ("O_PATH", 0o1000_0000), ("O_TMPFILE", 0o2020_0000),
    ("FD_CLOEXEC", FD_CLOEXEC as i64), ("F_RDLCK", 0), ("F_WRLCK", 1), ("F_UNLCK", 2),
    ("AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW as i64), ("AT_REMOVEDIR", 0x200), ("AT_EACCESS", 0x200),
    ("AT_SYMLINK_FOLLOW", 0x400), ("AT_NO_AUTOMOUNT", 0x800), ("AT_EMPTY_PATH", 0x1000),
    ("AT_STATX_SYNC_AS_STAT", 0), ("AT_STATX_FORCE_SYNC", 0x2000), ("AT_STATX_DONT_SYNC", AT_STATX_DONT_SYNC as i64),
    ("AT_RECURSIVE", 0x8000), ("F_OK", 0), ("X_OK", X_OK as i64), ("W_OK", W_OK as i64), ("R_OK", 4),
    ("S_IFSOCK", 0o14_0000), ("S_IFLNK", 0o12_0000), ("S_IFREG", 0o10_0000), ("S_IFBLK", 0o6_0000),
    ("S_IFDIR", 0o4_0000), ("S_IFCHR", 0o2_0000), ("S_IFIFO", 0o1_0000), ("S_ISUID", 0o4000), ("S_ISGID", 0o2000),
    ("S_ISVTX", 0o1000),
    ("EPOLLIN", 1), ("EPOLLPRI", 2), ("EPOLLOUT", EPOLLOUT as i64), ("EPOLLERR", 8), ("EPOLLHUP", 0x10), ("EPOLLRDNORM", 0x40),
    ("EPOLLRDBAND", 0x80), ("EPOLLWRNORM", 0x100), ("EPOLLWRBAND", 0x200), ("EPOLLMSG", 0x400),
    ("EPOLLRDHUP", EPOLLRDHUP as i64), ("EPOLLEXCLUSIVE", 1 << 28), ("EPOLLWAKEUP", 1 << 29),
    ("EPOLLONESHOT", EPOLLONESHOT as i64), ("EPOLLET", EPOLLET as i64),
    ("POLLIN", 1), ("POLLPRI", 2), ("POLLOUT", 4), ("POLLERR", 8), ("POLLHUP", 0x10), ("POLLNVAL", 0x20),
    ("POLLRDNORM", 0x40), ("POLLRDBAND", 0x80), ("POLLWRNORM", 0x100), ("POLLWRBAND", 0x200), ("POLLRDHUP", 0x2000),
    ("EPOLL_CLOEXEC", O_CLOEXEC as i64), ("EFD_CLOEXEC", O_CLOEXEC as i64), ("EFD_NONBLOCK", O_NONBLOCK as i64),
    ("EFD_SEMAPHORE", 1), ("TFD_CLOEXEC", O_CLOEXEC as i64), ("TFD_NONBLOCK", O_NONBLOCK as i64),
    ("TFD_TIMER_ABSTIME", 1), ("TFD_TIMER_CANCEL_ON_SET", 2), ("SFD_CLOEXEC", O_CLOEXEC as i64),
    ("SFD_NONBLOCK", O_NONBLOCK as i64), ("IN_CLOEXEC", O_CLOEXEC as i64), ("IN_NONBLOCK", O_NONBLOCK as i64),
    ("IN_ACCESS", 1), ("IN_MODIFY", 2), ("IN_ATTRIB", 4), ("IN_CLOSE_WRITE", 8), ("IN_CLOSE_NOWRITE", 0x10),
    ("IN_OPEN", 0x20), ("IN_MOVED_FROM", 0x40), ("IN_MOVED_TO", 0x80), ("IN_CREATE", 0x100), ("IN_DELETE", 0x200),
    ("IN_DELETE_SELF", 0x400), ("IN_MOVE_SELF", 0x800), ("IN_ONLYDIR", 0x0100_0000), ("IN_DONT_FOLLOW", 0x0200_0000),
    ("IN_EXCL_UNLINK", 0x0400_0000), ("IN_MASK_CREATE", 0x1000_0000), ("IN_MASK_ADD", 0x2000_0000),
    ("IN_ISDIR", 0x4000_0000), ("IN_ONESHOT", 0x8000_0000), ("IN_ALL_EVENTS", 0xfff),
    ("CLONE_VM", 0x100), ("CLONE_SIGHAND", 0x800), ("CLONE_PIDFD", 0x1000), ("CLONE_PTRACE", 0x2000),
    ("CLONE_VFORK", 0x4000), ("CLONE_PARENT", 0x8000), ("CLONE_THREAD", 0x1_0000), ("CLONE_SETTLS", 0x8_0000),
    ("CLONE_PARENT_SETTID", 0x10_0000), ("CLONE_CHILD_CLEARTID", 0x20_0000), ("CLONE_DETACHED", 0x40_0000),
    ("CLONE_UNTRACED", 0x80_0000), ("CLONE_CHILD_SETTID", 0x100_0000), ("CLONE_IO", 0x8000_0000),
    ("WNOHANG", WNOHANG as i64), ("WUNTRACED", 2), ("WSTOPPED", 2), ("WEXITED", 4), ("WCONTINUED", 8),
    ("WNOWAIT", 0x0100_0000), ("__WNOTHREAD", 0x2000_0000), ("__WALL", 0x4000_0000), ("__WCLONE", 0x8000_0000),
    ("TIMER_ABSTIME", TIMER_ABSTIME as i64), ("RLIMIT_NOFILE", 7), ("RLIM64_INFINITY", -1), ("RLIM_INFINITY", -1),
    ("RUSAGE_CHILDREN", -1),
    ("STATX_TYPE", 1), ("STATX_MODE", 2), ("STATX_NLINK", 4), ("STATX_UID", 8), ("STATX_GID", 0x10),
    ("STATX_ATIME", 0x20), ("STATX_MTIME", 0x40), ("STATX_CTIME", 0x80), ("STATX_INO", 0x100), ("STATX_SIZE", 0x200),
    ("STATX_BLOCKS", 0x400), ("STATX_BASIC_STATS", 0x7ff), ("STATX_BTIME", 0x800), ("STATX_ALL", 0xfff),
    ("STATX_MNT_ID", 0x1000), ("STATX_DIOALIGN", 0x2000),
    ("LOCK_SH", LOCK_SH as i64), ("LOCK_EX", LOCK_EX as i64), ("LOCK_NB", LOCK_NB as i64), ("LOCK_UN", LOCK_UN as i64),
    ("IPC_PRIVATE", 0), ("IPC_CREAT", 0o1000), ("IPC_EXCL", 0o2000), ("IPC_NOWAIT", IPC_NOWAIT as i64),
    ("IPC_64", IPC_64 as i64), ("FUTEX_PRIVATE_FLAG", FUTEX_PRIVATE_FLAG as i64), ("FUTEX_CLOCK_REALTIME", 0x100),
    ("FUTEX_BITSET_MATCH_ANY", 0xffff_ffff),
    ("MREMAP_MAYMOVE", 1), ("MREMAP_FIXED", 2), ("MREMAP_DONTUNMAP", 4), ("MAP_ANON", 0x20),
    ("SPLICE_F_MOVE", 1), ("SPLICE_F_NONBLOCK", 2), ("SPLICE_F_MORE", 4), ("SPLICE_F_GIFT", 8),
    ("RENAME_NOREPLACE", 1), ("RENAME_EXCHANGE", 2), ("RENAME_WHITEOUT", 4), ("XATTR_CREATE", 1), ("XATTR_REPLACE", 2),
    ("MFD_CLOEXEC", 1), ("MFD_ALLOW_SEALING", 2), ("MFD_HUGETLB", 4), ("CLOSE_RANGE_UNSHARE", 2),
    ("CLOSE_RANGE_CLOEXEC", 4),
    ("SIG_DFL", 0), ("SIG_IGN", 1), ("SIG_ERR", -1), ("SA_NOCLDSTOP", 1), ("SA_NOCLDWAIT", 2), ("SA_SIGINFO", 4),
    ("SA_RESTORER", 0x0400_0000), ("SA_ONSTACK", 0x0800_0000), ("SA_RESTART", 0x1000_0000),
    ("SA_INTERRUPT", 0x2000_0000), ("SA_NODEFER", 0x4000_0000), ("SA_RESETHAND", 0x8000_0000), ("SS_ONSTACK", 1),
    ("SS_DISABLE", 2), ("SS_AUTODISARM", 0x8000_0000),
    ("IPPROTO_IP", 0), ("IPPROTO_ICMP", 1), ("IPPROTO_TCP", 6), ("IPPROTO_UDP", 17), ("IPPROTO_IPV6", 41),
    ("IPPROTO_ICMPV6", 58), ("IPPROTO_RAW", 255), ("AF_LOCAL", 1), ("P_ALL", 0), ("P_PID", 1), ("P_PGID", 2),
    ("P_PIDFD", 3), ("UTIME_NOW", 0x3fff_ffff), ("UTIME_OMIT", 0x3fff_fffe), ("SCHED_NORMAL", 0),
    ("SCHED_RESET_ON_FORK", 0x4000_0000), ("IOPRIO_WHO_PROCESS", 1), ("IOPRIO_WHO_PGRP", 2), ("IOPRIO_WHO_USER", 3),
    ("SO_RCVTIMEO", 20), ("SO_SNDTIMEO", 21), ("SO_TIMESTAMP", 29), ("SO_TIMESTAMPNS", 35), ("SO_TIMESTAMPING", 37),
    ("SNDCTL_TMR_TIMEBASE", 0x5401), ("SNDCTL_TMR_START", 0x5402), ("TIOCINQ", 0x541b),
    ("SHM_RDONLY", 0o1_0000), ("SHM_RND", 0o2_0000), ("SHM_REMAP", SHM_REMAP as i64), ("SEM_UNDO", 0x1000),
    ("IORING_ENTER_GETEVENTS", 1), ("IORING_ENTER_SQ_WAKEUP", 2), ("IORING_ENTER_SQ_WAIT", 4),
    ("IORING_ENTER_EXT_ARG", 8), ("SECCOMP_FILTER_FLAG_TSYNC", 1), ("MCL_CURRENT", 1), ("MCL_FUTURE", 2),
    ("SYNC_FILE_RANGE_WAIT_BEFORE", 1), ("SYNC_FILE_RANGE_WRITE", 2), ("SYNC_FILE_RANGE_WAIT_AFTER", 4),
    ("CLD_EXITED", 1), ("CLD_KILLED", 2), ("CLD_DUMPED", 3),
];

/// Returns the number that `name` stands for in a call's arguments: a constant of the kernel's
/// headers, or a futex operation with its flag in the name. Returns `None` if it is not known.
///
/// ```
/// use systoll_model::constants::number_of;
/// assert_eq!(number_of("O_CLOEXEC"), Some(0o2000000));
/// assert_eq!(number_of("FUTEX_WAIT_PRIVATE"), Some(128));
/// assert_eq!((number_of("AT_FDCWD"), number_of("O_NONSENSE")), (Some(-100), None));
/// ```
pub fn number_of(name: &str) -> Option<i64> {
    static ALL: OnceLock<HashMap<&str, i64>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let tables = TABLES.iter().flat_map(|t| t.iter()).map(|(number, name)| (*name, i64::from(*number)));
        tables.chain(OTHERS.iter().copied()).collect()
    });
    let private = || {
        let operation = name.strip_suffix("_PRIVATE").filter(|_| name.starts_with("FUTEX_"))?;
        Some(all.get(operation)? | i64::from(FUTEX_PRIVATE_FLAG))
    };
    all.get(name).copied().or_else(private)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_name_stands_for_one_number() {
        let mut seen: BTreeMap<&str, i64> = BTreeMap::new();
        for (number, name) in TABLES.iter().flat_map(|t| t.iter()) {
            let number = i64::from(*number);
            let before = seen.insert(name, number);
            assert!(
                before.is_none_or(|b| b == number || *name == "RUSAGE_CHILDREN"),
                "{name}: {before:?} and {number}"
            );
        }
        for (name, number) in OTHERS {
            let before = seen.insert(name, *number);
            assert!(
                before.is_none_or(|b| b == *number || b as i32 as i64 == *number),
                "{name}: {before:?} and {number}"
            );
        }
    }

    #[test]
    fn descriptions_are_read_back() {
        for (number, name) in TABLES.iter().flat_map(|t| t.iter()).filter(|(_, name)| !name.contains('|')) {
            assert_eq!(number_of(name).map(|n| n as u32), Some(*number), "{name}");
        }
    }
}
