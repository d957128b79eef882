//! Calls that sleep, interrupted by a signal before they are made.
//!
//! A handler may run while its thread is in our code, or waits there, just before a call that the signal would have cut
//! short. The thread must not sleep for the full time afterwards: unwatched, the signal would hardly have hit those few
//! instructions. Such a call is not made: it ends with EINTR, as it would have. This applies to calls that never
//! continue after a handler, whatever SA_RESTART says (man 7 signal); for other calls it depends on how the handler was
//! installed.

use super::emitter::{Emitted, Emitter, asm, at, gs, gs_at};
use super::on_return::outer;
use crate::layout::{node, record, slot};
use crate::numbers::{
    CLOCK_NANOSLEEP, CLOSE, EPOLL_PWAIT, EPOLL_PWAIT2, EPOLL_WAIT, NANOSLEEP, PAUSE, POLL, PPOLL, PSELECT6,
    RT_SIGSUSPEND, RT_SIGTIMEDWAIT, SELECT,
};
use iced_x86::code_asm::*;
use iced_x86::{Code, Instruction, Register};

const TIMER_ABSTIME: u32 = 1;

/// Returns true if a call of this number ends with EINTR when a signal comes right before it.
pub(super) fn sleeps(number: u32) -> bool {
    matches!(
        number,
        POLL | SELECT
            | PAUSE
            | NANOSLEEP
            | RT_SIGTIMEDWAIT
            | RT_SIGSUSPEND
            | CLOCK_NANOSLEEP
            | EPOLL_WAIT
            | PSELECT6
            | PPOLL
            | EPOLL_PWAIT
            | EPOLL_PWAIT2
    )
}

/// Notes, before a call that sleeps is counted, the number of handlers that have ended so far.
pub(super) fn begin(e: &mut Emitter) -> Emitted {
    asm!(e; mov(rcx, gs(slot::SIGRETURNS)); mov(gs(slot::SIGRETURNS_BEFORE), rcx););
    Ok(())
}

/// Checks, right before the counted call would be made, if handlers have ended meanwhile; if so, uncounts it and goes
/// to `plain` with EINTR. A call that does not wait is made.
pub(super) fn end(e: &mut Emitter, number: u32, plain: CodeLabel) -> Emitted {
    let (handled, go) = (e.label(), e.label());
    asm!(e; mov(rcx, gs(slot::SIGRETURNS)); cmp(rcx, gs(slot::SIGRETURNS_BEFORE)); jne(handled););
    e.here(go)?;
    e.cold(move |e| {
        let (cut, done) = (e.label(), e.label());
        e.here(handled)?;
        match number {
            POLL => asm!(e; test(edx, edx); je(go);),
            EPOLL_WAIT | EPOLL_PWAIT => asm!(e; test(r10d, r10d); je(go);),
            // A call that must return the remaining time is made, unless the program does not ask for it or it is
            // there already.
            NANOSLEEP => asm!(e; test(rsi, rsi); je(cut); cmp(rsi, rdi); jne(go);),
            CLOCK_NANOSLEEP => {
                asm!(e; test(esi, TIMER_ABSTIME); jne(cut); test(r10, r10); je(cut); cmp(r10, rdx); jne(go););
            }
            _ => {}
        }
        e.here(cut)?;
        not_made(e, done, plain)
    });
    Ok(())
}

/// Uncounts the pending call and goes to `plain` with EINTR.
fn not_made(e: &mut Emitter, done: CodeLabel, plain: CodeLabel) -> Emitted {
    asm!(e; mov(r11, gs(slot::NODE)); mov(rcx, at(r11, node::RECORD)); dec(gs_at(rcx, record::ENTERED)););
    asm!(e; mov(rcx, rdx););
    outer(e, done)?;
    e.here(done)?;
    asm!(e; mov(rdx, rcx); mov(rax, i64::from(-libc::EINTR)); jmp(plain););
    Ok(())
}

/// Returns true if a call is made by musl's `__syscall_cp_asm` (src/thread/x86_64/syscall_cp.s), by the instructions
/// that its hook displaces: the last one stores the address of the thread's cancellation word at 8(%rsp).
pub(super) fn is_cancellation_point(head: &[Instruction]) -> bool {
    head.last().is_some_and(|i| {
        i.code() == Code::Mov_rm64_r64
            && i.op1_register() == Register::R11
            && i.memory_base() == Register::RSP
            && i.memory_index() == Register::None
            && i.memory_displacement64() == 8
    })
}

/// Does the work of [`end`] for a call at a cancellation point of musl. The signal that cancels a thread does so only
/// if the thread is at an address of that function, but finds it in our code. After EINTR the caller checks again;
/// `close` is made, since it would be left out otherwise.
pub(super) fn end_at_cancellation_point(e: &mut Emitter, plain: CodeLabel) -> Emitted {
    let (handled, go) = (e.label(), e.label());
    asm!(e; mov(rcx, gs(slot::SIGRETURNS)); cmp(rcx, gs(slot::SIGRETURNS_BEFORE)); jne(handled););
    e.here(go)?;
    e.cold(move |e| {
        let done = e.label();
        e.here(handled)?;
        asm!(e; cmp(eax, CLOSE); je(go); mov(r11, qword_ptr(rsp + 8)); cmp(dword_ptr(r11), 0); je(go););
        not_made(e, done, plain)
    });
    Ok(())
}
