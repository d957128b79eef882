//! Constants of file, lock and process calls that the other tables lack.

use super::table::Names;

/// Directory descriptor that makes relative paths start at the working directory.
pub const AT_FDCWD: i32 = -100;
/// access: may the file be run, or the folder be passed through?
pub const X_OK: u32 = 1;
/// access: may it be written to?
pub const W_OK: u32 = 2;
/// Flag by which a link at the path's end is not followed.
pub const AT_SYMLINK_NOFOLLOW: u32 = 0x100;
/// statx: cached attributes will do; no server is asked.
pub const AT_STATX_DONT_SYNC: u32 = 0x4000;

/// open: for writing only.
pub const O_WRONLY: u32 = 0o1;
/// open: for reading and writing.
pub const O_RDWR: u32 = 0o2;
/// open: create the file if it is absent.
pub const O_CREAT: u32 = 0o100;
/// open: fail if the file exists.
pub const O_EXCL: u32 = 0o200;
/// open: empty the file.
pub const O_TRUNC: u32 = 0o1000;
/// open: each write goes to the file's end.
pub const O_APPEND: u32 = 0o2000;
/// open: calls return instead of waiting.
pub const O_NONBLOCK: u32 = 0o4000;
/// open: a signal reports readiness.
pub const O_ASYNC: u32 = 0o2_0000;
/// open: bypass the page cache.
pub const O_DIRECT: u32 = 0o4_0000;
/// open: reading does not change the access time.
pub const O_NOATIME: u32 = 0o100_0000;
/// open: an exec closes the descriptor.
pub const O_CLOEXEC: u32 = 0o200_0000;
/// F_SETFD: an exec closes the descriptor.
pub const FD_CLOEXEC: u32 = 1;

/// flock: a shared lock.
pub const LOCK_SH: u32 = 1;
/// flock: an exclusive lock.
pub const LOCK_EX: u32 = 2;
/// flock: fail instead of waiting.
pub const LOCK_NB: u32 = 4;
/// flock: release the lock.
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

/// epoll: report once, until the interest is set again.
pub const EPOLLONESHOT: u32 = 1 << 30;
/// epoll: there is room to write.
pub const EPOLLOUT: u32 = 4;
/// epoll: report changes only (edge-triggered).
pub const EPOLLET: u32 = 1 << 31;
/// epoll: the peer ended its side of the stream.
pub const EPOLLRDHUP: u32 = 0x2000;

/// futex: no other process shares the word.
pub const FUTEX_PRIVATE_FLAG: u32 = 128;

/// System V IPC: fail instead of waiting.
pub const IPC_NOWAIT: u32 = 0o4000;
/// System V IPC: a bit beside the command; glibc sets it to ask for today's structures.
pub const IPC_64: u32 = 0x100;
/// msgctl: select a queue by its index in the kernel's table.
pub const MSG_STAT: u32 = 11;
/// shmctl: select a segment by its index in the kernel's table.
pub const SHM_STAT: u32 = 13;
/// semctl: select a set by its index in the kernel's table.
pub const SEM_STAT: u32 = 18;
/// semctl: return the resources that all sets use.
pub const SEM_INFO: u32 = 19;
/// shmat: replace the mappings at the given address.
pub const SHM_REMAP: u32 = 0o4_0000;

/// wait4: return at once, even if no child has ended.
pub const WNOHANG: u32 = 1;
/// clock_nanosleep: sleep until a given time, not for a duration.
pub const TIMER_ABSTIME: u32 = 1;

/// ioprio_get, ioprio_set: the priority of one thread.
pub const IOPRIO_WHO_PROCESS: u32 = 1;

/// The signal that always ends a process.
pub const SIGKILL: u32 = 9;
/// The signal that the kernel sends for a write to a pipe or socket without a reader.
pub const SIGPIPE: u32 = 13;
/// The signal that always stops a process.
pub const SIGSTOP: u32 = 19;
