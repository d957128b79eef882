//! Finds out if the seccomp filters that a process has of its own allow all calls that systoll makes in it.
//!
//! Root may read the filters of a stopped thread. Each is followed for each call: a filter is a short program without
//! loops.

use crate::inproc::monitor::exec::filter_program::{Call, allows};
use crate::tracee;
use libc::sock_filter;
use nix::errno::Errno;

/// Filters of one thread that are looked at, at most.
const MOST: usize = 64;

/// The reason why a process with filters of its own can't be watched from inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The filters don't allow this call in every case.
    Forbids(&'static str),
    /// The filters can't be read.
    Unreadable(Errno),
}

/// Returns the obstacle that the filters of these stopped threads are to the calls that systoll makes in their process.
pub(crate) fn obstacle(threads: impl IntoIterator<Item = i32>) -> Option<Obstacle> {
    // Most threads have the same filters.
    let mut known: Vec<Vec<sock_filter>> = Vec::new();
    for tid in threads {
        for index in 0..=MOST {
            let filter = match tracee::seccomp_filter(tid, index) {
                Ok(filter) if index < MOST => filter,
                Ok(_) => return Some(Obstacle::Unreadable(Errno::E2BIG)),
                // There is no further filter; or no filter at all.
                Err(Errno::ENOENT | Errno::EINVAL) => break,
                Err(errno) => return Some(Obstacle::Unreadable(errno)),
            };
            if known.iter().any(|other| is_same(other, &filter)) {
                continue;
            }
            if let Some((name, _)) = calls().into_iter().find(|(_, call)| !allows(&filter, call)) {
                return Some(Obstacle::Forbids(name));
            }
            known.push(filter);
        }
    }
    None
}

fn is_same(one: &[sock_filter], other: &[sock_filter]) -> bool {
    let words = |f: &sock_filter| (f.code, f.jt, f.jf, f.k);
    one.len() == other.len() && one.iter().map(words).eq(other.iter().map(words))
}

/// Returns all calls that systoll makes in a process that it enters, watches and leaves, each with its name.
fn calls() -> Vec<(&'static str, Call)> {
    const MINUS_ONE: u64 = u64::MAX;
    let (anonymous, again) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
    let shared = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
    let (data, code) = (libc::PROT_READ | libc::PROT_WRITE, libc::PROT_READ | libc::PROT_EXEC);
    let n = |value: i32| Some(value as u64);
    let any = None;
    let own = |protection, flags| [any, any, n(protection), n(flags), Some(MINUS_ONE), Some(0)];
    let file = |protection| [any, any, n(protection), n(shared), any, any];
    let alone = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let no_reserve = anonymous | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
    let mut all = vec![
        ("mmap", libc::SYS_mmap, own(data, anonymous | libc::MAP_FIXED_NOREPLACE)),
        ("mmap", libc::SYS_mmap, own(libc::PROT_NONE, no_reserve)),
        ("mmap", libc::SYS_mmap, [any, any, n(data), n(alone), any, any]),
        ("mmap", libc::SYS_mmap, file(libc::PROT_READ)),
        ("mmap", libc::SYS_mmap, file(data)),
        ("mmap of code", libc::SYS_mmap, file(code)),
        ("mremap", libc::SYS_mremap, [any, any, any, n(again), any, any]),
        ("mprotect of code", libc::SYS_mprotect, [any, any, n(code | libc::PROT_WRITE), any, any, any]),
        ("mprotect of code", libc::SYS_mprotect, [any, any, n(code), any, any, any]),
        (
            "socketpair",
            libc::SYS_socketpair,
            [n(libc::AF_UNIX), n(libc::SOCK_DGRAM | libc::SOCK_CLOEXEC), n(0), any, any, any],
        ),
        ("setsockopt", libc::SYS_setsockopt, [any, n(libc::SOL_SOCKET), n(libc::SO_RCVTIMEO), any, any, any]),
        ("recvmsg", libc::SYS_recvmsg, [any, any, n(libc::MSG_CMSG_CLOEXEC), any, any, any]),
        ("clock_gettime", libc::SYS_clock_gettime, [n(libc::CLOCK_PROCESS_CPUTIME_ID), any, any, any, any, any]),
        ("getrusage", libc::SYS_getrusage, [n(libc::RUSAGE_THREAD), any, any, any, any, any]),
    ];
    let plain = [
        ("munmap", libc::SYS_munmap),
        ("madvise", libc::SYS_madvise),
        ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
        ("sched_yield", libc::SYS_sched_yield),
        ("restart_syscall", libc::SYS_restart_syscall),
        ("futex", libc::SYS_futex),
        ("getpid", libc::SYS_getpid),
        ("gettid", libc::SYS_gettid),
        ("close", libc::SYS_close),
        ("open", libc::SYS_open),
        ("access", libc::SYS_access),
        ("readlink", libc::SYS_readlink),
        ("fstat", libc::SYS_fstat),
        ("ioctl", libc::SYS_ioctl),
        ("rseq", libc::SYS_rseq),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        // These calls are made at the exec of a child.
        ("chmod", libc::SYS_chmod),
        ("pwrite64", libc::SYS_pwrite64),
        ("sched_setaffinity", libc::SYS_sched_setaffinity),
        ("memfd_create", libc::SYS_memfd_create),
    ];
    all.extend(plain.map(|(name, number)| (name, number, [any; 6])));
    all.into_iter().map(|(name, number, args)| (name, Call { number: number as u32, args })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_looked_up_in_a_filter() {
        let line = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
        let load = line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0);
        let answer = |k| line(libc::BPF_RET | libc::BPF_K, 0, 0, k);
        for (name, call) in calls() {
            let is_it = line(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call.number);
            let refuses = [load, is_it, answer(libc::SECCOMP_RET_ERRNO | 1), answer(libc::SECCOMP_RET_ALLOW)];
            let first = calls().into_iter().find(|(_, call)| !allows(&refuses, call)).map(|(name, _)| name);
            assert_eq!(first.map(|first| first.split(' ').next()), Some(name.split(' ').next()));
        }
    }
}
