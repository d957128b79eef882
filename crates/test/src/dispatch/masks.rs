//! Answers calls that would block SIGSYS or change its action, with everything else as the program
//! asked: while SIGSYS is blocked, a dispatched call ends the process.

use super::signals::{self, Action, SIGSYS_BIT};
use super::stubs;
use crate::problem::Incomplete;
use libc::c_long;

const UNBLOCKABLE: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
const MASK_SIZE: u64 = 8;
const SYS_IO_PGETEVENTS: c_long = 333;

/// The way in which a call is handled.
pub(super) enum Course {
    /// The call is made unchanged.
    Native,
    /// The call has been answered with this result.
    Answered(i64),
    /// The call would end the process if counting went on: counting stops for this reason.
    GiveUp(Incomplete),
}

/// Reads a value of the program's memory at `address`. Fails with the negative errno.
fn read<T: Copy + Default>(address: u64) -> Result<T, i64> {
    let mut value = T::default();
    copy(libc::SYS_process_vm_readv, &raw mut value as u64, address, size_of::<T>()).map(|()| value)
}

fn write<T: Copy>(address: u64, value: T) -> Result<(), i64> {
    copy(libc::SYS_process_vm_writev, &raw const value as u64, address, size_of::<T>())
}

/// Copies through the kernel, which does not crash if the program's pointer is invalid.
fn copy(number: c_long, ours: u64, theirs: u64, length: usize) -> Result<(), i64> {
    let here = [ours, length as u64];
    let there = [theirs, length as u64];
    // SAFETY: `here` is memory of ours of that length; the kernel checks the other.
    let copied = unsafe {
        let own = stubs::call(libc::SYS_getpid, [0; 6]) as u64;
        stubs::call(number, [own, here.as_ptr() as u64, 1, there.as_ptr() as u64, 1, 0])
    };
    match copied {
        done if done == length as i64 => Ok(()),
        error if error == -i64::from(libc::EFAULT) || error >= 0 => Err(-i64::from(libc::EFAULT)),
        _ => {
            // A filter refuses the call: the pointer is assumed to be valid, as almost all are.
            let (from, to) = if number == libc::SYS_process_vm_readv { (theirs, ours) } else { (ours, theirs) };
            // SAFETY: one side is ours, the other is the program's own argument to the kernel.
            unsafe { core::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, length) };
            Ok(())
        }
    }
}

/// Decides how call `number` is handled. `mask` is the mask that the program continues with.
pub(super) fn course(number: c_long, [a, b, c, d, e, f]: [u64; 6], mask: &mut u64) -> Course {
    match number {
        libc::SYS_rt_sigprocmask if b != 0 && d == MASK_SIZE => change_mask(a, b, c, mask),
        libc::SYS_rt_sigaction if d == MASK_SIZE && a as i32 == libc::SIGSYS => change_sigsys(b, c),
        libc::SYS_rt_sigaction if d == MASK_SIZE && b != 0 => change_action(a, b, c),
        libc::SYS_rt_sigsuspend => while_waiting(a),
        libc::SYS_ppoll => while_waiting(d),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => while_waiting(e),
        libc::SYS_pselect6 | SYS_IO_PGETEVENTS if f != 0 => read(f).map_or(Course::Native, while_waiting),
        _ => Course::Native,
    }
}

/// Gives up if SIGSYS is blocked while waiting: calls of a handler that runs meanwhile would end
/// the process.
fn while_waiting(mask: u64) -> Course {
    match read::<u64>(mask) {
        Ok(mask) if mask & SIGSYS_BIT != 0 => Course::GiveUp(Incomplete::WaitedWithSigsysBlocked),
        _ => Course::Native,
    }
}

fn change_mask(how: u64, set: u64, old: u64, mask: &mut u64) -> Course {
    let Ok(set) = read::<u64>(set) else { return Course::Native };
    let new = match how as i32 {
        libc::SIG_BLOCK => *mask | set,
        libc::SIG_SETMASK => set,
        _ => return Course::Native,
    };
    if set & SIGSYS_BIT == 0 {
        return Course::Native;
    }
    let before = *mask;
    *mask = new & !(SIGSYS_BIT | UNBLOCKABLE);
    Course::Answered(if old == 0 { 0 } else { write(old, before).err().unwrap_or(0) })
}

fn change_action(signal: u64, action: u64, old: u64) -> Course {
    match read::<Action>(action) {
        Ok(action) if action.mask & SIGSYS_BIT != 0 => {
            let action = Action { mask: action.mask & !SIGSYS_BIT, ..action };
            // SAFETY: the program's own call, except for one bit of the mask.
            Course::Answered(unsafe {
                stubs::call(libc::SYS_rt_sigaction, [signal, &raw const action as u64, old, MASK_SIZE, 0, 0])
            })
        }
        _ => Course::Native,
    }
}

/// Handles a change of SIGSYS's action. The action is ours while a block is counted; the program's
/// takes effect afterwards.
fn change_sigsys(action: u64, old: u64) -> Course {
    let new = match action {
        0 => None,
        at => match read::<Action>(at) {
            Ok(action) => Some(action),
            Err(error) => return Course::Answered(error),
        },
    };
    let before = signals::programs_action();
    if let Some(new) = new {
        signals::set_programs_action(new);
    }
    Course::Answered(if old == 0 { 0 } else { write(old, before).err().unwrap_or(0) })
}
