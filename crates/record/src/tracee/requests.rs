//! Requests to traced threads.

use libc::c_void;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use systoll_model::{Machine, Sysno};

/// Options for stops at execs only. PTRACE_O_EXITKILL is not among them: a target outlives us.
pub(crate) const EXECS: i32 = libc::PTRACE_O_TRACEEXEC;
/// Options for stops at execs, system calls, new threads and processes, and their ends.
pub(crate) const ALL: i32 = EXECS
    | libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXIT;

/// Makes a ptrace request that touches no memory of ours.
fn request(request: libc::c_uint, tid: i32, data: usize) -> Result<(), Errno> {
    // SAFETY: used only with requests that take `data` as a plain number.
    let result = unsafe { libc::ptrace(request, tid, std::ptr::null_mut::<c_void>(), data as *mut c_void) };
    if result == -1 { Err(Errno::last()) } else { Ok(()) }
}

/// Attaches to a thread without stopping it; `stops` are [`EXECS`] or [`ALL`].
pub(crate) fn seize(tid: i32, stops: i32) -> Result<(), Errno> {
    request(libc::PTRACE_SEIZE, tid, stops as usize)
}

/// Asks a thread to stop.
pub(crate) fn interrupt(tid: i32) -> Result<(), Errno> {
    request(libc::PTRACE_INTERRUPT, tid, 0)
}

/// Resumes a thread; delivers `signal` if it is not 0.
pub(crate) fn resume(tid: i32, signal: i32) -> Result<(), Errno> {
    request(libc::PTRACE_CONT, tid, signal as usize)
}

/// Resumes a thread up to its next system call stop; delivers `signal` if it is not 0.
pub(crate) fn resume_to_call(tid: i32, signal: i32) -> Result<(), Errno> {
    request(libc::PTRACE_SYSCALL, tid, signal as usize)
}

/// Leaves a group-stopped thread stopped, and waits for the end of that stop.
pub(crate) fn listen(tid: i32) -> Result<(), Errno> {
    request(libc::PTRACE_LISTEN, tid, 0)
}

/// Detaches from a stopped thread, which runs on; delivers `signal` if it is not 0.
pub(crate) fn detach(tid: i32, signal: i32) -> Result<(), Errno> {
    request(libc::PTRACE_DETACH, tid, signal as usize)
}

/// Makes a thread execute one instruction.
pub(crate) fn step(tid: i32) -> Result<(), Errno> {
    request(libc::PTRACE_SINGLESTEP, tid, 0)
}

/// Returns the number that comes with an event stop, such as a child's id.
pub(crate) fn event_message(tid: i32) -> Option<i32> {
    ptrace::getevent(Pid::from_raw(tid)).ok().map(|message| message as i32)
}

/// Request numbers of linux/ptrace.h.
const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;

/// Returns the signals that a stopped thread blocks.
pub(crate) fn signal_mask(tid: i32) -> Result<u64, Errno> {
    let mut mask = 0u64;
    // SAFETY: writes as many bytes as said, for which `mask` has room.
    let result = unsafe { libc::ptrace(PTRACE_GETSIGMASK, tid, size_of::<u64>(), &raw mut mask) };
    if result == -1 { Err(Errno::last()) } else { Ok(mask) }
}

/// Makes a stopped thread block exactly these signals.
pub(crate) fn set_signal_mask(tid: i32, mask: u64) -> Result<(), Errno> {
    // SAFETY: reads as many bytes as said.
    let result = unsafe { libc::ptrace(PTRACE_SETSIGMASK, tid, size_of::<u64>(), &raw const mask) };
    if result == -1 { Err(Errno::last()) } else { Ok(()) }
}

/// The instruction and stack pointers of a stopped thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
}

/// The call at whose entry or exit a thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The call and its arguments have the form of x86-64 on every machine (see [`Machine`]).
    Entry {
        syscall: Sysno,
        args: [u64; 6],
        at: At,
    },
    Exit {
        result: i64,
    },
    Neither,
}

/// Returns the call of a system call stop, by PTRACE_GET_SYSCALL_INFO (Linux 5.3).
pub(crate) fn call(tid: i32) -> Result<Call, Errno> {
    const SIZE: usize = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: a zeroed ptrace_syscall_info is valid, and the kernel is told its size. We read the union member that
    // the kernel filled according to `op`.
    unsafe {
        let mut info: libc::ptrace_syscall_info = std::mem::zeroed();
        if libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, tid, SIZE, &raw mut info) == -1 {
            return Err(Errno::last());
        }
        Ok(match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                let at = At { ip: info.instruction_pointer, sp: info.stack_pointer };
                // A 32-bit program's calls have numbers of their own.
                let here = Machine::HERE;
                let native = info.arch == here.audit_arch();
                let (nr, args) = (info.u.entry.nr as u32, info.u.entry.args);
                let syscall = if native { here.call(nr) } else { Sysno(nr | Sysno::I386) };
                Call::Entry { syscall, args: here.args(syscall, args), at }
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => Call::Exit { result: info.u.exit.sval },
            _ => Call::Neither,
        })
    }
}

/// Address and signature of the rseq area that a thread has registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RseqArea {
    /// Address of the thread's struct rseq; zero if it has none.
    pub(crate) at: u64,
    pub(crate) signature: u32,
}

/// Returns the rseq area of a stopped thread (PTRACE_GET_RSEQ_CONFIGURATION, Linux 5.13); `None` if the kernel does not
/// tell.
pub(crate) fn rseq_area(tid: i32) -> Option<RseqArea> {
    /// Number of the request in linux/ptrace.h, where `struct ptrace_rseq_configuration` is as well.
    const PTRACE_GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;
    #[repr(C)]
    #[derive(Default)]
    struct Configuration {
        at: u64,
        size: u32,
        signature: u32,
        flags: u32,
        pad: u32,
    }
    let mut told = Configuration::default();
    // SAFETY: writes as many bytes as said, for which `told` has room.
    let size = unsafe { libc::ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, size_of::<Configuration>(), &raw mut told) };
    (size == size_of::<Configuration>() as i64).then_some(RseqArea { at: told.at, signature: told.signature })
}

/// Returns the seccomp filter of a stopped thread with this index, the newest first (PTRACE_SECCOMP_GET_FILTER).
///
/// # Errors
/// ENOENT if there is no further filter, EINVAL if the thread has none, EACCES if we may not read them: only root may,
/// under no filter itself.
pub(crate) fn seccomp_filter(tid: i32, index: usize) -> Result<Vec<libc::sock_filter>, Errno> {
    /// Number of the request in linux/ptrace.h.
    const PTRACE_SECCOMP_GET_FILTER: libc::c_uint = 0x420c;
    let ask = |into: *mut libc::sock_filter| {
        // SAFETY: without an address the kernel returns the filter's length, which stays the same while the thread is
        // stopped; with one it writes that many instructions.
        match unsafe { libc::ptrace(PTRACE_SECCOMP_GET_FILTER, tid, index, into) } {
            -1 => Err(Errno::last()),
            len => Ok(len as usize),
        }
    };
    let len = ask(std::ptr::null_mut())?;
    let mut filter = vec![libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 }; len];
    if len > 0 {
        ask(filter.as_mut_ptr())?;
    }
    Ok(filter)
}
