//! Identifies a thread, and checks if it may make system calls of ours.

use super::emitter::{Emitted, Emitter, asm, gs32};
use crate::layout::{IMAGE, image, slot};
use crate::numbers::{GETPID, GETTID};
use iced_x86::code_asm::*;

/// Identifies the asking thread, once in its life, unless no system call may be made.
pub(super) fn who(e: &mut Emitter) -> Emitted {
    let known = e.label();
    asm!(e; cmp(gs32(slot::TID), 0); jne(known););
    asm!(e; mov(r11, IMAGE + image::QUIET); cmp(dword_ptr(r11), 0); jne(known););
    identify(e)?;
    e.here(known)?;
    Ok(())
}

/// Writes thread and process id into the slot. Lost: rax, rcx, r11.
pub(super) fn identify(e: &mut Emitter) -> Emitted {
    asm!(e; mov(eax, GETTID); syscall(); mov(gs32(slot::TID), eax););
    asm!(e; mov(eax, GETPID); syscall(); mov(gs32(slot::PID), eax););
    Ok(())
}

/// Goes to `label` if no system call may be made. Lost: rcx.
pub(super) fn quiet(e: &mut Emitter, label: CodeLabel) -> Emitted {
    asm!(e; mov(rcx, IMAGE + image::QUIET); cmp(dword_ptr(rcx), 0); jne(label););
    Ok(())
}
