//! The reasons why a block was not counted, or not to its end.

use thiserror::Error;

/// The reason why calls can't be counted here at all: a test that needs them has to be skipped.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The kernel is older than 5.11, or is emulated (gVisor, qemu-user).
    #[error("this kernel has no Syscall User Dispatch (Linux 5.11 and later have it, gVisor and qemu-user do not)")]
    NoDispatch,
    /// valgrind makes the process's calls from its own code.
    #[error("valgrind runs this process, and makes its calls from code of its own")]
    Translated,
    /// The kernel refused to dispatch calls with this errno, most likely by a seccomp filter.
    #[error("{}: prctl(PR_SET_SYSCALL_USER_DISPATCH) is refused here, most likely by a seccomp filter", std::io::Error::from_raw_os_error(*.0))]
    Refused(i32),
    /// Too many threads count at the same time.
    #[error("more than 256 threads count at the same time")]
    TooManyThreads,
    /// Blocks are nested too deeply.
    #[error("more than 8 blocks lie in one another")]
    TooDeep,
    /// The block ended in another thread, or in a child, than the one it began in.
    #[error("the block ended in another thread or process than it began in")]
    EndedElsewhere,
}

/// The reason why counting stopped before the block's end: its counts are too low.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incomplete {
    /// The program made a 32-bit call.
    #[error("the block made a 32-bit call, which can't be counted; what came later was not")]
    Call32,
    /// There are more `syscall` instructions than stubs.
    #[error("more than 4096 places make calls; what came later was not counted")]
    TooManySites,
    /// A wait with SIGSYS blocked, during which a handler's calls would end the process.
    #[error(
        "the block waited with SIGSYS blocked (sigsuspend, ppoll, pselect or epoll_pwait with a full mask); what came later was not counted"
    )]
    WaitedWithSigsysBlocked,
}
