//! Stops all threads of a process at once.

use crate::inproc::monitor::shared::peer;
use crate::inproc::monitor::sys;
use crate::tracee::{self, Stop, Waited};
use nix::errno::Errno;
use std::collections::HashSet;
use std::time::Duration;

/// Longest time that all threads of a process may take to stop. A thread that the kernel keeps waiting takes longer, and the
/// others would be kept waiting with it.
const STOPS: Duration = Duration::from_millis(150);
/// Number of times that the list of threads is read, at most, for threads made meanwhile.
const ROUNDS: usize = 64;
/// How many threads are told to stop before the first of them is waited for.
const AT_ONCE: usize = 16;
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
    /// When it was told to stop, ns.
    since: u64,
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
    /// Not a field that is read: until the last has gone on.
    _hurry: Hurry,
}

impl Drop for AllStopped {
    fn drop(&mut self) {
        self.release();
    }
}

impl AllStopped {
    /// Stops all threads of process `pid`. Each of them goes on exactly where it is: a signal on its way in is delivered
    /// before its thread stops.
    ///
    /// # Errors
    /// Where one of them can't be stopped: then none is.
    pub(crate) fn of(pid: i32) -> Result<Self, NotStopped> {
        let mut all = Self { threads: Vec::new(), _hurry: Hurry::new() };
        let mut seized = Seized::default();
        match all.stop(pid, &mut seized) {
            Ok(()) if all.threads.is_empty() => Err(NotStopped::Gone),
            Ok(()) => Ok(all),
            Err(why) => {
                // First: the others must not wait for those that are slow.
                drop(all);
                Err(why)
            }
        }
    }

    /// Has all threads go on. Returns for how long one of them was stopped at most, ns.
    pub(crate) fn let_go(mut self) -> u64 {
        self.release()
    }

    /// Has the threads go on in the order in which they were stopped. Returns the longest stop of one of them, ns.
    fn release(&mut self) -> u64 {
        let mut longest = 0;
        for thread in self.threads.drain(..) {
            let _ = tracee::detach(thread.tid, 0);
            longest = longest.max(sys::now().saturating_sub(thread.since));
        }
        longest
    }

    fn stop(&mut self, pid: i32, seized: &mut Seized) -> Result<(), NotStopped> {
        let (mut seen, mut deadline) = (HashSet::new(), None);
        for _ in 0..ROUNDS {
            // Attaching stops nobody, so that is done first.
            let mut new = Vec::new();
            for _ in 0..ROUNDS {
                let listed = peer::threads(pid).ok_or(NotStopped::Gone)?;
                let unseen: Vec<i32> = listed.into_iter().filter(|tid| seen.insert(*tid)).collect();
                if unseen.is_empty() {
                    break;
                }
                for tid in unseen {
                    if seize(tid)? {
                        seized.untold.insert(tid);
                        new.push(tid);
                    }
                }
            }
            if new.is_empty() {
                return Ok(());
            }
            let deadline = *deadline.get_or_insert_with(|| sys::now() + STOPS.as_nanos() as u64);
            for some in new.chunks(AT_ONCE) {
                self.stop_some(some, deadline, seized)?;
            }
        }
        Err(NotStopped::Busy(pid))
    }

    /// Stops threads that are attached to. Were we killed meanwhile, each that has stopped and is not yet as it was
    /// would see its call interrupted, so that these are few at a time.
    fn stop_some(&mut self, some: &[i32], deadline: u64, seized: &mut Seized) -> Result<(), NotStopped> {
        for tid in some {
            seized.tell(*tid);
        }
        for tid in some {
            let stopped = wait(*tid, deadline)?;
            let since = seized.forget(*tid);
            // One that was killed meanwhile has none.
            if let (Some(()), Ok(mut regs)) = (stopped, tracee::registers(*tid)) {
                undisturbed(*tid, &mut regs);
                self.threads.push(Stopped { tid: *tid, regs, since });
            }
        }
        Ok(())
    }
}

/// Threads that are attached to and have not been seen to stop.
#[derive(Default)]
struct Seized {
    /// Those that were not told to stop yet.
    untold: HashSet<i32>,
    /// Those that were, and when, ns.
    told: Vec<(i32, u64)>,
}

impl Seized {
    /// Tells a thread to stop.
    fn tell(&mut self, tid: i32) {
        let _ = tracee::interrupt(tid);
        self.untold.remove(&tid);
        self.told.push((tid, sys::now()));
    }

    /// Forgets a thread that has stopped or ended. Returns when it was told to, ns.
    fn forget(&mut self, tid: i32) -> u64 {
        let at = self.told.iter().position(|(told, _)| *told == tid);
        at.map_or_else(sys::now, |at| self.told.swap_remove(at).1)
    }
}

impl Drop for Seized {
    fn drop(&mut self) {
        // Each has to stop before it can be let go.
        for tid in std::mem::take(&mut self.untold) {
            self.tell(tid);
        }
        for (tid, _) in &self.told {
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

/// This thread runs before others while it lives, as far as the system allows it: threads that are stopped wait for it.
struct Hurry {
    /// Its niceness of before, if that could be changed.
    nice: Option<i32>,
}

impl Hurry {
    /// The least niceness.
    const FIRST: i32 = -20;

    fn new() -> Self {
        // SAFETY: these calls take plain numbers; 0 is this thread.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1u64, 0u64, 0u64, 0u64);
            // The call itself, other than the function, tells 20 - niceness.
            let told = libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0);
            let nice = (told > 0).then_some(20 - told as i32);
            let changed = libc::setpriority(libc::PRIO_PROCESS, 0, Self::FIRST) == 0;
            Self { nice: nice.filter(|_| changed) }
        }
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        // SAFETY: these calls take plain numbers; 0 is this thread, or the default.
        unsafe {
            if let Some(nice) = self.nice {
                libc::setpriority(libc::PRIO_PROCESS, 0, nice);
            }
            libc::prctl(libc::PR_SET_TIMERSLACK, 0u64, 0u64, 0u64, 0u64);
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

/// Attaches to a thread, which runs on; false for one that has ended, or is the kernel's own.
fn seize(tid: i32) -> Result<bool, NotStopped> {
    match tracee::seize(tid, 0) {
        Ok(()) => Ok(true),
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
        Ok(stopped) => {
            // It may have gone back to its call by itself.
            if let (Some(()), Ok(mut regs)) = (stopped, tracee::registers(tid)) {
                undisturbed(tid, &mut regs);
            }
            stopped
        }
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
