//! Waits for traced threads and decodes their stops.

use nix::errno::Errno;

/// A report of the kernel about one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Exited {
        tid: i32,
        code: i32,
    },
    Killed {
        tid: i32,
        signal: i32,
    },
    /// The thread is at a system call's entry or exit, if those stops were requested.
    Syscall {
        tid: i32,
    },
    Signal {
        tid: i32,
        signal: i32,
    },
    Event {
        tid: i32,
        event: i32,
        signal: i32,
    },
}

impl Stop {
    /// Returns the id of the thread.
    pub(crate) fn tid(self) -> i32 {
        match self {
            Self::Exited { tid, .. }
            | Self::Killed { tid, .. }
            | Self::Syscall { tid }
            | Self::Signal { tid, .. }
            | Self::Event { tid, .. } => tid,
        }
    }

    /// Returns the signal with which to detach, so that the thread goes on as if we had not stopped it: it gets the
    /// signal that is being delivered, and stays stopped if its shell has stopped it. Returns `None` for a thread that
    /// has ended.
    pub(crate) fn signal_to_leave_with(self) -> Option<i32> {
        match self {
            Self::Exited { .. } | Self::Killed { .. } => None,
            Self::Signal { signal, .. } => Some(signal),
            _ if self.is_group_stop() => Some(libc::SIGSTOP),
            Self::Syscall { .. } | Self::Event { .. } => Some(0),
        }
    }

    /// Returns true if a signal has stopped the thread's whole process, as a shell stops a job.
    pub(crate) fn is_group_stop(self) -> bool {
        let Self::Event { event: libc::PTRACE_EVENT_STOP, signal, .. } = self else { return false };
        matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
    }
}

/// Result of waiting for a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Stop(Stop),
    Interrupted,
    NothingYet,
    NoChildren,
}

/// Waits for any child or tracee, and reaps it if it has ended. The report of a stop stays in place and comes again
/// until the thread runs on: if we took a signal and were killed before giving it back, it would be lost.
pub(crate) fn next(block: bool) -> Waited {
    let flags = libc::WEXITED | libc::WNOWAIT | libc::__WALL | if block { 0 } else { libc::WNOHANG };
    // SAFETY: a zeroed siginfo is valid to be written to, and we read only what waitid fills in.
    let (result, tid, code, status) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let result = libc::waitid(libc::P_ALL, 0, &mut info, flags);
        (result, info.si_pid(), info.si_code, info.si_status())
    };
    match (result, tid) {
        (0, 0) => Waited::NothingYet,
        (0, tid) => match code {
            libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED => wait_for(tid, false),
            // A thread that took its leader's number accepts no request before its exec report is taken (kernel:
            // looks_like_a_spurious_pid).
            _ if status >> 8 == libc::PTRACE_EVENT_EXEC => wait_for(tid, false),
            _ => Waited::Stop(stopped(tid, status)),
        },
        _ => failed(),
    }
}

/// Takes the report of any child or tracee.
pub(crate) fn wait_any(block: bool) -> Waited {
    wait(-1, block)
}

/// Takes the report of one thread that has stopped or ended.
pub(crate) fn wait_for(tid: i32, block: bool) -> Waited {
    wait(tid, block)
}

/// Takes the report of a stop of thread `tid`. If the thread has ended, returns [`Waited::NoChildren`] and leaves the
/// report to the loop that waits for all threads.
pub(crate) fn wait_for_stop(tid: i32, block: bool) -> Waited {
    let flags = libc::__WALL | libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | if block { 0 } else { libc::WNOHANG };
    // SAFETY: a zeroed siginfo_t is valid to be written to; si_pid is read as waitid filled it.
    let (result, pid, code) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let result = libc::waitid(libc::P_PID, tid as libc::id_t, &mut info, flags);
        (result, info.si_pid(), info.si_code)
    };
    match code {
        _ if result != 0 => failed(),
        _ if pid == 0 => Waited::NothingYet,
        libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED => Waited::NoChildren,
        _ => wait_for(tid, false),
    }
}

