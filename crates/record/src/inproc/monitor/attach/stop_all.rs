//! Stops all threads of a process at once.

use crate::inproc::monitor::shared::peer;
use crate::inproc::monitor::sys;
use crate::tracee::{self, Stop, Waited};
use nix::errno::Errno;
use std::time::Duration;

/// Longest time that all threads of a process may take to stop. A thread that the kernel keeps waiting takes longer, and the
/// others would be kept waiting with it.
const STOPS: Duration = Duration::from_millis(150);
/// Number of times that the list of threads is read, at most, for threads made meanwhile.
const ROUNDS: usize = 64;
/// PF_IO_WORKER and PF_USER_WORKER of include/linux/sched.h: threads of the kernel's that never run the process's code.
const WORKERS: u64 = 0x10 | 0x4000;

/// Why a process could not be stopped. All of its threads run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotStopped {
    /// It has ended.
    Gone,
    /// The kernel does not let us.
    Denied(Errno),
    /// It is stopped by a signal, as a job of a shell.
    Halted,
    /// This thread did not stop in time, or is on its way to be another program.
    Busy(i32),
}

/// A thread that is stopped.
pub(crate) struct Stopped {
    pub(crate) tid: i32,
    /// As they were when it stopped.
    pub(crate) regs: libc::user_regs_struct,
}

impl Stopped {
    /// Returns true if the thread was stopped in a system call: resumed, it restarts the call or returns from it.
    pub(crate) fn in_call(&self) -> bool {
        self.regs.orig_rax != u64::MAX
    }
}

/// All threads of a process, stopped. They go on when this is dropped.
pub(crate) struct AllStopped {
    pub(crate) threads: Vec<Stopped>,
    /// When the first of them was told to stop, ns.
    pub(crate) since: u64,
}

impl Drop for AllStopped {
    fn drop(&mut self) {
        for thread in &self.threads {
            let _ = tracee::detach(thread.tid, 0);
        }
    }
}

impl AllStopped {
    /// Stops all threads of process `pid`. Each of them goes on exactly where it is: a signal on its way in is delivered
    /// before its thread stops.
    ///
    /// # Errors
    /// Where one of them can't be stopped: then none is.
    pub(crate) fn of(pid: i32) -> Result<Self, NotStopped> {
        let since = sys::now();
        let (mut all, mut told) = (Self { threads: Vec::new(), since }, Told(Vec::new()));
        match all.stop(pid, since + STOPS.as_nanos() as u64, &mut told) {
            Ok(()) if all.threads.is_empty() => Err(NotStopped::Gone),
            Ok(()) => Ok(all),
            Err(why) => {
                // First: the others must not wait for those that are slow.
                drop(all);
                Err(why)
            }
        }
    }

