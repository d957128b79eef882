//! Registers of aarch64.

use crate::procfs;
use crate::tracee::{CUT_OFF, is_cut_off};
use libc::c_void;
use nix::errno::Errno;
use systoll_model::Machine;
use systoll_symbols::Registers;

/// The general registers of a stopped thread: `user_pt_regs` of asm/ptrace.h.
pub(crate) type Regs = libc::user_regs_struct;

/// Sets of registers (linux/elf.h): the general ones, and the address of the thread's own data (TPIDR_EL0).
const NT_PRSTATUS: usize = 1;
const NT_ARM_TLS: usize = 0x401;
/// The number of the call at whose entry a thread has stopped.
const NT_ARM_SYSTEM_CALL: usize = 0x404;

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

/// Writes a set of a stopped thread's registers.
fn write<T>(tid: i32, set: usize, all: &T) -> Result<(), Errno> {
    let mut at = libc::iovec { iov_base: std::ptr::from_ref(all).cast_mut().cast::<c_void>(), iov_len: size_of::<T>() };
    // SAFETY: the kernel reads at most `iov_len` bytes of `all`, a struct of plain numbers.
    let done = unsafe { libc::ptrace(libc::PTRACE_SETREGSET, tid, set, &raw mut at) };
    if done == -1 { Err(Errno::last()) } else { Ok(()) }
}

/// Sets the general registers of a stopped thread.
pub(crate) fn set_registers(tid: i32, regs: &Regs) -> Result<(), Errno> {
    write(tid, NT_PRSTATUS, regs)
}

/// Makes a thread that has stopped at a call's entry leave the call out.
pub(crate) fn leave_call_out(tid: i32) -> Result<(), Errno> {
    write(tid, NT_ARM_SYSTEM_CALL, &-1i32)
}

/// Sets the result of a thread's call: of the one at whose end it has stopped.
pub(crate) fn set_result(tid: i32, result: i64) -> Result<(), Errno> {
    let mut regs = registers(tid)?;
    regs.regs[0] = result as u64;
    set_registers(tid, &regs)
}

/// The call in which a thread waits when it is asked to stop. Once it has stopped, the register of the first argument has
/// the result, and the kernel shows the argument no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waits(Option<Waiting>);

/// A call as /proc/TID/syscall shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    number: u64,
    args: [u64; 6],
    sp: u64,
    pc: u64,
}

impl Waits {
    pub(crate) fn of(tid: i32) -> Self {
        Self(procfs::read(format!("/proc/{tid}/syscall")).and_then(|line| Waiting::parse(&line)))
    }

    /// Makes the thread, which has stopped, restart its call if the stop has cut it off. The kernel is past the point where
    /// it would do so by itself. A signal that is to be handled ends the call rightly.
    pub(crate) fn restart(self, tid: i32) {
        let (Some(call), Ok(mut regs)) = (self.0, registers(tid)) else { return };
        let same = regs.pc == call.pc && regs.sp == call.sp && regs.regs[8] == call.number;
        let cut_off = regs.regs[0] as i64 == CUT_OFF && regs.regs[1..6] == call.args[1..];
        if same && cut_off && is_cut_off(Machine::HERE.call(call.number as u32)) && !has_signal(tid) {
            regs.regs[0] = call.args[0];
            regs.pc -= 4;
            // A thread that was killed meanwhile has no registers.
            let _ = set_registers(tid, &regs);
        }
    }
}

/// Returns true if a signal is to be delivered to a stopped thread.
fn has_signal(tid: i32) -> bool {
    let mask = |key| procfs::status_field(tid, key).and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0);
    (mask("SigPnd:") | mask("ShdPnd:")) & !mask("SigBlk:") != 0
}

impl Waiting {
    /// Parses `NUMBER ARGUMENT… SP PC`; the line of a thread that runs is another one.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut hex = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let mut args = [0; 6];
        for arg in &mut args {
            *arg = hex()?;
        }
        Some(Self { number, args, sp: hex()?, pc: hex()? })
    }
}

/// Returns the address of the next instruction.
pub(crate) fn pc(regs: &Regs) -> u64 {
    regs.pc
}

/// Returns the stack pointer.
pub(crate) fn sp(regs: &Regs) -> u64 {
    regs.sp
}

/// Returns the registers with which a thread makes a call by the `svc` at `at`.
pub(crate) fn with_call(regs: &Regs, at: u64, (number, args): (i64, [u64; 6])) -> Regs {
    let mut regs = Regs { pc: at, ..*regs };
    regs.regs[..6].copy_from_slice(&args);
    regs.regs[8] = number as u64;
    regs
}

/// Returns the register with a call's result.
pub(crate) fn result(regs: &Regs) -> u64 {
    regs.regs[0]
}

/// Returns the ticks in a second of the clock that programs can read (CNTVCT_EL0).
pub(crate) fn clock_rate() -> u64 {
    let rate: u64;
    // SAFETY: reads a register that programs may read.
    unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nomem, nostack)) };
    rate.max(1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_thread_is_told_from_one_that_runs() {
        let line = b"22 0x4 0xffff 0x1 0x5dc 0x0 0x8 0xffffdf00 0xaaaa0\n";
        let args = [4, 0xffff, 1, 0x5dc, 0, 8];
        assert_eq!(Waiting::parse(line), Some(Waiting { number: 22, args, sp: 0xffff_df00, pc: 0xa_aaa0 }));
        for line in [&b"running\n"[..], b"-1 0xffffdf00 0xaaaa0\n", b"22 0x4\n", b"", b"\xff"] {
            assert_eq!(Waiting::parse(line), None);
        }
    }
}
