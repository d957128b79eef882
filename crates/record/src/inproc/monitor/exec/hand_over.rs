//! Hands files to a process that may not open them: at its exec stop, the process is made to execute system calls
//! before the first instruction of its program.

use crate::inproc::monitor::shared::peer::take_descriptor;
use crate::inproc::monitor::shared::remote::Mem;
use crate::tracee;
use nix::errno::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;

/// A process at its exec stop, which is made to execute system calls for us.
pub(crate) struct AtExec<'a> {
    pid: i32,
    mem: &'a Mem,
    /// Address of unused bytes of the process's code, for a `syscall` instruction.
    at: u64,
    regs: crate::tracee::Regs,
    mask: u64,
}

const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Bytes below a new program's stack that are used for a moment.
const SCRATCH: u64 = 512;

/// Offsets in a scratch area of what `recvmsg` needs: struct msghdr, struct iovec, a byte of data, and room for control
/// messages.
pub(crate) const MESSAGE: u64 = 64;
pub(crate) const VECTOR: u64 = 128;
pub(crate) const DATA: u64 = 152;
pub(crate) const CONTROL: u64 = 192;

/// Bytes of a control message's header, and of a message with two descriptors (cmsg(3)).
pub(crate) const CONTROL_HEADER: usize = 16;
pub(crate) const CONTROL_SIZE: usize = CONTROL_HEADER + 8;

/// Returns a struct msghdr without a name, with one vector and room for two descriptors.
pub(crate) fn message(vector: u64, control: u64) -> [u64; 7] {
    [0, 0, vector, 1, control, CONTROL_SIZE as u64, 0]
}

impl<'a> AtExec<'a> {
    /// Prepares the process, which has these registers, to make calls; the bytes at `at` are free for code.
    ///
    /// # Errors
    /// The kernel's error, as text.
    fn new(pid: i32, mem: &'a Mem, at: u64, regs: crate::tracee::Regs) -> Result<Self, String> {
        let mask = tracee::signal_mask(pid).map_err(|e| e.desc().to_owned())?;
        // Block all signals: no handler may run meanwhile, and none exists yet, so signals stay pending.
        tracee::set_signal_mask(pid, u64::MAX).map_err(|e| e.desc().to_owned())?;
        mem.write(at, &SYSCALL).map_err(|e| format!("its code can't be written: {e}"))?;
        Ok(Self { pid, mem, at, regs, mask })
    }

    /// Makes the process execute a call. Returns its result.
    fn call(&self, number: i64, args: [u64; 6]) -> Result<u64, String> {
        let made = tracee::make_call(self.pid, self.at, &self.regs, (number, args))?;
        let error = Some(-(made as i64)).filter(|error| *error > 0).map(|error| Errno::from_raw(error as i32));
        error.map_or(Ok(made), |error| Err(error.desc().to_owned()))
    }
}

impl Drop for AtExec<'_> {
    fn drop(&mut self) {
        let _ = self.mem.write(self.at, &[0; SYSCALL.len()]);
        let _ = tracee::set_registers(self.pid, &self.regs);
        let _ = tracee::set_signal_mask(self.pid, self.mask);
    }
}

/// Hands `files` to a process at its exec stop, which could not open them by itself, over a socket pair that is closed
/// afterwards. Returns the process's descriptors. `at` is the address of unused bytes of its code.
///
/// # Errors
/// A text, if the process does not get the files.
pub(crate) fn hand_over(
    files: &[File; 2],
    pid: i32,
    (mem, at): (&Mem, u64),
    regs: crate::tracee::Regs,
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
    /// Reads two numbers at an address of the process's memory.
    fn halves(&self, at: u64) -> Result<[i32; 2], String> {
        let mut bytes = [0; 8];
        self.mem.read(at, &mut bytes).map_err(|e| e.to_string())?;
        let word = u64::from_le_bytes(bytes);
        Ok([word as i32, (word >> 32) as i32])
    }

    /// Makes the process receive two descriptors over its socket `fd`.
    fn receive(&self, fd: i32, scratch: u64) -> Result<[i32; 2], String> {
        let message = message(scratch + VECTOR, scratch + CONTROL);
        // A struct iovec for one byte.
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
///
/// # Errors
/// The kernel's error.
pub(crate) fn send(socket: &File, files: &[File; 2]) -> std::io::Result<()> {
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
