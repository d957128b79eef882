//! Registers of x86-64.

use crate::tracee::{CUT_OFF, RESTART_UNLESS_HANDLED, is_cut_off};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use systoll_model::Sysno;
use systoll_symbols::Registers;

/// The general registers of a stopped thread.
pub(crate) type Regs = libc::user_regs_struct;

/// Returns the registers of a stopped thread.
pub(crate) fn registers(tid: i32) -> Result<Regs, Errno> {
    ptrace::getregs(Pid::from_raw(tid))
}

/// Sets the registers of a stopped thread.
pub(crate) fn set_registers(tid: i32, regs: &Regs) -> Result<(), Errno> {
    ptrace::setregs(Pid::from_raw(tid), *regs)
}

/// Sets the gs base of a stopped thread, and nothing else.
pub(crate) fn set_gs_base(tid: i32, base: u64) -> Result<(), Errno> {
    const AT: usize = std::mem::offset_of!(Regs, gs_base);
    ptrace::write_user(Pid::from_raw(tid), AT as ptrace::AddressType, base as i64)
}

/// Returns the registers with which a thread makes a call by the `syscall` instruction at `at`.
pub(crate) fn with_call(regs: &Regs, at: u64, (number, args): (i64, [u64; 6])) -> Regs {
    let [rdi, rsi, rdx, r10, r8, r9] = args;
    Regs { rip: at, rax: number as u64, orig_rax: u64::MAX, rdi, rsi, rdx, r10, r8, r9, ..*regs }
}

/// Sets the result of a thread's call: of the one at whose end it has stopped.
pub(crate) fn set_result(tid: i32, result: i64) -> Result<(), Errno> {
    set_registers(tid, &Regs { rax: result as u64, ..registers(tid)? })
}

/// Makes a stopped thread restart a call that the stop has cut off.
pub(crate) fn undisturbed(tid: i32, regs: &mut Regs) {
    let number = u32::try_from(regs.orig_rax).ok();
    if regs.rax as i64 == CUT_OFF && number.is_some_and(|number| is_cut_off(Sysno(number))) {
        let again = Regs { rax: RESTART_UNLESS_HANDLED as u64, ..*regs };
        if set_registers(tid, &again).is_ok() {
            *regs = again;
        }
    }
}

/// The call in which a thread waits when it is asked to stop. Here its registers have it afterwards, too.
#[derive(Clone, Copy)]
pub(crate) struct Waits;

impl Waits {
    pub(crate) fn of(_tid: i32) -> Self {
        Self
    }

    /// Makes the thread, which has stopped, restart its call if the stop has cut it off.
    pub(crate) fn restart(self, tid: i32) {
        if let Ok(mut regs) = registers(tid) {
            undisturbed(tid, &mut regs);
        }
    }
}

/// Returns the address of the next instruction.
pub(crate) fn pc(regs: &Regs) -> u64 {
    regs.rip
}

/// Returns the stack pointer.
pub(crate) fn sp(regs: &Regs) -> u64 {
    regs.rsp
}

/// Returns the register with a call's result.
pub(crate) fn result(regs: &Regs) -> u64 {
    regs.rax
}

/// Returns the address of the thread's own data, which `pthread_self` returns.
pub(crate) fn thread_pointer(_tid: i32, regs: &Regs) -> Option<u64> {
    Some(regs.fs_base)
}

/// Returns the registers in the form in which a stack is unwound.
pub(crate) fn for_unwinding(regs: &Regs) -> Registers {
    Registers {
        ip: regs.rip,
        sp: regs.rsp,
        bp: regs.rbp,
        ax: regs.rax,
        bx: regs.rbx,
        cx: regs.rcx,
        dx: regs.rdx,
        si: regs.rsi,
        di: regs.rdi,
        r8: regs.r8,
        r9: regs.r9,
        r10: regs.r10,
        r11: regs.r11,
        r12: regs.r12,
        r13: regs.r13,
        r14: regs.r14,
        r15: regs.r15,
    }
}
