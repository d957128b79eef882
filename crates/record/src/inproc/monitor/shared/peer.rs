//! What the launcher does to another process beyond reading and writing it: takes a descriptor of it
//! over, hands it some, stops its threads, has it make a call. All by the kernel's own checks of who
//! may do that to whom.

use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::shared::remote::Mem;
use crate::inproc::monitor::sys::{self, Stop};
use nix::errno::Errno;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;
use systoll_hooks::layout::{IMAGE, image, slot_index};

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
    // SAFETY: fstatfs fills the struct, for which zeroes are valid.
    unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        libc::fstatfs(file.as_raw_fd(), &mut about) == 0 && about.f_type == libc::TMPFS_MAGIC
    }
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

/// Threads of a process that are stopped; they go on when this is dropped.
pub(crate) struct Stopped(Vec<Held>);

struct Held {
    tid: i32,
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
        let slot = |held: &Held| Some(slot_index(sys::registers(held.tid).ok()?.gs_base));
        Some(self.0.iter().map(slot).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
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
        let signal = match sys::wait_for_stop(tid, false) {
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

/// A process at its exec stop, which makes calls before it has run an instruction of its program.
pub(crate) struct AtExec<'a> {
    pid: i32,
    mem: &'a Mem,
    /// Where unused bytes of its code lie, for the one instruction that this takes.
    at: u64,
    regs: libc::user_regs_struct,
    mask: u64,
}

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Bytes below a new program's stack that are used for a moment.
const SCRATCH: u64 = 512;
/// Offsets in them: struct msghdr, struct iovec, a byte of data, and room for control messages.
const MESSAGE: u64 = 64;
const VECTOR: u64 = 128;
const DATA: u64 = 152;
const CONTROL: u64 = 192;
/// Bytes of a control message's header, and of one with two descriptors (cmsg(3)).
const CONTROL_HEADER: usize = 16;
const CONTROL_SIZE: usize = CONTROL_HEADER + 8;

impl<'a> AtExec<'a> {
    /// The process with these registers, with `at` free for code.
    ///
    /// # Errors
    /// The kernel's, in words.
    fn new(pid: i32, mem: &'a Mem, at: u64, regs: libc::user_regs_struct) -> Result<Self, String> {
        let mask = sys::signal_mask(pid).map_err(|e| e.desc().to_owned())?;
        // No handler may run in between, and none is there yet: what comes stays pending.
        sys::set_signal_mask(pid, u64::MAX).map_err(|e| e.desc().to_owned())?;
        mem.write(at, &SYSCALL).map_err(|e| format!("its code can't be written: {e}"))?;
        Ok(Self { pid, mem, at, regs, mask })
    }

    /// Has the process make a call; its result.
    fn call(&self, number: i64, args: [u64; 6]) -> Result<u64, String> {
        /// The end of the `execve` is a step as well.
        const STEPS: usize = 4;
        let words = |e: Errno| e.desc().to_owned();
        let [rdi, rsi, rdx, r10, r8, r9] = args;
        let (rax, orig_rax) = (number as u64, u64::MAX);
        let regs = libc::user_regs_struct { rip: self.at, rax, orig_rax, rdi, rsi, rdx, r10, r8, r9, ..self.regs };
        for _ in 0..STEPS {
            // Each time: an `execve` that ends writes its result into rax.
            sys::set_registers(self.pid, &regs).map_err(words)?;
            sys::step(self.pid).map_err(words)?;
            match sys::wait_for_stop(self.pid, true) {
                Ok(Some(Stop::Exited { .. } | Stop::Killed { .. })) | Err(Errno::ECHILD) => {
                    return Err("it has ended".into());
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(e) => return Err(words(e)),
            }
            let now = sys::registers(self.pid).map_err(words)?;
            if now.rip != self.at {
                let failed = (now.rax as i64) < 0;
                return if failed { Err(words(Errno::from_raw(-(now.rax as i64) as i32))) } else { Ok(now.rax) };
            }
        }
        Err("it makes no calls for us".into())
    }
}

impl Drop for AtExec<'_> {
    fn drop(&mut self) {
        let _ = self.mem.write(self.at, &[0; SYSCALL.len()]);
        let _ = sys::set_registers(self.pid, &self.regs);
        let _ = sys::set_signal_mask(self.pid, self.mask);
    }
}

/// Hands `files` to a process at its exec stop, which could not open them by itself, over a pair of
/// sockets that is gone afterwards; its descriptors of them. `at`: unused bytes of its code.
///
/// # Errors
/// In words.
pub(crate) fn hand_over(
    files: &[File; 2],
    pid: i32,
    (mem, at): (&Mem, u64),
    regs: libc::user_regs_struct,
) -> Result<[i32; 2], String> {
    let process = AtExec::new(pid, mem, at, regs)?;
    let scratch = (regs.rsp - SCRATCH) & !63;
    let mut was = [0; SCRATCH as usize];
    let words = |e: std::io::Error| format!("its stack can't be used: {e}");
    mem.read(scratch, &mut was).map_err(words)?;
    let handed = over_sockets(&process, files, scratch);
    mem.write(scratch, &was).map_err(words)?;
    handed
}

fn over_sockets(process: &AtExec<'_>, files: &[File; 2], scratch: u64) -> Result<[i32; 2], String> {
    let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
    process.call(libc::SYS_socketpair, [libc::AF_UNIX as u64, kind, 0, scratch, 0, 0])?;
    let [theirs, ours] = process.halves(scratch)?;
    let received =
        take_descriptor(process.pid, ours).ok_or_else(|| "its socket can't be had".to_owned()).and_then(|socket| {
            send(&socket, files).map_err(|e| format!("it can't be handed a file: {e}"))?;
            process.receive(theirs, scratch)
        });
    for fd in [theirs, ours] {
        process.call(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0])?;
    }
    received
}

impl AtExec<'_> {
    /// Two numbers that its memory holds at an address.
    fn halves(&self, at: u64) -> Result<[i32; 2], String> {
        let mut bytes = [0; 8];
        self.mem.read(at, &mut bytes).map_err(|e| e.to_string())?;
        let word = u64::from_le_bytes(bytes);
        Ok([word as i32, (word >> 32) as i32])
    }

