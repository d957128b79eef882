//! Which calls are treated in ways of their own, by number.

use super::{faults_served, own_memory, stack_bounds};
use crate::numbers::{
    ARCH_PRCTL, CAPSET, CHROOT, CLOCK_GETRES, CLOCK_GETTIME, CLONE, CLONE3, EXECVE, EXECVEAT, EXIT, EXIT_GROUP, FORK,
    GETCPU, GETEGID, GETEUID, GETGID, GETITIMER, GETPGID, GETPGRP, GETPID, GETPPID, GETPRIORITY, GETRESGID, GETRESUID,
    GETRLIMIT, GETRUSAGE, GETSID, GETTID, GETTIMEOFDAY, GETUID, LANDLOCK_RESTRICT_SELF, MLOCKALL, MMAP, MPROTECT,
    PIVOT_ROOT, PKEY_MPROTECT, PRCTL, RSEQ, RT_SIGACTION, RT_SIGPENDING, RT_SIGPROCMASK, SCHED_GETAFFINITY,
    SCHED_GETPARAM, SCHED_GETSCHEDULER, SECCOMP, SETFSGID, SETFSUID, SETGID, SETGROUPS, SETNS, SETREGID, SETRESGID,
    SETRESUID, SETREUID, SETUID, SIGALTSTACK, TIME, TIMES, UMASK, UNAME, UNSHARE, VFORK,
};

/// Whether the call comes back twice.
pub(super) fn clones(number: u32) -> bool {
    matches!(number, CLONE | FORK | VFORK | CLONE3)
}

/// Whether the call may make code of what was none.
pub(super) fn brings_code(number: u32) -> bool {
    matches!(number, MMAP | MPROTECT | PKEY_MPROTECT)
}

/// Whether the call, if all goes well, comes back in another program.
pub(super) fn execs(number: u32) -> bool {
    matches!(number, EXECVE | EXECVEAT)
}

/// Whether the call may change what its process may do: its user, groups, capabilities, namespaces,
/// root, or what confines it. Not those that change only what a later `execve` gives.
pub(super) fn changes_identity(number: u32) -> bool {
    matches!(number, SETUID | SETREUID | SETRESUID | SETFSUID | CAPSET | UNSHARE | SETNS | CHROOT | PIVOT_ROOT)
        || matches!(number, SETGID | SETREGID | SETRESGID | SETFSGID | SETGROUPS | LANDLOCK_RESTRICT_SELF)
}

/// Whether more is done at a call of this number than counting it, where a site makes calls of any
/// number: the bytes of [`image::HEEDED`].
pub fn is_heeded(number: u32) -> bool {
    clones(number)
        || brings_code(number)
        || execs(number)
        || may_end_watching(number)
        || changes_identity(number)
        || own_memory::may_touch(number)
        || stack_bounds::takes_away(number)
        || faults_served::opens(number)
        || matches!(number, EXIT | EXIT_GROUP | RSEQ)
}

/// Whether such a call is looked at before it is made: it may take from the thread what hooks need,
/// or fill all the memory they have.
pub(super) fn may_end_watching(number: u32) -> bool {
    matches!(number, ARCH_PRCTL | PRCTL | SECCOMP | MLOCKALL)
}

/// Whether the call only reads or writes words of the kernel's own: it waits for nobody, no device and no file
/// system. What is not known to be so may wait.
pub(super) fn never_waits(number: u32) -> bool {
    matches!(number, GETPID | GETPPID | GETTID | GETPGID | GETPGRP | GETSID | GETPRIORITY | UMASK | UNAME)
        || matches!(number, GETUID | GETEUID | GETRESUID | GETGID | GETEGID | GETRESGID)
        || matches!(number, CLOCK_GETTIME | CLOCK_GETRES | GETTIMEOFDAY | TIME | TIMES | GETITIMER | GETCPU)
        || matches!(number, RT_SIGPROCMASK | RT_SIGACTION | RT_SIGPENDING | SIGALTSTACK)
        || matches!(number, GETRLIMIT | GETRUSAGE | SCHED_GETAFFINITY | SCHED_GETPARAM | SCHED_GETSCHEDULER)
}
