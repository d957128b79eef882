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
        ..registers()
    }
}

#[cfg(target_arch = "x86_64")]
fn registers() -> Settings {
    Settings {
        number_at: offset_of!(Registers, orig_rax) as u32,
        first_argument_at: offset_of!(Registers, rdi) as u32,
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
        first_argument_at: general,
        // PSR_MODE32_BIT is set in 32-bit programs.
        mode_at: offset_of!(Registers, pstate) as u32,
        mode_mask: 0x10,
        mode: 0,
        ..Settings::default()
    }
}
