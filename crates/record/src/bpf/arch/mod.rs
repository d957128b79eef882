//! What the programs must know of the machine: its call numbers and its `struct pt_regs`.

use super::layout::Settings;

/// Returns the settings of this machine.
#[cfg(target_arch = "x86_64")]
pub(super) fn settings() -> Settings {
    use std::mem::offset_of;
    type Registers = libc::user_regs_struct;
    Settings {
        execve: libc::SYS_execve as u32,
        execveat: libc::SYS_execveat as u32,
        sigreturn: libc::SYS_rt_sigreturn as u32,
        // The kernel's pt_regs begins as ptrace(2)'s struct does (asm/ptrace.h).
        number_at: offset_of!(Registers, orig_rax) as u32,
        first_argument_at: offset_of!(Registers, rdi) as u32,
        segment_at: offset_of!(Registers, cs) as u32,
        // __USER_CS of asm/segment.h.
        segment: 0x33,
        ..Settings::default()
    }
}

/// Returns no settings of use: other machines are refused.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn settings() -> Settings {
    Settings::default()
}
