//! Recognises, in the thread, an `execve` of a file that does not exist, from which no program comes.
//!
//! A search along PATH tries one folder after the other. Two hand-shakes for each took a compiler's driver, which tries
//! ten times, more time than all other questions together.

use super::emitter::{Emitted, Emitter, asm, gs, gs32};
use crate::layout::{IMAGE, Question, Saved, image, slot};
use crate::numbers::{ACCESS, EXECVE};
use iced_x86::code_asm::*;

/// Continues at `done` if the question is about an `execve` of a file that does not exist. Until it has failed, the
/// call counts as a program of which the launcher has not heard, since it becomes one if the file is created within
/// that microsecond.
///
/// We use `access` because loaders make it at each start: any filter that the program runs under allows it.
pub(super) fn absent(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let (none, ask) = (e.label(), e.label());
    asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48u32); and(eax, 0x3f); cmp(eax, Question::Exec as i32); jne(ask););
    asm!(e; cmp(gs32(Saved::Rax.offset()), EXECVE as i32); jne(ask););
    asm!(e; mov(r11, IMAGE + image::QUIET); cmp(dword_ptr(r11), 0); jne(ask););
    asm!(e; mov(rdi, gs(Saved::Rdi.offset())); mov(esi, libc::F_OK); mov(eax, ACCESS); syscall(););
    asm!(e; cmp(rax, -libc::ENOENT); je(none); cmp(rax, -libc::ENOTDIR); jne(ask););
    e.here(none)?;
    asm!(e; inc(gs32(slot::EXECS_UNASKED)); mov(r11, IMAGE + image::UNHEARD););
    e.a.lock().inc(qword_ptr(r11))?;
    asm!(e; jmp(done););
    e.here(ask)?;
    Ok(())
}

/// Goes to `returned` if the launcher was not asked about the `execve` that failed. Lost: r11.
pub(super) fn failed(e: &mut Emitter, returned: CodeLabel) -> Emitted {
    let unasked = e.label();
    asm!(e; cmp(gs32(slot::EXECS_UNASKED), 0); jne(unasked););
    e.cold(move |e| {
        e.here(unasked)?;
        asm!(e; dec(gs32(slot::EXECS_UNASKED)); mov(r11, IMAGE + image::UNHEARD););
        e.a.lock().dec(qword_ptr(r11))?;
        asm!(e; jmp(returned););
        Ok(())
    });
    Ok(())
}
