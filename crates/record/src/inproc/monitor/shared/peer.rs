//! What the launcher does to another process beyond reading and writing it: takes a descriptor of it
//! over, stops its threads. All by the kernel's own checks of who may do that to whom.

use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::sys;
use crate::tracee::{self, Waited};
use nix::errno::Errno;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;
use systoll_hooks::layout::{IMAGE, image, slot_index};

/// Of linux/kcmp.h.
const KCMP_FILE: libc::c_int = 0;
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
pub(crate) fn take_descriptor(pid: i32, fd: i32) -> Option<File> {
    let process = pidfd(pid)?;
    // SAFETY: a new descriptor is ours alone.
    unsafe {
        let ours = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0);
        (ours >= 0).then(|| File::from_raw_fd(ours as i32))
    }
}

/// Descriptor `fd` of process `pid` if it is a new file in memory. Another thread of the process may put
/// any file there meanwhile.
pub(crate) fn take_memory_file(pid: i32, fd: i32) -> Option<File> {
    let file = take_descriptor(pid, fd)?;
    if is_new_memory_file(&file) {
        return Some(file);
    }
    // To close a file of the process's choice may take as long as it likes (SO_LINGER, FUSE).
    let _ = std::thread::Builder::new().spawn(move || drop(file));
    None
}

/// Whether a file is one in memory that can be sealed, with nothing in it and no seals yet, in pages
/// that are there when they are wanted (huge ones may not be, and who touches them then is killed).
fn is_new_memory_file(file: &File) -> bool {
    // SAFETY: F_GET_SEALS takes nothing; other files than those in memory refuse it.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    // Asked of files in memory alone: what others answer is their makers'.
    seals == 0 && is_shmem(file) && file.metadata().is_ok_and(|m| m.is_file() && m.len() == 0)
}

fn is_shmem(file: &File) -> bool {
    fstatfs(file).is_ok_and(|about| about.filesystem_type() == TMPFS_MAGIC)
}

/// Whether a process has the image of this number mapped where all have theirs: by its own word, which
/// none but its own program's processes could write.
pub(crate) fn maps_image(pid: i32, id: ProgramId) -> bool {
    let mut word = [0; 8];
    let read = crate::sys::read_memory(pid, IMAGE + image::ID, &mut word);
    read == word.len() && u64::from_ne_bytes(word) == u64::from(id.0)
}

/// Whether two processes have all memory in common; `None` where the kernel does not tell.
pub(crate) fn same_memory(pid: i32, other: i32) -> Option<bool> {
    // SAFETY: kcmp only compares.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, pid, other, KCMP_VM, 0, 0) };
    match order {
        // One that has ended meanwhile has none.
        -1 => (Errno::last() == Errno::ESRCH).then_some(false),
        order => Some(order == 0),
    }
}

/// Whether descriptor `fd` of process `pid` is the file that was taken over from it: opened once, known to
/// both. The file itself is not asked: one that a stranger has put there may never answer.
pub(crate) fn same_file(own: &File, pid: i32, fd: i32) -> bool {
    // SAFETY: kcmp only compares.
    unsafe { libc::syscall(libc::SYS_kcmp, std::process::id(), pid, KCMP_FILE, own.as_raw_fd(), fd) == 0 }
}

/// Threads of a process that are stopped; they go on when this is dropped.
pub(crate) struct Stopped(Vec<Held>);

/// A thread that is stopped; it goes on when this is dropped.
pub(crate) struct Held {
    pub(crate) tid: i32,
    /// The signal it was stopped with, to be delivered when it goes on.
    signal: i32,
}

/// How long a thread may take to stop: one that the kernel keeps waiting does not.
const STOPS: Duration = Duration::from_secs(1);
/// How often a process is looked through for threads made meanwhile.
const ROUNDS: usize = 16;

impl Stopped {
    /// Stops all threads of process `pid` but `tid`; `None` where one can't be stopped, or is one of
    /// those that are held already (`is_held`).
    pub(crate) fn all_but(pid: i32, tid: i32, is_held: &mut dyn FnMut(i32) -> bool) -> Option<Self> {
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

impl Stopped {
    /// The slots they are in, by the gs base of each; `None` where that can't be had.
    pub(crate) fn slots(&self) -> Option<Vec<u64>> {
        let slot = |held: &Held| Some(slot_index(tracee::registers(held.tid).ok()?.gs_base));
        Some(self.0.iter().map(slot).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = tracee::detach(self.tid, self.signal);
    }
}

/// Threads of a process; `None` if it is gone.
pub(crate) fn threads(pid: i32) -> Option<Vec<i32>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Stops a thread; nothing is held of one that has ended.
///
/// # Errors
/// Where it can't be attached to, or does not stop.
pub(crate) fn stop(tid: i32) -> Result<Option<Held>, ()> {
    if tracee::seize(tid, tracee::EXECS).is_err() {
        return if sys::exists(tid) { Err(()) } else { Ok(None) };
    }
    let _ = tracee::interrupt(tid);
    match tracee::wait_for_stop_by(tid, sys::now() + STOPS.as_nanos() as u64) {
        Waited::Stop(stop) => Ok(stop.signal_to_leave_with().map(|signal| Held { tid, signal })),
        Waited::NoChildren => Ok(None),
        Waited::NothingYet | Waited::Interrupted => {
            // It has to stop before it can be let go.
            let _ = tracee::detach(tid, 0);
            Err(())
        }
    }
}
