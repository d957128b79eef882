//! Acts on another process other than by reading and writing its memory: takes over a descriptor, stops its threads.
//! The kernel checks that we may.

use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::sys;
use crate::tracee::{self, Waited};
use nix::errno::Errno;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;
use systoll_hooks::layout::{IMAGE, image, slot_index};

/// Constants of linux/kcmp.h.
const KCMP_FILE: libc::c_int = 0;
const KCMP_VM: libc::c_int = 1;

fn pidfd(pid: i32) -> Option<OwnedFd> {
    // SAFETY: a new descriptor is ours alone.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Takes over descriptor `fd` of process `pid`, with the rights that the process has to it (pidfd_getfd(2), Linux 5.6).
pub(crate) fn take_descriptor(pid: i32, fd: i32) -> Option<File> {
    let process = pidfd(pid)?;
    // SAFETY: a new descriptor is ours alone.
    unsafe {
        let ours = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0);
        (ours >= 0).then(|| File::from_raw_fd(ours as i32))
    }
}

/// Takes over descriptor `fd` of process `pid` if it is a new file in memory. Another thread of the process may put any
/// file there meanwhile.
pub(crate) fn take_memory_file(pid: i32, fd: i32) -> Option<File> {
    let file = take_descriptor(pid, fd)?;
    if is_new_memory_file(&file) {
        return Some(file);
    }
    // Closing a file of the process's choice may take as long as it likes (SO_LINGER, FUSE).
    let _ = std::thread::Builder::new().spawn(move || drop(file));
    None
}

/// Returns true if a file lives in memory, is empty, can be sealed and has no seals yet, and has ordinary pages: huge
/// ones may be unavailable, and touching one then kills the process.
fn is_new_memory_file(file: &File) -> bool {
    // Ask only files in memory for their metadata: other file systems may answer anything, or never.
    sys::seals(file).is_some_and(|seals| seals.is_empty())
        && is_shmem(file)
        && file.metadata().is_ok_and(|m| m.is_file() && m.len() == 0)
}

fn is_shmem(file: &File) -> bool {
    fstatfs(file).is_ok_and(|about| about.filesystem_type() == TMPFS_MAGIC)
}

/// Returns true if a process has this image mapped at the usual address. A word in the image tells, which only
/// processes of its own program could write.
pub(crate) fn maps_image(pid: i32, id: ProgramId) -> bool {
    let mut word = [0; 8];
    let read = crate::sys::read_memory(pid, IMAGE + image::ID, &mut word);
    read == word.len() && u64::from_ne_bytes(word) == u64::from(id.0)
}

/// Returns true if two processes share all memory; `None` if the kernel does not tell.
pub(crate) fn same_memory(pid: i32, other: i32) -> Option<bool> {
    // SAFETY: kcmp only compares.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, pid, other, KCMP_VM, 0, 0) };
    match order {
        // A process that has ended meanwhile shares no memory.
        -1 => (Errno::last() == Errno::ESRCH).then_some(false),
        order => Some(order == 0),
    }
}

/// Returns true if descriptor `fd` of process `pid` is the open file `own`, which was taken over from it. The kernel
/// compares them; the file itself is not asked, as one that a stranger has put there may never answer.
pub(crate) fn same_file(own: &File, pid: i32, fd: i32) -> bool {
    // SAFETY: kcmp only compares.
    unsafe { libc::syscall(libc::SYS_kcmp, std::process::id(), pid, KCMP_FILE, own.as_raw_fd(), fd) == 0 }
}

/// Stopped threads of a process, resumed when dropped.
pub(crate) struct Stopped(Vec<Held>);

/// A stopped thread, resumed when dropped.
pub(crate) struct Held {
    pub(crate) tid: i32,
    /// Signal with which to detach, see [`tracee::Stop::signal_to_leave_with`].
    signal: i32,
}

/// Time that a thread may take to stop. One in an uninterruptible wait takes longer.
const STOPS: Duration = Duration::from_secs(1);
/// Number of times that the list of threads is read, at most, for threads made meanwhile.
const ROUNDS: usize = 16;

impl Stopped {
    /// Stops all threads of process `pid` but `tid`. Returns `None` if one can't be stopped, or if we hold it already
    /// (`is_held`).
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
    /// Returns the slots of the threads, by their gs bases; `None` if one can't be read.
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

/// Returns the threads of a process; `None` if it is gone.
pub(crate) fn threads(pid: i32) -> Option<Vec<i32>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Stops a thread. Returns `None` if it has ended.
///
/// # Errors
/// If it can't be attached to, or does not stop.
pub(crate) fn stop(tid: i32) -> Result<Option<Held>, ()> {
    if tracee::seize(tid, tracee::EXECS).is_err() {
        return if sys::exists(tid) { Err(()) } else { Ok(None) };
    }
    let _ = tracee::interrupt(tid);
    match tracee::wait_for_stop_by(tid, sys::now() + STOPS.as_nanos() as u64) {
        Waited::Stop(stop) => Ok(stop.signal_to_leave_with().map(|signal| Held { tid, signal })),
        Waited::NoChildren => Ok(None),
        Waited::NothingYet | Waited::Interrupted => {
            // The thread must stop before we can detach.
            let _ = tracee::detach(tid, 0);
            Err(())
        }
    }
}
