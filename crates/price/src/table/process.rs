//! Identity, signals, limits, scheduling.

use super::bench::{Bench, fails, same};
#[cfg(target_arch = "aarch64")]
use crate::arch::absent::*;
use crate::fixture::Fixture;
use crate::sys::{Args, SIGSET_BYTES};
use libc::*;

const NOBODY: usize = usize::MAX;

fn none(_: &Fixture) -> Args {
    [0; 6]
}

/// Returns three addresses to write to, for getresuid and the like.
fn three_outs(f: &Fixture) -> Args {
    [f.out(), f.out() + 8, f.out() + 16, 0, 0, 0]
}

/// Returns the calling process and, as the second argument, a buffer.
fn self_and_out(f: &Fixture) -> Args {
    [0, f.out(), 0, 0, 0, 0]
}

pub(super) const CALLS: &[Bench] = &[
    same(SYS_getpid, none),
    same(SYS_getppid, none),
    same(SYS_gettid, none),
    same(SYS_getuid, none),
    same(SYS_geteuid, none),
    same(SYS_getgid, none),
    same(SYS_getegid, none),
    same(SYS_getpgrp, none),
    same(SYS_getpgid, none),
    same(SYS_getsid, none),
    same(SYS_getresuid, three_outs),
    same(SYS_getresgid, three_outs),
    same(SYS_getgroups, none),
    same(SYS_set_tid_address, none),
    // The mask does not change, as in a no-op finding; a change costs hardly more.
    same(SYS_rt_sigprocmask, |f| [SIG_BLOCK as usize, f.zeros(), f.out(), SIGSET_BYTES, 0, 0]),
    same(SYS_rt_sigaction, |f| [SIGUSR1 as usize, 0, f.out(), SIGSET_BYTES, 0, 0]),
    same(SYS_rt_sigpending, |f| [f.out(), SIGSET_BYTES, 0, 0, 0, 0]),
    same(SYS_sigaltstack, |f| [0, f.out(), 0, 0, 0, 0]),
    same(SYS_kill, |f| [f.pid, 0, 0, 0, 0, 0]),
    same(SYS_tkill, |f| [f.pid, 0, 0, 0, 0, 0]),
    same(SYS_tgkill, |f| [f.pid, f.pid, 0, 0, 0, 0]),
    same(SYS_getrlimit, |f| [RLIMIT_NOFILE as usize, f.out(), 0, 0, 0, 0]),
    same(SYS_prlimit64, |f| [0, RLIMIT_NOFILE as usize, 0, f.out(), 0, 0]),
    same(SYS_getrusage, self_and_out),
    same(SYS_getpriority, none),
    same(SYS_sched_yield, none),
    same(SYS_sched_getaffinity, |f| [0, 1024, f.out(), 0, 0, 0]),
    same(SYS_sched_getparam, self_and_out),
    same(SYS_sched_getscheduler, none),
    same(SYS_getcpu, |f| [f.out(), f.out() + 8, 0, 0, 0, 0]),
    same(SYS_prctl, |f| [PR_GET_NAME as usize, f.out(), 0, 0, 0, 0]),
    same(SYS_arch_prctl, |f| [0x1003 /* ARCH_GET_FS */, f.out(), 0, 0, 0, 0]),
    same(SYS_personality, |_| [0xffff_ffff, 0, 0, 0, 0, 0]),
    same(SYS_set_robust_list, |f| [f.robust(), 24, 0, 0, 0, 0]),
    same(SYS_umask, |_| [0o22, 0, 0, 0, 0, 0]),
    same(SYS_uname, |f| [f.out(), 0, 0, 0, 0, 0]),
    same(SYS_sysinfo, |f| [f.out(), 0, 0, 0, 0, 0]),
    same(SYS_getrandom, |f| [f.out(), 16, 0, 0, 0, 0]),
    same(SYS_futex, |f| [f.zeros(), (FUTEX_WAKE | FUTEX_PRIVATE_FLAG) as usize, 1, 0, 0, 0]),
    fails(SYS_futex, EAGAIN, |f| [f.zeros(), (FUTEX_WAIT | FUTEX_PRIVATE_FLAG) as usize, 1, 0, 0, 0]),
    fails(SYS_wait4, ECHILD, |_| [NOBODY, 0, WNOHANG as usize, 0, 0, 0]),
];
