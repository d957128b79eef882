//! Measures the processor time that a hand-shake costs its thread, by the thread's own clock.
//!
//! The thread reads it when it begins to ask and before it continues: what it runs in between is the observer's, such
//! as polling, falling asleep, waking, and requests of the launcher. Estimates from outside were wrong by a factor on a
//! busy machine. If no system call may be made, the elapsed time is counted instead, which is more.

use super::emitter::{Emitted, Emitter, asm, gs};
use crate::layout::{IMAGE, image, slot};
use crate::numbers::CLOCK_GETTIME;
use iced_x86::code_asm::*;

/// Id of a thread's processor-time clock (linux/time.h).
const CLOCK_THREAD_CPUTIME_ID: i32 = 3;
const NS: i32 = 1_000_000_000;
/// Time of a hand-shake that counts, at most, ns: a longer one was interrupted by a handler of the program, which did
/// work of its own.
const AT_MOST: i32 = 20_000_000;

/// Begins the measurement, when the thread begins to ask. Lost: rax, rcx, rdi, rsi, r11.
pub(super) fn begin(e: &mut Emitter) -> Emitted {
    let (quiet, begun) = (e.label(), e.label());
    if_quiet(e, quiet)?;
    read(e, slot::ASKED_FROM)?;
    asm!(e; jmp(begun););
    e.here(quiet)?;
    asm!(e; mov(gs(slot::ASKED_FROM + 8), 1););
    e.here(begun)?;
    Ok(())
}

/// Ends the measurement, before the thread continues. Lost: as for [`begin`], and rdx.
pub(super) fn end(e: &mut Emitter) -> Emitted {
    let (quiet, astray, done) = (e.label(), e.label(), e.label());
    // Nothing is measured if the launcher was not asked, or if a process was forked meanwhile, whose clock began
    // anew.
    asm!(e; cmp(gs(slot::ASKED_FROM + 8), 0); je(done););
    if_quiet(e, quiet)?;
    read(e, slot::ASKED_TO)?;
    asm!(e; mov(rax, gs(slot::ASKED_TO)); sub(rax, gs(slot::ASKED_FROM)); imul_3(rax, rax, NS););
    asm!(e; add(rax, gs(slot::ASKED_TO + 8)); sub(rax, gs(slot::ASKED_FROM + 8)); cmp(rax, AT_MOST); ja(astray););
    asm!(e; add(gs(slot::ASKED_NS), rax); inc(gs(slot::ASKED_TIMES)););
    asm!(e; jmp(astray););
    e.here(quiet)?;
    asm!(e; rdtsc(); shl(rdx, 32u32); or(rax, rdx); sub(rax, gs(slot::WAIT_START)); add(gs(slot::QUIET_CYCLES), rax););
    e.here(astray)?;
    asm!(e; mov(gs(slot::ASKED_FROM + 8), 0););
    e.here(done)?;
    Ok(())
}

/// Goes to `label` if no system call may be made. Lost: rcx.
fn if_quiet(e: &mut Emitter, label: CodeLabel) -> Emitted {
    asm!(e; mov(rcx, IMAGE + image::QUIET); cmp(dword_ptr(rcx), 0); jne(label););
    Ok(())
}

/// Reads the thread's clock into its slot.
fn read(e: &mut Emitter, to: u64) -> Emitted {
    asm!(e; mov(rsi, gs(slot::SELF)); add(rsi, to as i32); mov(edi, CLOCK_THREAD_CPUTIME_ID););
    asm!(e; mov(eax, CLOCK_GETTIME); syscall(););
    Ok(())
}
