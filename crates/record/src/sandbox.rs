//! Finds calls for which a sandbox would kill this process, by making them in a child first.
//!
//! A seccomp filter that refuses a call with an error is noticed where the call is made. A filter that kills leaves
//! no time to tell the user. Therefore, when this process runs under a filter, a child makes each call that watching
//! needs, in a form without effect, and notes in shared memory which one it is about to make.

use crate::tracee::{Stop, Waited, wait_for};
use libc::{c_long, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use systoll_model::{BackendKind, Machine};

/// A call in a form without effect: its arguments are no valid addresses and no descriptors.
type HarmlessCall = (c_long, [u64; 5]);

const NONE: u64 = u64::MAX;

/// Numbers of the calls by which this machine's C library does what x86-64 has elder calls for.
mod ours {
    #[cfg(target_arch = "x86_64")]
    pub(super) use libc::{
        SYS_access as ACCESS, SYS_dup2 as DUP2, SYS_open as OPEN, SYS_poll as POLL, SYS_readlink as READLINK,
    };
    #[cfg(target_arch = "aarch64")]
    pub(super) use libc::{
        SYS_dup3 as DUP2, SYS_faccessat as ACCESS, SYS_openat as OPEN, SYS_ppoll as POLL, SYS_readlinkat as READLINK,
    };
}

/// Harmless forms of the calls that every backend makes.
const ALWAYS: [HarmlessCall; 36] = [
    (libc::SYS_ptrace, [2, 0, 0, 0, 0]),
    (libc::SYS_process_vm_readv, [0, 0, 0, 0, 0]),
    (ours::READLINK, [0; 5]),
    (libc::SYS_memfd_create, [0; 5]),
    (libc::SYS_clone3, [0; 5]),
    (libc::SYS_execve, [0; 5]),
    (libc::SYS_kill, [NONE, 99, 0, 0, 0]),
    (libc::SYS_tgkill, [NONE, NONE, 0, 0, 0]),
    (libc::SYS_waitid, [NONE, 0, 0, 0, 0]),
    (libc::SYS_prctl, [NONE, 0, 0, 0, 0]),
    (ours::ACCESS, [0; 5]),
    (libc::SYS_openat, [NONE, 0, 0, 0, 0]),
    (libc::SYS_newfstatat, [NONE, 0, 0, 0, 0]),
    (libc::SYS_statx, [NONE, 0, 0, 0, 0]),
    (libc::SYS_statfs, [0; 5]),
    (libc::SYS_getxattr, [0; 5]),
    (libc::SYS_getdents64, [NONE, 0, 0, 0, 0]),
    (libc::SYS_lseek, [NONE, 0, 0, 0, 0]),
    (libc::SYS_pread64, [NONE, 0, 0, 0, 0]),
    (libc::SYS_fcntl, [NONE, 0, 0, 0, 0]),
    (libc::SYS_ioctl, [NONE, 0, 0, 0, 0]),
    (ours::DUP2, [NONE, NONE, 0, 0, 0]),
    (libc::SYS_socketpair, [NONE, 0, 0, 0, 0]),
    (ours::POLL, [0, NONE, 0, 0, 0]),
    (libc::SYS_uname, [0; 5]),
    (libc::SYS_capget, [0; 5]),
    (libc::SYS_getrusage, [99, 0, 0, 0, 0]),
    (libc::SYS_prlimit64, [0, 99, 0, 0, 0]),
    (libc::SYS_clock_gettime, [99, 0, 0, 0, 0]),
    (libc::SYS_sched_getaffinity, [0; 5]),
    (libc::SYS_sched_setaffinity, [0; 5]),
    (libc::SYS_set_robust_list, [0; 5]),
    (libc::SYS_sigaltstack, [0; 5]),
    (libc::SYS_rt_sigpending, [0, 99, 0, 0, 0]),
    (libc::SYS_rt_sigtimedwait, [0, 0, 0, 99, 0]),
    (libc::SYS_getppid, [0; 5]),
];
/// Harmless forms of calls that this process's C library makes: musl opens files by `open`, glibc by `openat`.
const LIBRARY: &[HarmlessCall] = if cfg!(target_env = "musl") { &[(ours::OPEN, [0; 5])] } else { &[] };
/// Harmless forms of further calls that the inproc backend makes.
const INPROC: [HarmlessCall; 6] = [
    (libc::SYS_ftruncate, [NONE, 0, 0, 0, 0]),
    (libc::SYS_fallocate, [NONE, 0, 0, 0, 0]),
    (libc::SYS_pwrite64, [NONE, 0, 0, 0, 0]),
    (libc::SYS_fstatfs, [NONE, 0, 0, 0, 0]),
    (libc::SYS_madvise, [0; 5]),
    (libc::SYS_clock_getres, [99, 0, 0, 0, 0]),
];
/// Harmless forms of further calls that the ptrace backend makes.
const PTRACE: [HarmlessCall; 7] = [
    (libc::SYS_dup, [NONE, 0, 0, 0, 0]),
    (libc::SYS_pipe2, [0; 5]),
    (libc::SYS_getcpu, [0; 5]),
    (libc::SYS_epoll_create1, [NONE, 0, 0, 0, 0]),
    (libc::SYS_epoll_ctl, [NONE, 0, NONE, 0, 0]),
    (libc::SYS_timerfd_create, [99, 0, 0, 0, 0]),
    (libc::SYS_sched_yield, [0; 5]),
];
/// Harmless forms of further calls that the bpf backend makes.
const BPF: [HarmlessCall; 3] = [
    (libc::SYS_bpf, [NONE, 0, 0, 0, 0]),
    (libc::SYS_pidfd_open, [NONE, 0, 0, 0, 0]),
    (libc::SYS_membarrier, [NONE, 0, 0, 0, 0]),
];

/// Returns the text of /proc/self/status, read once: the kernel takes long to produce it.
pub(crate) fn own_status() -> &'static str {
    static STATUS: OnceLock<String> = OnceLock::new();
    STATUS.get_or_init(|| {
        // A program's name may be no UTF-8.
        let bytes = crate::procfs::read("/proc/self/status").unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Returns the reason why the sandbox would kill this process when it watches by `backend`; `None` if it would not.
pub(crate) fn kills(backend: BackendKind) -> Option<String> {
    // Mode 2 is SECCOMP_MODE_FILTER (proc_pid_status(5)).
    let filtered = |line: &str| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2");
    own_status().lines().any(filtered).then_some(())?;
    let own: &[HarmlessCall] = match backend {
        BackendKind::Inproc => &INPROC,
        BackendKind::Bpf => &BPF,
        BackendKind::Ptrace | BackendKind::Import => &PTRACE,
    };
    let deadly: Vec<String> = [&ALWAYS[..], LIBRARY, own]
        .into_iter()
        .flat_map(deadly)
        .map(|n| Machine::HERE.call(n as u32).to_string())
        .collect();
    let what = deadly.join(", ");
    (!deadly.is_empty()).then(|| format!(
        "a seccomp filter that systoll was started under kills who calls {what}; run systoll outside of that sandbox, or have \
         the sandbox allow this (docker: --security-opt seccomp=FILE; systemd: SystemCallFilter=)"
    ))
}

/// Returns the numbers of the calls among `calls` that end a process.
fn deadly(calls: &[HarmlessCall]) -> Vec<c_long> {
    static WORD: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
    let Some(at) = *WORD.get_or_init(shared_word) else { return Vec::new() };
    let mut deadly = Vec::new();
    let mut from = 0;
    while from < calls.len() {
        at.store(from as u32, Ordering::Release);
        if make(calls.get(from..).unwrap_or_default(), at) {
            break;
        }
        let reached = at.load(Ordering::Acquire) as usize;
        deadly.extend(calls.get(reached).map(|(number, _)| *number));
        from = reached.max(from) + 1;
    }
    deadly
}

/// Makes calls in a child, which counts them in `at`. Returns true if the child survived all of them.
fn make(calls: &[HarmlessCall], at: &AtomicU32) -> bool {
    // SAFETY: the child only makes system calls, writes to one word and leaves by a call. No call gets a valid
    // address or a descriptor.
    unsafe {
        match libc::fork() {
            // If no child can be made, the code that needs one will report that.
            -1 => true,
            0 => {
                // The child must leave no core file.
                libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
                for (number, [a, b, c, d, e]) in calls {
                    libc::syscall(*number, *a, *b, *c, *d, *e);
                    at.fetch_add(1, Ordering::AcqRel);
                }
                libc::_exit(0)
            }
            pid => loop {
                match wait_for(pid, true) {
                    Waited::Stop(Stop::Killed { signal, .. }) => return signal != libc::SIGSYS,
                    Waited::Stop(Stop::Exited { .. }) | Waited::NoChildren => return true,
                    Waited::Stop(_) | Waited::NothingYet | Waited::Interrupted => {}
                }
            },
        }
    }
}

/// Returns a word that this process shares with its children as long as it lives.
fn shared_word() -> Option<&'static AtomicU32> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, a page of zeroes that is never unmapped; aligned, and any bytes are an AtomicU32.
    unsafe {
        let at: *mut c_void = libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0);
        (at != libc::MAP_FAILED).then(|| &*at.cast::<AtomicU32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_calls_are_lived_through() {
        for calls in [&ALWAYS[..], &INPROC, &PTRACE, &BPF] {
            assert_eq!(deadly(calls), Vec::<c_long>::new());
        }
        let all = [&ALWAYS[..], &INPROC, &PTRACE, &BPF].concat();
        let numbers: std::collections::HashSet<_> = all.iter().map(|c| c.0).collect();
        assert_eq!(numbers.len(), all.len());
    }
}