    fn stop(&mut self, pid: i32, deadline: u64, told: &mut Told) -> Result<(), NotStopped> {
        let mut seen: Vec<i32> = Vec::new();
        for _ in 0..ROUNDS {
            let listed = peer::threads(pid).ok_or(NotStopped::Gone)?;
            let new: Vec<i32> = listed.into_iter().filter(|tid| !seen.contains(tid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            seen.extend(&new);
            for tid in new {
                if tell(tid)? {
                    told.0.push(tid);
                }
            }
            while let Some(tid) = told.0.last().copied() {
                let stopped = wait(tid, deadline)?;
                told.0.pop();
                // One that was killed meanwhile has none.
                if let (Some(()), Ok(mut regs)) = (stopped, tracee::registers(tid)) {
                    undisturbed(tid, &mut regs);
                    self.threads.push(Stopped { tid, regs });
                }
            }
        }
        Err(NotStopped::Busy(pid))
    }
}

/// Threads that were told to stop and have not been seen to.
struct Told(Vec<i32>);

impl Drop for Told {
    fn drop(&mut self) {
        // Each has to stop before it can be let go.
        for tid in &self.0 {
            let deadline = sys::now() + STOPS.as_nanos() as u64;
            if let Waited::Stop(stop) = tracee::wait_for_stop_by(*tid, deadline) {
                let_go(*tid, stop);
            } else {
                let _ = tracee::detach(*tid, 0);
                late::note(*tid);
            }
        }
    }
}

/// Calls that the kernel does not make again by itself when their thread was stopped (signal(7)): they would fail
/// with EINTR, which a program sees that nobody has sent a signal to.
const NOT_MADE_AGAIN: [i64; 13] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_msgrcv,
];

/// Has a thread that was stopped in such a call make it again, unless a handler runs first (ERESTARTNOHAND of
/// include/linux/errno.h).
fn undisturbed(tid: i32, regs: &mut libc::user_regs_struct) {
    const INTERRUPTED: i64 = -(libc::EINTR as i64);
    const RESTART_UNLESS_HANDLED: i64 = -514;
    if regs.rax as i64 == INTERRUPTED && NOT_MADE_AGAIN.contains(&(regs.orig_rax as i64)) {
        let again = libc::user_regs_struct { rax: RESTART_UNLESS_HANDLED as u64, ..*regs };
        if tracee::set_registers(tid, &again).is_ok() {
            *regs = again;
        }
    }
}

/// Lets a thread go that has stopped, as if nothing had stopped it.
fn let_go(tid: i32, stop: Stop) {
    if let Ok(mut regs) = tracee::registers(tid) {
        undisturbed(tid, &mut regs);
    }
    let _ = tracee::detach(tid, stop.signal_to_leave_with().unwrap_or(0));
}

/// Attaches to a thread and tells it to stop; false for one that has ended, or is the kernel's own.
fn tell(tid: i32) -> Result<bool, NotStopped> {
    match tracee::seize(tid, 0) {
        Ok(()) => {
            let _ = tracee::interrupt(tid);
            Ok(true)
        }
        Err(Errno::ESRCH) => Ok(false),
        Err(_) if runs_no_code(tid) => Ok(false),
        Err(errno) => Err(NotStopped::Denied(errno)),
    }
}

/// Waits for a thread that was told to stop. `None`: it has ended.
fn wait(tid: i32, deadline: u64) -> Result<Option<()>, NotStopped> {
    loop {
        match tracee::wait_for_stop_by(tid, deadline) {
            Waited::Stop(Stop::Signal { signal, .. }) => {
                // Delivered first, with all that belongs to it: the stop that was asked for comes right behind.
                if tracee::resume(tid, signal).is_err() {
                    return Ok(None);
                }
            }
            Waited::Stop(stop) if stop.is_group_stop() => return Err(NotStopped::Halted),
            Waited::Stop(Stop::Event { event: libc::PTRACE_EVENT_STOP, .. }) => return Ok(Some(())),
            Waited::Stop(Stop::Exited { .. } | Stop::Killed { .. }) => return Ok(None),
            Waited::Stop(_) => return Err(NotStopped::Busy(tid)),
            Waited::NoChildren => {
                let _ = tracee::wait_for(tid, false);
                return Ok(None);
            }
            Waited::NothingYet | Waited::Interrupted => return Err(NotStopped::Busy(tid)),
        }
    }
}

/// Stops a thread that is attached to and runs. `None` where it does not stop, or has ended.
pub(crate) fn stop_again(tid: i32) -> Option<()> {
    tracee::interrupt(tid).ok()?;
    match wait(tid, sys::now() + STOPS.as_nanos() as u64) {
        Ok(stopped) => stopped,
        Err(_) => {
            late::note(tid);
            None
        }
    }
}

/// Returns true if a thread has ended, or is one of the kernel's that work for the process (io_uring).
fn runs_no_code(tid: i32) -> bool {
    let stat = crate::procfs::read(format!("/proc/{tid}/stat")).unwrap_or_default();
    let Some(end) = stat.iter().rposition(|b| *b == b')') else { return true };
    let rest = String::from_utf8_lossy(stat.get(end + 1..).unwrap_or_default()).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let ended = matches!(fields.next(), Some("Z" | "X"));
    // Fields 3 and 9 of proc(5).
    let flags: u64 = fields.nth(5).and_then(|f| f.parse().ok()).unwrap_or(0);
    ended || flags & WORKERS != 0
}

/// Threads that were told to stop and did not in time: they stop sooner or later, and have to be let go then.
pub(crate) mod late {
    use crate::tracee::{self, Waited};
    use std::cell::RefCell;

    thread_local! {
        /// Who traces is a thread.
        static LATE: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
    }

    /// Remembers a thread that has yet to stop.
    pub(crate) fn note(tid: i32) {
        LATE.with_borrow_mut(|late| late.push(tid));
    }

    /// Lets those go that have stopped by now. Returns whether there are more.
    pub(crate) fn let_go() -> bool {
        LATE.with_borrow_mut(|late| {
            late.retain(|tid| match tracee::wait_for_stop(*tid, false) {
                Waited::Stop(stop) => {
                    super::let_go(*tid, stop);
                    false
                }
                Waited::NoChildren => {
                    let _ = tracee::wait_for(*tid, false);
                    false
                }
                Waited::NothingYet | Waited::Interrupted => true,
            });
            !late.is_empty()
        })
    }
}