    /// Has it receive what was sent over its socket `fd`: two descriptors.
    fn receive(&self, fd: i32, scratch: u64) -> Result<[i32; 2], String> {
        // struct msghdr: no name, one vector, control messages; struct iovec: one byte.
        let message = [0, 0, scratch + VECTOR, 1, scratch + CONTROL, CONTROL_SIZE as u64, 0];
        let vector = [scratch + DATA, 1];
        for (at, words) in [(MESSAGE, &message[..]), (VECTOR, &vector[..])] {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            self.mem.write(scratch + at, &bytes).map_err(|e| e.to_string())?;
        }
        let flags = (libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT) as u64;
        self.call(libc::SYS_recvmsg, [fd as u64, scratch + MESSAGE, flags, 0, 0, 0])?;
        let mut len = [0; 8];
        self.mem.read(scratch + CONTROL, &mut len).map_err(|e| e.to_string())?;
        if u64::from_le_bytes(len) < CONTROL_SIZE as u64 {
            return Err("it may not have so many descriptors".into());
        }
        self.halves(scratch + CONTROL + CONTROL_HEADER as u64)
    }
}

/// Sends two descriptors over a socket (unix(7), SCM_RIGHTS).
fn send(socket: &File, files: &[File; 2]) -> std::io::Result<()> {
    let mut control = [0u64; CONTROL_SIZE / 8];
    let fds = files.each_ref().map(|file| file.as_raw_fd() as u32);
    control[0] = CONTROL_SIZE as u64;
    control[1] = libc::SOL_SOCKET as u64 | (libc::SCM_RIGHTS as u64) << 32;
    control[2] = u64::from(fds[0]) | u64::from(fds[1]) << 32;
    let mut byte = 0u8;
    let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: zeroes are a valid msghdr; what it points to outlives the call, which only reads it.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut vector, 1);
        (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), CONTROL_SIZE as _);
        libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
    if sent == 1 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
