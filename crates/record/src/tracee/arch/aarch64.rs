//! Registers of aarch64.

use libc::c_void;
use nix::errno::Errno;
use systoll_symbols::Registers;

/// The general registers of a stopped thread: `user_pt_regs` of asm/ptrace.h.
pub(crate) type Regs = libc::user_regs_struct;

/// Sets of registers (linux/elf.h): the general ones, and the address of the thread's own data (TPIDR_EL0).
const NT_PRSTATUS: usize = 1;
const NT_ARM_TLS: usize = 0x401;

/// Reads a set of a stopped thread's registers into `all`, whose first bytes it may fill.
fn read<T>(tid: i32, set: usize, all: &mut T) -> Result<(), Errno> {
    let mut at = libc::iovec { iov_base: std::ptr::from_mut(all).cast::<c_void>(), iov_len: size_of::<T>() };
    // SAFETY: the kernel writes at most `iov_len` bytes to `all`, a struct of plain numbers.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, set, &raw mut at) };
    if done == -1 { Err(Errno::last()) } else { Ok(()) }
}

/// Returns the registers of a stopped thread.
pub(crate) fn registers(tid: i32) -> Result<Regs, Errno> {
    let mut regs = Regs { regs: [0; 31], sp: 0, pc: 0, pstate: 0 };
    read(tid, NT_PRSTATUS, &mut regs)?;
    Ok(regs)
}

/// Returns the address of the next instruction.
pub(crate) fn pc(regs: &Regs) -> u64 {
    regs.pc
}

/// Returns the stack pointer.
pub(crate) fn sp(regs: &Regs) -> u64 {
    regs.sp
}

/// Returns the address of the thread's own data; the C library's struct of the thread lies before it.
pub(crate) fn thread_pointer(tid: i32, _regs: &Regs) -> Option<u64> {
    let mut pointer = 0u64;
    read(tid, NT_ARM_TLS, &mut pointer).ok()?;
    Some(pointer)
}

/// Returns the registers in the form in which a stack is unwound.
pub(crate) fn for_unwinding(regs: &Regs) -> Registers {
    Registers { x: regs.regs, sp: regs.sp, pc: regs.pc }
}
