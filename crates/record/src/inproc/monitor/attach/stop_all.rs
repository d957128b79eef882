//! Stops all threads of a process at once.

use crate::inproc::monitor::shared::peer;
use crate::inproc::monitor::sys;
use crate::tracee::{self, Stop, Waited};
use nix::errno::Errno;
use std::collections::HashSet;
use std::time::Duration;

/// Longest time that all threads of a process may take to stop. If the kernel keeps one in a call for longer, the
/// others must not wait for it.
const STOPS: Duration = Duration::from_millis(150);
/// Number of times that the list of threads is read, at most, for threads made meanwhile.
const ROUNDS: usize = 64;
/// Number of threads that are asked to stop before the first of them is waited for.
const AT_ONCE: usize = 16;
/// PF_IO_WORKER and PF_USER_WORKER of include/linux/sched.h: kernel threads that never run the process's code.
const WORKERS: u64 = 0x10 | 0x4000;

/// The reason why a process could not be stopped. All of its threads run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotStopped {
    /// The process has ended.
    Gone,
    /// The kernel refuses to let us trace it.
    Denied(Errno),
    /// A signal has stopped it, as a shell's job control does.
    Halted,
    /// This thread did not stop in time, or is about to exec.
    Busy(i32),
}

/// Treatment of a process that a signal has stopped: none of its code runs until SIGCONT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfHalted {
    /// The process is not touched.
    Refuse,
    /// Its threads count as stopped. When they are let go, they stay stopped by the signal.
    Take,
}

/// A stopped thread.
pub(crate) struct Stopped {
    pub(crate) tid: i32,
    /// The thread's registers at the stop.
    pub(crate) regs: crate::tracee::Regs,
    /// Time at which the thread was asked to stop, ns.
    since: u64,
}

impl Stopped {
    /// Returns true if the thread was stopped in a system call: resumed, it restarts the call or returns from it.
    pub(crate) fn in_call(&self) -> bool {
        self.regs.orig_rax != u64::MAX
    }
}

/// All threads of a process, stopped until this value is dropped.
pub(crate) struct AllStopped {
    pub(crate) threads: Vec<Stopped>,
    /// High priority of the launcher, which lasts until the last of the threads is resumed.
    _hurry: Hurry,
}

impl Drop for AllStopped {
    fn drop(&mut self) {
        self.release();
    }
}

impl AllStopped {
    /// Stops all threads of process `pid`, each exactly where it is. A signal that is already on its way is delivered
    /// before its thread stops.
    ///
    /// # Errors
    /// If one of them can't be stopped. Then all run on.
    pub(crate) fn of(pid: i32, if_halted: IfHalted) -> Result<Self, NotStopped> {
        let mut all = Self { threads: Vec::new(), _hurry: Hurry::new() };
        let mut seized = Seized { if_halted, untold: HashSet::new(), told: Vec::new() };
        match all.stop(pid, &mut seized) {
            Ok(()) if all.threads.is_empty() => Err(NotStopped::Gone),
            Ok(()) => Ok(all),
            Err(why) => {
                // Resume these first: they must not wait for the slow ones.
                drop(all);
                Err(why)
            }
        }
    }

    /// Resumes all threads. Returns the longest time for which one of them was stopped, ns.
    pub(crate) fn let_go(mut self) -> u64 {
        self.release()
    }

    /// Resumes the threads in the order in which they were stopped. Returns the longest time for which one of them was
    /// stopped, ns.
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
            // Attaching stops no thread, so all are attached to first.
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

    /// Stops some threads that we are attached to. If we were killed now, calls of these threads would return EINTR, so
    /// `some` are few.
    fn stop_some(&mut self, some: &[i32], deadline: u64, seized: &mut Seized) -> Result<(), NotStopped> {
        for tid in some {
            seized.tell(*tid);
        }
        for tid in some {
            let stopped = wait(*tid, deadline, seized.if_halted)?;
            let since = seized.forget(*tid);
            // A thread that was killed meanwhile has no registers.
            if let (Some(()), Ok(mut regs)) = (stopped, tracee::registers(*tid)) {
                tracee::undisturbed(*tid, &mut regs);
                self.threads.push(Stopped { tid: *tid, regs, since });
            }
        }
        Ok(())
    }
}

/// Threads that we are attached to and have not seen stop.
struct Seized {
    if_halted: IfHalted,
    /// Threads that were not asked to stop yet.
    untold: HashSet<i32>,
    /// Threads that were asked to stop, and the time of that, ns.
    told: Vec<(i32, u64)>,
}

impl Seized {
    /// Asks a thread to stop.
    fn tell(&mut self, tid: i32) {
        let _ = tracee::interrupt(tid);
        self.untold.remove(&tid);
        self.told.push((tid, sys::now()));
    }

    /// Forgets a thread that has stopped or ended. Returns the time at which it was asked to stop, ns.
    fn forget(&mut self, tid: i32) -> u64 {
        let at = self.told.iter().position(|(told, _)| *told == tid);
        at.map_or_else(sys::now, |at| self.told.swap_remove(at).1)
    }
}

