//! What the programs must know of the machine: its call numbers and its `struct pt_regs`.

use super::layout::Settings;
use std::mem::offset_of;

/// The kernel's pt_regs begins as ptrace(2)'s struct does (asm/ptrace.h).
type Registers = libc::user_regs_struct;

/// Returns the settings of this machine.
pub(super) fn settings() -> Settings {
    Settings {
        execve: libc::SYS_execve as u32,
        execveat: libc::SYS_execveat as u32,
        sigreturn: libc::SYS_rt_sigreturn as u32,
        mmap: libc::SYS_mmap as u32,
        ..registers()
    }
}

#[cfg(target_arch = "x86_64")]
fn registers() -> Settings {
    Settings {
        number_at: offset_of!(Registers, orig_rax) as u32,
        // The words are rip, cs, flags and rsp.
        place_at: offset_of!(Registers, rip) as u32,
        ip_word: 0,
        sp_word: 3,
        registers: offset_of!(Registers, fs_base) as u32,
        argument_at: [
            offset_of!(Registers, rdi) as u32,
            offset_of!(Registers, rsi) as u32,
            offset_of!(Registers, rdx) as u32,
            offset_of!(Registers, r10) as u32,
            offset_of!(Registers, r8) as u32,
            offset_of!(Registers, r9) as u32,
        ],
        // The code segment is __USER_CS (asm/segment.h).
        mode_at: offset_of!(Registers, cs) as u32,
        mode_mask: 0xffff,
        mode: 0x33,
        ..Settings::default()
    }
}

#[cfg(target_arch = "aarch64")]
fn registers() -> Settings {
    let general = offset_of!(Registers, regs) as u32;
    Settings {
        // x8 keeps the number also of a call that was denied.
        number_at: general + 8 * 8,
        // The words are x30, sp, pc and pstate.
        place_at: general + 30 * 8,
        ip_word: 2,
        sp_word: 1,
        registers: size_of::<Registers>() as u32,
        // The result takes the place of the first argument, which the kernel keeps behind the registers (orig_x0).
        argument_at: [
            size_of::<Registers>() as u32,
            general + 8,
            general + 2 * 8,
            general + 3 * 8,
            general + 4 * 8,
            general + 5 * 8,
        ],
        // PSR_MODE32_BIT is set in 32-bit programs.
        mode_at: offset_of!(Registers, pstate) as u32,
        mode_mask: 0x10,
        mode: 0,
        ..Settings::default()
    }
}
