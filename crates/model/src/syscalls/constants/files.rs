//! Flags that no description prints, and combinations that one does.

use super::table::Names;

/// Relative paths begin at the working directory.
pub const AT_FDCWD: i32 = -100;
/// A path's last link is not followed.
pub const AT_SYMLINK_NOFOLLOW: u32 = 0x100;
/// statx: what is known will do, without asking a server.
pub const AT_STATX_DONT_SYNC: u32 = 0x4000;

/// open: for writing only.
pub const O_WRONLY: u32 = 0o1;
/// open: for reading and writing.
pub const O_RDWR: u32 = 0o2;
/// open: made where it is absent.
pub const O_CREAT: u32 = 0o100;
/// open: refused where it is there.
pub const O_EXCL: u32 = 0o200;
/// open: emptied.
pub const O_TRUNC: u32 = 0o1000;
/// open: each write goes to the end.
pub const O_APPEND: u32 = 0o2000;
/// open: calls return instead of waiting.
pub const O_NONBLOCK: u32 = 0o4000;
/// open: a signal tells of readiness.
pub const O_ASYNC: u32 = 0o2_0000;
/// open: past the page cache.
pub const O_DIRECT: u32 = 0o4_0000;
/// open: reading leaves the access time alone.
pub const O_NOATIME: u32 = 0o100_0000;
/// open: closed by an exec.
pub const O_CLOEXEC: u32 = 0o200_0000;
/// F_SETFD: closed by an exec.
pub const FD_CLOEXEC: u32 = 1;

/// flock: a shared lock.
pub const LOCK_SH: u32 = 1;
/// flock: the only lock.
pub const LOCK_EX: u32 = 2;
/// flock: refused instead of waited for.
pub const LOCK_NB: u32 = 4;
/// flock: the lock is given back.
pub const LOCK_UN: u32 = 8;

/// Operations of flock.
pub(crate) static FLOCK: &Names = &[
    (LOCK_SH, "LOCK_SH"),
    (LOCK_EX, "LOCK_EX"),
    (LOCK_SH | LOCK_NB, "LOCK_SH|LOCK_NB"),
    (LOCK_EX | LOCK_NB, "LOCK_EX|LOCK_NB"),
    (LOCK_UN, "LOCK_UN"),
    (LOCK_NB | LOCK_UN, "LOCK_NB|LOCK_UN"),
];

/// epoll: reported once, until the interest is set again.
pub const EPOLLONESHOT: u32 = 1 << 30;
/// epoll: reported when it changes.
pub const EPOLLET: u32 = 1 << 31;

/// futex: the word is the process's own.
pub const FUTEX_PRIVATE_FLAG: u32 = 128;

/// System V IPC: refused instead of waited for.
pub const IPC_NOWAIT: u32 = 0o4000;
/// System V IPC: a bit beside the command that glibc sets, for the structures of today.
pub const IPC_64: u32 = 0x100;
/// msgctl: a queue by its place in the kernel's table.
pub const MSG_STAT: u32 = 11;
/// shmctl: a segment by its place in the kernel's table.
pub const SHM_STAT: u32 = 13;
/// semctl: a set by its place in the kernel's table.
pub const SEM_STAT: u32 = 18;
/// semctl: what all sets use.
pub const SEM_INFO: u32 = 19;
/// shmat: over what is mapped there.
pub const SHM_REMAP: u32 = 0o4_0000;

/// wait4: returns at once.
pub const WNOHANG: u32 = 1;
/// clock_nanosleep: until a time, not for one.
pub const TIMER_ABSTIME: u32 = 1;

/// ioprio_get, ioprio_set: one thread.
pub const IOPRIO_WHO_PROCESS: u32 = 1;

/// The signal that ends a process whatever it does.
pub const SIGKILL: u32 = 9;
/// The signal that stops a process whatever it does.
pub const SIGSTOP: u32 = 19;
