//! Calls answered in place: who a thread is, and signal masks that do not change.
//!
//! The mask is known from the thread's own changes. Handlers change it behind their back: that
//! one was entered shows in the rseq area (the kernel zeroes the pointer when it delivers a
//! signal), that one has ended in the count of `rt_sigreturn`, whose sites must therefore all be
//! hooked where this is used. Not noticed: a parent that changed (`getppid`) and a mask changed
//! by code without hooks; a bad pointer faults instead of failing with EFAULT.

use super::super::layout::{node, record, slot};
use super::after::unless_shared;
use super::before::Entry;
use super::emit::{Emitted, Emitter, asm, at, gs, gs_at, gs32};
use super::walk::walk;
use iced_x86::code_asm::*;

pub(super) const SIGPROCMASK: u32 = 14;
pub(super) const SIGRETURN: u32 = 15;
const SIG_BLOCK: i32 = 0;
const SIG_UNBLOCK: i32 = 1;
const SIG_SETMASK: i32 = 2;
/// Bits of SIGKILL and SIGSTOP, which can't be blocked; the first says that the mask is known.
const KNOWN: u32 = 8;
const STOP: u32 = 18;

/// Which of [`slot::ANSWERS`] a call asks for.
pub(super) fn answer(number: u32) -> Option<u64> {
    [39, 186, 110, 102].iter().position(|n| *n == number).map(|i| i as u64)
}

/// Whether calls of this number may be answered in place.
pub(super) fn elidable(number: u32) -> bool {
    number == SIGPROCMASK || answer(number).is_some()
}

/// Whether the call may change who the thread's user is: setuid, setreuid, setresuid, unshare, setns.
pub(super) fn changes_user(number: u32) -> bool {
    matches!(number, 105 | 113 | 117 | 272 | 308)
}

/// Answers the call if the answer is known and goes to `answered`, else falls through.
pub(super) fn try_answer(e: &mut Emitter, number: u32, entry: Entry, answered: CodeLabel) -> Emitted {
    let real = e.label();
    match answer(number) {
        Some(index) => {
            asm!(e; cmp(gs(slot::ANSWERS + 8 * index), 0); je(real););
            count(e, entry)?;
            asm!(e; mov(eax, gs32(slot::ANSWERS + 8 * index)); jmp(answered););
        }
        None => {
            unchanged(e, real)?;
            count(e, entry)?;
            asm!(e; xor(eax, eax); jmp(answered););
        }
    }
    e.here(real)?;
    if number == SIGPROCMASK {
        asm!(e; mov(rcx, gs(slot::SIGRETURNS)); mov(gs(slot::MASK_SEQUENCE), rcx););
    }
    Ok(())
}

fn count(e: &mut Emitter, entry: Entry) -> Emitted {
    walk(e, entry.start, entry.base, rcx)?;
    asm!(e; mov(rcx, at(r11, node::RECORD)); inc(gs_at(rcx, record::ELIDED)););
    Ok(())
}

/// Goes to `real` unless `rt_sigprocmask(how, set, old, 8)` would change nothing; writes `old`.
fn unchanged(e: &mut Emitter, real: CodeLabel) -> Emitted {
    let (set, block, old, done) = (e.label(), e.label(), e.label(), e.label());
    asm!(e; mov(rcx, gs(slot::RSEQ)); test(rcx, rcx); je(real); cmp(qword_ptr(rcx + 8), 0); je(real););
    asm!(e; cmp(r10, 8); jne(real); test(rsi, rsi); je(old););
    asm!(e; mov(r11, qword_ptr(rsi)); btr(r11, KNOWN); btr(r11, STOP););
    asm!(e; mov(rcx, gs(slot::MASK)); bt(rcx, KNOWN); jnc(real););
    asm!(e; cmp(edi, SIG_SETMASK); je(set); cmp(edi, SIG_BLOCK); je(block); cmp(edi, SIG_UNBLOCK); jne(real););
    asm!(e; test(rcx, r11); jne(real); jmp(old););
    e.here(block)?;
    asm!(e; not(rcx); test(rcx, r11); jne(real); jmp(old););
    e.here(set)?;
    asm!(e; bts(r11, KNOWN); cmp(rcx, r11); jne(real););
    e.here(old)?;
    // Read again: a handler that came since has made it unknown.
    asm!(e; mov(rcx, gs(slot::MASK)); btr(rcx, KNOWN); jnc(real););
    asm!(e; test(rdx, rdx); je(done); mov(qword_ptr(rdx), rcx););
    e.here(done)?;
    Ok(())
}

/// Behind a `rt_sigprocmask` that was made: what the mask is now, if that can be told.
pub(super) fn mask_changed(e: &mut Emitter) -> Emitted {
    let (whole, have, block, store, unknown, query, done) =
        (e.label(), e.label(), e.label(), e.label(), e.label(), e.label(), e.label());
    asm!(e; test(rax, rax); jne(done););
    unless_shared(e, done)?;
    asm!(e; mov(rcx, gs(slot::RSEQ)); test(rcx, rcx); je(unknown); cmp(qword_ptr(rcx + 8), 0); je(unknown););
    // Where both pointers are the same, what was set has been overwritten.
    asm!(e; test(rsi, rsi); je(query); cmp(rsi, rdx); je(unknown););
    asm!(e; mov(r11, qword_ptr(rsi)); btr(r11, KNOWN); btr(r11, STOP); cmp(edi, SIG_SETMASK); je(whole););
    asm!(e; mov(rcx, gs(slot::MASK)); bt(rcx, KNOWN); jc(have); test(rdx, rdx); je(unknown););
    asm!(e; mov(rcx, qword_ptr(rdx)););
    e.here(have)?;
    asm!(e; test(edi, edi); je(block); not(r11); and(rcx, r11); jmp(store););
    e.here(block)?;
    asm!(e; or(rcx, r11); jmp(store););
    e.here(query)?;
    asm!(e; test(rdx, rdx); je(done); mov(rcx, qword_ptr(rdx)); jmp(store););
    e.here(whole)?;
    asm!(e; mov(rcx, r11););
    e.here(store)?;
    asm!(e; bts(rcx, KNOWN); mov(gs(slot::MASK), rcx););
    // Stored first, looked at then: a handler that ends in between is seen either way.
    asm!(e; mov(rcx, gs(slot::SIGRETURNS)); cmp(rcx, gs(slot::MASK_SEQUENCE)); je(done););
    e.here(unknown)?;
    asm!(e; mov(gs(slot::MASK), 0););
    e.here(done)?;
    Ok(())
}

/// Before `rt_sigreturn`: the mask becomes what the kernel saved, or the handler made of that.
pub(super) fn handler_ends(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(slot::MASK), 0); inc(gs(slot::SIGRETURNS)););
    Ok(())
}

/// Before a call that may be anything: forgets what it might change.
pub(super) fn forget(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(slot::MASK), 0););
    forget_user(e)
}

/// Forgets who the thread's user is.
pub(super) fn forget_user(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(slot::ANSWERS + 8 * 3), 0););
    Ok(())
}