impl Drop for Seized {
    fn drop(&mut self) {
        // A thread can be let go only while it is stopped.
        for tid in std::mem::take(&mut self.untold) {
            self.tell(tid);
        }
        let deadline = sys::now() + STOPS.as_nanos() as u64;
        for (tid, _) in &self.told {
            if let Waited::Stop(stop) = tracee::wait_for_stop_by(*tid, deadline) {
                let_go(*tid, stop);
            } else {
                let _ = tracee::detach(*tid, 0);
                late::note(*tid);
            }
        }
    }
}

/// High priority of this thread until dropped, as far as the system allows: stopped threads wait for this thread.
struct Hurry {
    /// The niceness to restore, if it could be changed.
    nice: Option<i32>,
}

impl Hurry {
    /// The niceness that gets most processor time.
    const FIRST: i32 = -20;

    fn new() -> Self {
        // SAFETY: these calls take plain numbers; 0 is this thread.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1u64, 0u64, 0u64, 0u64);
            // The system call returns 20 - niceness, unlike the C function.
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

/// Lets a stopped thread go, as if nothing had stopped it.
fn let_go(tid: i32, stop: Stop) {
    if let Ok(mut regs) = tracee::registers(tid) {
        tracee::undisturbed(tid, &mut regs);
    }
    let _ = tracee::detach(tid, stop.signal_to_leave_with().unwrap_or(0));
}

/// Attaches to a thread without stopping it. Returns false if the thread has ended or is a kernel thread.
fn seize(tid: i32) -> Result<bool, NotStopped> {
    // The kernel would refuse to attach twice to a thread that has yet to stop.
    if late::take(tid) {
        return Ok(true);
    }
    match tracee::seize(tid, 0) {
        Ok(()) => Ok(true),
        Err(Errno::ESRCH) => Ok(false),
        Err(_) if runs_no_code(tid) => Ok(false),
        Err(errno) => Err(NotStopped::Denied(errno)),
    }
}

/// Waits until a thread that was asked to stop has done so. Returns `None` if it has ended.
fn wait(tid: i32, deadline: u64, if_halted: IfHalted) -> Result<Option<()>, NotStopped> {
    loop {
        match tracee::wait_for_stop_by(tid, deadline) {
            Waited::Stop(Stop::Signal { signal, .. }) => {
                // Deliver the signal first: the stop that we asked for follows.
                if tracee::resume(tid, signal).is_err() {
                    return Ok(None);
                }
            }
            Waited::Stop(stop) if stop.is_group_stop() && if_halted == IfHalted::Refuse => {
                return Err(NotStopped::Halted);
            }
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

/// Attaches to a thread and stops it. Returns `None` if it does not stop in time, or has ended.
pub(crate) fn stop(tid: i32) -> Option<()> {
    seize(tid).ok().filter(|attached| *attached)?;
    stop_again(tid)
}

/// Stops a running thread that we are attached to. Returns `None` if it does not stop in time, or has ended.
pub(crate) fn stop_again(tid: i32) -> Option<()> {
    tracee::interrupt(tid).ok()?;
    match wait(tid, sys::now() + STOPS.as_nanos() as u64, IfHalted::Take) {
        Ok(stopped) => {
            // The thread may have restarted its call by itself.
            if let (Some(()), Ok(mut regs)) = (stopped, tracee::registers(tid)) {
                tracee::undisturbed(tid, &mut regs);
            }
            stopped
        }
        Err(_) => {
            late::note(tid);
            None
        }
    }
}

/// Returns true if a thread has ended, or is a kernel thread that works for the process (io_uring).
fn runs_no_code(tid: i32) -> bool {
    let stat = crate::procfs::read(format!("/proc/{tid}/stat")).unwrap_or_default();
    let Some(end) = stat.iter().rposition(|b| *b == b')') else { return true };
    let rest = String::from_utf8_lossy(stat.get(end + 1..).unwrap_or_default()).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let ended = matches!(fields.next(), Some("Z" | "X"));
    // Flags are field 9 of proc(5), the sixth behind the state.
    let flags: u64 = fields.nth(5).and_then(|f| f.parse().ok()).unwrap_or(0);
    ended || flags & WORKERS != 0
}

/// Threads that did not stop in time after they were asked to: we are attached to them, they will stop, and must be let go
/// then.
pub(crate) mod late {
    use crate::tracee::{self, Waited};
    use std::cell::RefCell;

    thread_local! {
        /// One list for each thread: only the thread that attached to them can let them go.
        static LATE: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
    }

    /// Remembers a thread that has yet to stop.
    pub(crate) fn note(tid: i32) {
        LATE.with_borrow_mut(|late| late.push(tid));
    }

    /// Forgets a thread, which is attached to. Returns true if it was remembered.
    pub(crate) fn take(tid: i32) -> bool {
        LATE.with_borrow_mut(|late| late.iter().position(|t| *t == tid).map(|at| late.swap_remove(at)).is_some())
    }

    /// Lets go the threads that have stopped by now. Returns true if others remain.
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
