//! What the launcher does to another process beyond reading and writing it: takes a descriptor of it
//! over, hands it some, stops its threads, has it make a call. All by the kernel's own checks of who
//! may do that to whom.

use super::sys::{self, Stop};
use nix::errno::Errno;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Of linux/kcmp.h.
const KCMP_VM: libc::c_int = 1;

fn pidfd(pid: i32) -> Option<OwnedFd> {
    // SAFETY: a new descriptor is ours alone.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Descriptor `fd` of process `pid`, taken over as it is: with the rights that the process has to it
/// (pidfd_getfd(2), Linux 5.6).
pub(super) fn take_descriptor(pid: i32, fd: i32) -> Option<File> {
    let process = pidfd(pid)?;
    // SAFETY: a new descriptor is ours alone.
    unsafe {
        let ours = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0);
        (ours >= 0).then(|| File::from_raw_fd(ours as i32))
    }
}

/// Whether a file is one in memory that can be sealed, with nothing in it and no seals yet.
pub(super) fn is_new_memory_file(file: &File) -> bool {
    // SAFETY: F_GET_SEALS takes nothing; other files than those in memory refuse it.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals == 0 && file.metadata().is_ok_and(|m| m.is_file() && m.len() == 0)
}

/// Whether two processes have all memory in common; `None` where the kernel does not tell.
pub(super) fn same_memory(pid: i32, other: i32) -> Option<bool> {
    // SAFETY: kcmp only compares.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, pid, other, KCMP_VM, 0, 0) };
    match order {
        // One that has ended meanwhile has none.
        -1 => (Errno::last() == Errno::ESRCH).then_some(false),
        order => Some(order == 0),
    }
}

/// Threads of a process that are stopped; they go on when this is dropped.
pub(super) struct Stopped(Vec<Held>);

struct Held {
    tid: i32,
    /// The signal it was stopped with, to be delivered when it goes on.
    signal: i32,
}

/// How long a thread may take to stop: one that the kernel keeps waiting does not.
const STOPS: Duration = Duration::from_millis(200);
/// How often a process is looked through for threads made meanwhile.
const ROUNDS: usize = 16;

impl Stopped {
    /// Stops all threads of process `pid` but `tid`; `None` where one can't be stopped, or is one of
    /// those that are held already (`is_held`).
    pub(super) fn all_but(pid: i32, tid: i32, is_held: &mut dyn FnMut(i32) -> bool) -> Option<Self> {
        let mut stopped = Self(Vec::new());
        for _ in 0..ROUNDS {
            let known = |other: &i32| *other == tid || stopped.0.iter().any(|held| held.tid == *other);
            let new: Vec<i32> = threads(pid)?.into_iter().filter(|other| !known(other)).collect();
            if new.is_empty() {
                return Some(stopped);
            }
            for other in new {
                if is_held(other) {
                    return None;
                }
                match stop(other) {
                    Ok(held) => stopped.0.extend(held),
                    Err(()) => return None,
                }
            }
        }
        None
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for held in &self.0 {
            let _ = sys::detach(held.tid, held.signal);
        }
    }
}

fn threads(pid: i32) -> Option<Vec<i32>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Stops a thread; nothing is held of one that has ended.
fn stop(tid: i32) -> Result<Option<Held>, ()> {
    if sys::seize(tid).is_err() {
        return if sys::exists(tid) { Err(()) } else { Ok(None) };
    }
    let _ = sys::interrupt(tid);
    let deadline = sys::now() + STOPS.as_nanos() as u64;
    while sys::now() < deadline {
        let signal = match sys::wait(Some(tid), false) {
            Ok(None) | Err(Errno::EINTR) => {
                std::thread::yield_now();
                continue;
            }
            Ok(Some(Stop::Signal { signal, .. })) => signal,
            Ok(Some(Stop::Event { event: libc::PTRACE_EVENT_STOP, signal, .. })) if signal != libc::SIGTRAP => {
                libc::SIGSTOP
            }
            Ok(Some(Stop::Event { .. })) => 0,
            Ok(Some(Stop::Exited { .. } | Stop::Killed { .. })) | Err(_) => return Ok(None),
        };
        return Ok(Some(Held { tid, signal }));
    }
    // It has to stop before it can be let go.
    let _ = sys::detach(tid, 0);
    Err(())
}
