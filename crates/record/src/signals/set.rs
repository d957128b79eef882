//! Makes signal sets, and takes pending signals.

use std::time::Duration;

/// The signals that systoll acts on while it watches.
pub(super) const WATCHED: [i32; 5] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1];

pub(super) fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before anything else reads it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        set
    }
}

pub(super) fn is_ignored(signal: i32) -> bool {
    // SAFETY: a zeroed sigaction is valid to be written to; with no new action this only reads.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

pub(super) fn is_blocked(mask: &libc::sigset_t, signal: i32) -> bool {
    // SAFETY: the set is valid; this only reads it.
    unsafe { libc::sigismember(mask, signal) == 1 }
}

/// Returns true if a signal that this thread blocks is pending for it or for the process.
pub(super) fn is_pending(signal: i32) -> bool {
    let mut set = set_of(&[]);
    // SAFETY: the set is valid to be written to.
    unsafe { libc::sigpending(&mut set) == 0 && libc::sigismember(&set, signal) == 1 }
}

/// Takes one of `signals`, which this thread blocks, with its `si_code`; waits for `limit` at most.
pub(super) fn take(signals: &[i32], limit: Duration) -> Option<(i32, i32)> {
    let set = set_of(signals);
    let timeout = libc::timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: set and timeout are valid; info is written before it is read.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let signal = libc::sigtimedwait(&set, &mut info, &timeout);
        (signal > 0).then_some((signal, info.si_code))
    }
}
