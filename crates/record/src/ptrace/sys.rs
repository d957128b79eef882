//! The kernel's side of ptrace, made typed. All unsafe code of this backend is here.

pub(super) use crate::sys::{children_times, now, read_memory};
use libc::c_void;
use nix::errno::Errno;

/// Event stops we ask for. No PTRACE_O_EXITKILL: a target outlives us.
pub(super) const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// What waitpid told of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Exited { tid: i32, code: i32 },
    Killed { tid: i32, signal: i32 },
    Syscall { tid: i32 },
    Signal { tid: i32, signal: i32 },
    Event { tid: i32, event: i32, signal: i32 },
}

impl Stop {
    /// Whose it is.
    pub(super) fn tid(self) -> i32 {
        match self {
            Self::Exited { tid, .. }
            | Self::Killed { tid, .. }
            | Self::Syscall { tid }
            | Self::Signal { tid, .. }
            | Self::Event { tid, .. } => tid,
        }
    }
}

/// Outcome of one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Stop(Stop),
    Interrupted,
    NothingYet,
    NoChildren,
}

/// Waits for any child or tracee. What has ended is reaped; the report of a stop is not taken, and
/// told again until the thread runs on: a signal taken and not yet given back would be lost if we
/// were killed.
pub(super) fn next(block: bool) -> Waited {
    let flags = libc::WEXITED | libc::WNOWAIT | libc::__WALL | if block { 0 } else { libc::WNOHANG };
    // SAFETY: a zeroed siginfo is valid to be written to, and what is read of it is what waitid
    // fills in.
    let (result, tid, code, status) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let result = libc::waitid(libc::P_ALL, 0, &mut info, flags);
        (result, info.si_pid(), info.si_code, info.si_status())
    };
    match (result, tid) {
        (0, 0) => Waited::NothingYet,
        (0, tid) => match code {
            libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED => wait_for(tid),
            // One that took its leader's number accepts no request before its exec is taken
            // (kernel: looks_like_a_spurious_pid).
            _ if status >> 8 == libc::PTRACE_EVENT_EXEC => wait_for(tid),
            _ => Waited::Stop(stopped(tid, status)),
        },
        _ if Errno::last() == Errno::EINTR => Waited::Interrupted,
        _ => Waited::NoChildren,
    }
}

/// Takes the report of one thread that has stopped or ended, if there is one.
pub(super) fn wait_for(tid: i32) -> Waited {
    wait(tid, libc::WNOHANG)
}

/// Waits for one child.
pub(super) fn wait_child(pid: i32) -> Waited {
    wait(pid, 0)
}

fn wait(tid: i32, flags: i32) -> Waited {
    let mut status = 0;
    // SAFETY: `status` is valid to be written to.
    let tid = unsafe { libc::waitpid(tid, &mut status, libc::__WALL | flags) };
    match tid {
        0 => Waited::NothingYet,
        -1 if Errno::last() == Errno::EINTR => Waited::Interrupted,
        -1 => Waited::NoChildren,
        tid => Waited::Stop(decode(tid, status)),
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

/// `code` is the signal in its lower byte, the event above.
fn stopped(tid: i32, code: i32) -> Stop {
    let signal = code & 0xff;
    match code >> 8 {
        0 if signal == libc::SIGTRAP | 0x80 => Stop::Syscall { tid },
        0 => Stop::Signal { tid, signal },
        event => Stop::Event { tid, event, signal },
    }
}

/// The plain requests: no memory of ours is touched.
fn request(request: libc::c_uint, tid: i32, address: usize, data: usize) -> Result<(), Errno> {
    // SAFETY: used only with requests that take both as plain numbers.
    let result = unsafe { libc::ptrace(request, tid, address as *mut c_void, data as *mut c_void) };
    if result == -1 { Err(Errno::last()) } else { Ok(()) }
}

pub(super) fn seize(pid: i32) -> Result<(), Errno> {
    request(libc::PTRACE_SEIZE, pid, 0, OPTIONS as usize)
}

pub(super) fn interrupt(tid: i32) -> Result<(), Errno> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Runs on to the next system call stop, delivering `signal` if not 0.
pub(super) fn resume(tid: i32, signal: i32) -> Result<(), Errno> {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}

/// Leaves a group-stopped thread stopped while listening for what ends the stop.
pub(super) fn listen(tid: i32) -> Result<(), Errno> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}

pub(super) fn detach(tid: i32, signal: i32) -> Result<(), Errno> {
    request(libc::PTRACE_DETACH, tid, 0, signal as usize)
}

/// The number an event stop carries, e.g. the new thread.
pub(super) fn event_message(tid: i32) -> Result<i64, Errno> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: GETEVENTMSG writes one unsigned long, for which `message` has room.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0usize, &raw mut message) };
    if result == -1 { Err(Errno::last()) } else { Ok(message as i64) }
}

/// What a system call stop is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Entry { arch: u32, nr: u64, args: [u64; 6] },
    Exit { result: i64 },
    Neither,
}

/// PTRACE_GET_SYSCALL_INFO (Linux 5.3).
pub(super) fn call(tid: i32) -> Result<Call, Errno> {
    const SIZE: usize = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: a zeroed ptrace_syscall_info is valid, and the kernel is told its size. The union
    // is read as the kernel says by `op` it has filled it.
    unsafe {
        let mut info: libc::ptrace_syscall_info = std::mem::zeroed();
        if libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, tid, SIZE, &raw mut info) == -1 {
            return Err(Errno::last());
        }
        Ok(match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                Call::Entry { arch: info.arch, nr: info.u.entry.nr, args: info.u.entry.args }
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => Call::Exit { result: info.u.exit.sval },
            _ => Call::Neither,
        })
    }
}

pub(super) fn registers(tid: i32) -> Result<libc::user_regs_struct, Errno> {
    // SAFETY: GETREGS fills a user_regs_struct, for which zeroes are valid.
    unsafe {
        let mut regs: libc::user_regs_struct = std::mem::zeroed();
        if libc::ptrace(libc::PTRACE_GETREGS, tid, 0usize, &raw mut regs) == -1 {
            return Err(Errno::last());
        }
        Ok(regs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_are_told_apart() {
        assert_eq!(decode(7, 3 << 8), Stop::Exited { tid: 7, code: 3 });
        assert_eq!(decode(7, 9), Stop::Killed { tid: 7, signal: 9 });
        assert_eq!(decode(7, 0x7f | (0x85 << 8)), Stop::Syscall { tid: 7 });
        assert_eq!(decode(7, 0x7f | (5 << 8)), Stop::Signal { tid: 7, signal: 5 });
        let exec = 0x7f | (5 << 8) | (libc::PTRACE_EVENT_EXEC << 16);
        assert_eq!(decode(7, exec), Stop::Event { tid: 7, event: libc::PTRACE_EVENT_EXEC, signal: 5 });
    }

    #[test]
    fn memory_is_read_up_to_where_it_ends() {
        let here = [7u8; 32];
        let mut there = [0; 32];
        assert_eq!(read_memory(std::process::id() as i32, here.as_ptr() as u64, &mut there), 32);
        assert_eq!(here, there);
        assert_eq!(read_memory(std::process::id() as i32, 8, &mut there), 0);
    }
}