/// Does the same as [`wait_for_stop`], but waits at most until `deadline`; then there was nothing yet.
pub(crate) fn wait_for_stop_by(tid: i32, deadline: u64) -> Waited {
    let mut pause = Pause::default();
    loop {
        match wait_for_stop(tid, false) {
            Waited::NothingYet | Waited::Interrupted if crate::sys::now() < deadline => pause.wait(),
            told => return told,
        }
    }
}

/// Number of looks so far for an event that usually comes within microseconds: the first looks follow without a pause,
/// later ones after a sleep. A sleep leaves the processor to the thread for which we wait; a yield would leave it to
/// every other thread as well, each for its whole turn.
#[derive(Default)]
pub(crate) struct Pause(u32);

impl Pause {
    /// Number of looks without a pause in between.
    const LOOKS: u32 = 30;
    /// Length of a pause between looks.
    const SLEEP: std::time::Duration = std::time::Duration::from_micros(10);

    /// Waits until it is time for the next look.
    pub(crate) fn wait(&mut self) {
        self.0 = self.0.saturating_add(1);
        match self.0 > Self::LOOKS {
            true => std::thread::sleep(Self::SLEEP),
            false => std::hint::spin_loop(),
        }
    }
}

fn wait(tid: i32, block: bool) -> Waited {
    let mut status = 0;
    let flags = libc::__WALL | if block { 0 } else { libc::WNOHANG };
    // SAFETY: `status` is valid to be written to.
    match unsafe { libc::waitpid(tid, &mut status, flags) } {
        0 => Waited::NothingYet,
        -1 => failed(),
        tid => Waited::Stop(decode(tid, status)),
    }
}

/// Returns the result for a wait that failed.
fn failed() -> Waited {
    if Errno::last() == Errno::EINTR { Waited::Interrupted } else { Waited::NoChildren }
}

/// Returns true if child `pid` has ended. Its report can still be taken.
pub(crate) fn has_ended(pid: i32) -> bool {
    // SAFETY: a zeroed siginfo_t is valid to be written to; si_pid is read as waitid filled it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) == 0 && info.si_pid() == pid
    }
}

fn decode(tid: i32, status: i32) -> Stop {
    if libc::WIFEXITED(status) {
        return Stop::Exited { tid, code: libc::WEXITSTATUS(status) };
    }
    if libc::WIFSIGNALED(status) {
        return Stop::Killed { tid, signal: libc::WTERMSIG(status) };
    }
    stopped(tid, status >> 8)
}

/// Decodes a stop; `code` has the signal in its lowest byte and the event above.
fn stopped(tid: i32, code: i32) -> Stop {
    let signal = code & 0xff;
    match code >> 8 {
        0 if signal == libc::SIGTRAP | 0x80 => Stop::Syscall { tid },
        0 => Stop::Signal { tid, signal },
        event => Stop::Event { tid, event, signal },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_are_decoded() {
        assert_eq!(decode(7, 3 << 8), Stop::Exited { tid: 7, code: 3 });
        assert_eq!(decode(7, 9), Stop::Killed { tid: 7, signal: 9 });
        assert_eq!(decode(7, 0x7f | (0x85 << 8)), Stop::Syscall { tid: 7 });
        assert_eq!(decode(7, 0x7f | (5 << 8)), Stop::Signal { tid: 7, signal: 5 });
        let exec = 0x7f | (5 << 8) | (libc::PTRACE_EVENT_EXEC << 16);
        assert_eq!(decode(7, exec), Stop::Event { tid: 7, event: libc::PTRACE_EVENT_EXEC, signal: 5 });
    }

    #[test]
    fn a_thread_is_left_as_it_was() {
        let event = |signal| Stop::Event { tid: 7, event: libc::PTRACE_EVENT_STOP, signal };
        assert_eq!(event(libc::SIGTRAP).signal_to_leave_with(), Some(0));
        assert_eq!(event(libc::SIGTSTP).signal_to_leave_with(), Some(libc::SIGSTOP));
        assert_eq!(Stop::Signal { tid: 7, signal: libc::SIGUSR1 }.signal_to_leave_with(), Some(libc::SIGUSR1));
        assert_eq!(Stop::Syscall { tid: 7 }.signal_to_leave_with(), Some(0));
        assert_eq!(Stop::Exited { tid: 7, code: 0 }.signal_to_leave_with(), None);
    }
}
