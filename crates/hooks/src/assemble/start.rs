//! The start of a call's time: the clock, and a mark that the kernel clears if it schedules the thread out.

use super::emitter::{Emitted, Emitter, asm, gs, gs32};
use crate::layout::{IMAGE, image, slot};
use iced_x86::code_asm::*;

/// Makes the kernel show if the thread is scheduled out: on its way back to a thread that has lost the processor or
/// received a signal, the kernel zeroes the pointer to a restartable sequence that the thread is not in
/// (include/uapi/linux/rseq.h). A pointer of the program's own that is still set serves as well.
pub(super) fn arm(e: &mut Emitter, elide: bool) -> Emitted {
    let done = e.label();
    asm!(e; mov(rcx, gs(slot::RSEQ)); test(rcx, rcx); je(done); cmp(qword_ptr(rcx + 8), 0); jne(done););
    asm!(e; mov(r11, IMAGE + image::RSEQ_CS); mov(qword_ptr(rcx + 8), r11););
    if elide {
        // Forget the mask: a handler may have run since and changed it.
        asm!(e; mov(gs(slot::MASK), 0););
    }
    e.here(done)?;
    Ok(())
}

/// Stores the clock's value as the call's start. Lost: rcx, r11.
pub(super) fn start_time(e: &mut Emitter) -> Emitted {
    asm!(e; mov(rcx, rax); mov(r11, rdx); rdtsc(););
    asm!(e; mov(gs32(slot::START), eax); mov(gs32(slot::START + 4), edx); mov(rax, rcx); mov(rdx, r11););
    Ok(())
}
