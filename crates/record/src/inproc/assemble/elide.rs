//! Calls answered in place: who a thread is, and signal masks that do not change.
//!
//! **Masks** are known from the thread's own changes. Handlers change them behind their back: that
//! one was entered shows in the rseq area (the kernel zeroes the pointer when it delivers a
//! signal), that one has ended in the count of `rt_sigreturn`. Memory is touched in place of the
//! kernel only where the kernel has lately done so itself, or on the page the stack pointer is on:
//! a bad pointer fails with EFAULT, as it should.
//!
//! **Answers** hold for a thread's life: its ids do, its user until it first changes that. A user
//! without a name in its namespace (65534) may be given one from outside, and is asked for again.
//! The parent is not among them: it changes when it dies.
//!
//! All of it rests on seeing every call of the process. Where a file has places nobody counts,
//! nothing is answered; memory made executable takes [`image::ELIDE`] down, for good where it is
//! no file that can be looked at.

use super::super::layout::{IMAGE, elide, image, node, record, slot};
use super::super::nr::{
    BRK, GETEUID, GETPID, GETTID, GETUID, MADVISE, MMAP, MPROTECT, MREMAP, MUNMAP, PKEY_MPROTECT, RT_SIGPROCMASK,
    SETNS, SETRESUID, SETREUID, SETUID, SHMDT, UNSHARE,
};
use super::after::unless_shared;
use super::before::Entry;
use super::emit::{Emitted, Emitter, asm, at, gs, gs_at, gs32};
use super::family::brings_code;
use super::walk::walk;
use iced_x86::code_asm::*;

const PROT_EXEC: i32 = 4;
const MAP_SHARED: i32 = 1;
const SIG_BLOCK: i32 = 0;
const SIG_UNBLOCK: i32 = 1;
const SIG_SETMASK: i32 = 2;
/// Bits of SIGKILL and SIGSTOP, which can't be blocked; the first says that the mask is known.
const KNOWN: u32 = 8;
const STOP: u32 = 18;
/// Bytes of a page, and the last place in one where a mask has room.
const PAGE: i32 = 4096;
const LAST: i32 = PAGE - 8;
/// What the kernel calls a user that has no name in its namespace (its default, which is also that
/// of the user "nobody").
const OVERFLOW_USER: i32 = 65534;
/// Who may be somebody else afterwards.
const CHANGE_USER: [u32; 5] = [SETUID, SETREUID, SETRESUID, UNSHARE, SETNS];

/// The calls that [`slot::ANSWERS`] answer.
const ANSWERED: [u32; slot::ANSWER_COUNT as usize] = [GETPID, GETTID, GETUID, GETEUID];

/// Which of [`slot::ANSWERS`] a call asks for.
pub(super) fn answer(number: u32) -> Option<u64> {
    ANSWERED.iter().position(|n| *n == number).map(|i| i as u64)
}

/// Answers that a change of the thread's user changes.
const USER_ANSWERS: [u64; 2] = [2, 3];

/// Whether calls of this number may be answered in place.
pub(super) fn elidable(number: u32) -> bool {
    number == RT_SIGPROCMASK || answer(number).is_some()
}

/// Answers the call if the answer is known and goes to `answered`, else falls through.
pub(super) fn try_answer(e: &mut Emitter, number: u32, entry: Entry, answered: CodeLabel) -> Emitted {
    let real = e.label();
    match answer(number) {
        Some(index) => known(e, index, entry, (answered, real))?,
        None => {
            unchanged(e, real)?;
            count(e, entry)?;
            asm!(e; xor(eax, eax); jmp(answered););
        }
    }
    e.here(real)?;
    if number == RT_SIGPROCMASK {
        asm!(e; mov(rcx, gs(slot::SIGRETURNS)); mov(gs(slot::MASK_SEQUENCE), rcx););
    }
    Ok(())
}

/// Goes to `answered` with an answer that is known and may be given, else to `real`.
fn known(e: &mut Emitter, index: u64, entry: Entry, (answered, real): (CodeLabel, CodeLabel)) -> Emitted {
    asm!(e; mov(rcx, IMAGE + image::ELIDE); test(dword_ptr(rcx), 1i32 << index); je(real););
    asm!(e; cmp(gs(slot::ANSWERS + 8 * index), 0); je(real););
    count(e, entry)?;
    // Looked at again: a handler may have come since.
    asm!(e; mov(rcx, gs(slot::ANSWERS + 8 * index)); btr(rcx, 32u32); jnc(real); mov(eax, ecx); jmp(answered););
    Ok(())
}

/// [`try_answer`] of a call whose number is in eax. Else notes what is asked: behind the call the
/// number is gone. Every call made by number notes it anew, so that what a handler's call left, or
/// one that never returned, is nobody's.
pub(super) fn try_by_number(e: &mut Emitter, entry: Entry, answered: CodeLabel) -> Emitted {
    let go = e.label();
    asm!(e; mov(gs(slot::ASKED), 0););
    for (index, number) in (0..).zip(ANSWERED) {
        let (asks, real) = (e.label(), e.label());
        asm!(e; cmp(eax, number as i32); je(asks););
        e.cold(move |e| {
            e.here(asks)?;
            known(e, index, entry, (answered, real))?;
            e.here(real)?;
            asm!(e; mov(gs(slot::ASKED), index as i32 + 1); jmp(go););
            Ok(())
        });
    }
    e.here(go)?;
    Ok(())
}

/// Behind a call made by number: remembers the answer if [`try_by_number`] noted that it is one.
pub(super) fn remember_by_number(e: &mut Emitter) -> Emitted {
    let (noted, done) = (e.label(), e.label());
    asm!(e; cmp(gs(slot::ASKED), 0); jne(noted););
    e.here(done)?;
    e.cold(move |e| {
        e.here(noted)?;
        asm!(e; mov(rcx, gs(slot::ASKED)); mov(gs(slot::ASKED), 0););
        for (index, _) in (0..).zip(ANSWERED) {
            let next = e.label();
            asm!(e; cmp(ecx, index as i32 + 1); jne(next););
            remember(e, index)?;
            asm!(e; jmp(done););
            e.here(next)?;
        }
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}

fn count(e: &mut Emitter, entry: Entry) -> Emitted {
    walk(e, entry.start, entry.base, rcx)?;
    asm!(e; mov(rcx, at(r11, node::RECORD)); inc(gs_at(rcx, record::ELIDED)););
    Ok(())
}

/// Goes to `real` unless the thread's rseq area tells that no signal has come since the mask was
/// last learnt. A pointer of the program's own tells nothing.
fn undisturbed(e: &mut Emitter, real: CodeLabel) -> Emitted {
    asm!(e; mov(rcx, gs(slot::RSEQ)); test(rcx, rcx); je(real););
    asm!(e; mov(r11, IMAGE + image::RSEQ_CS); cmp(qword_ptr(rcx + 8), r11); jne(real););
    Ok(())
}

/// Goes to `real` unless a mask at `pointer` can be touched as the kernel would. Lost: rcx.
fn touchable(e: &mut Emitter, pointer: AsmRegister64, good: u64, real: CodeLabel) -> Emitted {
    let fine = e.label();
    asm!(e; mov(rcx, pointer); and(ecx, PAGE - 1); cmp(ecx, LAST); ja(real););
    asm!(e; mov(rcx, pointer); xor(rcx, rsp); test(rcx, -PAGE); je(fine););
    asm!(e; mov(rcx, pointer); xor(rcx, gs(good)); test(rcx, -PAGE); jne(real););
    e.here(fine)?;
    Ok(())
}

/// Goes to `real` unless `rt_sigprocmask(how, set, old, 8)` would change nothing; writes `old`.
fn unchanged(e: &mut Emitter, real: CodeLabel) -> Emitted {
    let (set, block, old, done, no_old, with_set) = (e.label(), e.label(), e.label(), e.label(), e.label(), e.label());
    undisturbed(e, real)?;
    asm!(e; mov(r11, IMAGE); test(dword_ptr(r11 + image::ELIDE as i32), elide::MASK as i32); je(real););
    asm!(e; mov(r11, qword_ptr(r11 + image::MAPS as i32)); cmp(r11, gs(slot::GOOD_MAPS)); jne(real););
    asm!(e; cmp(r10, 8); jne(real); test(rdx, rdx); je(no_old););
    touchable(e, rdx, slot::GOOD_OLD, real)?;
    e.here(no_old)?;
    asm!(e; test(rsi, rsi); jne(with_set); jmp(old););
    e.here(with_set)?;
    touchable(e, rsi, slot::GOOD_SET, real)?;
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
    touched(e)?;
    undisturbed(e, unknown)?;
    // Where the two overlap, what was set has been overwritten.
    asm!(e; test(rsi, rsi); je(query); mov(rcx, rsi); sub(rcx, rdx); add(rcx, 7); cmp(rcx, 14); jbe(unknown););
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

/// The kernel has just touched both masks, those that there are.
fn touched(e: &mut Emitter) -> Emitted {
    let (same, no_set, no_old) = (e.label(), e.label(), e.label());
    asm!(e; mov(rcx, IMAGE + image::MAPS); mov(rcx, qword_ptr(rcx)); cmp(rcx, gs(slot::GOOD_MAPS)); je(same););
    // No page: the kernel's.
    asm!(e; mov(gs(slot::GOOD_SET), -1); mov(gs(slot::GOOD_OLD), -1); mov(gs(slot::GOOD_MAPS), rcx););
    e.here(same)?;
    asm!(e; test(rsi, rsi); je(no_set); mov(gs(slot::GOOD_SET), rsi););
    e.here(no_set)?;
    asm!(e; test(rdx, rdx); je(no_old); mov(gs(slot::GOOD_OLD), rdx););
    e.here(no_old)?;
    Ok(())
}

/// Before `rt_sigreturn`: the mask becomes what the kernel saved, or the handler made of that.
/// Also before a call that may change the mask and whose return nobody sees to.
pub(super) fn forget_mask(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(slot::MASK), 0); inc(gs(slot::SIGRETURNS)););
    Ok(())
}

/// Before a call that must not be followed by old answers.
pub(super) fn before_others(e: &mut Emitter, number: u32) -> Emitted {
    if CHANGE_USER.contains(&number) {
        user_changes(e)?;
    }
    if changes_maps(number) {
        maps_change(e)?;
    }
    Ok(())
}

/// Whether memory may be gone afterwards, or be another's.
fn changes_maps(number: u32) -> bool {
    matches!(number, MMAP | MPROTECT | MUNMAP | BRK | MREMAP | MADVISE | SHMDT | PKEY_MPROTECT)
}

fn maps_change(e: &mut Emitter) -> Emitted {
    asm!(e; mov(r11, IMAGE + image::MAPS););
    e.a.lock().inc(qword_ptr(r11))
}

fn user_changes(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(slot::USER_CHANGES), 1););
    for answer in USER_ANSWERS {
        asm!(e; mov(gs(slot::ANSWERS + 8 * answer), 0););
    }
    Ok(())
}

/// Before a call whose number is in eax: forgets what it might change.
pub(super) fn forget(e: &mut Emitter) -> Emitted {
    let (user, code, done) = (e.label(), e.label(), e.label());
    forget_mask(e)?;
    maps_change(e)?;
    for number in CHANGE_USER {
        asm!(e; cmp(eax, number as i32); je(user););
    }
    for number in [MMAP, MPROTECT, PKEY_MPROTECT] {
        asm!(e; cmp(eax, number as i32); je(code););
    }
    e.here(done)?;
    e.cold(move |e| {
        e.here(user)?;
        user_changes(e)?;
        asm!(e; jmp(done););
        e.here(code)?;
        asm!(e; test(edx, PROT_EXEC); je(done););
        seal(e)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}

/// Behind a call that has made memory executable, perhaps: nothing is answered before the launcher
/// has looked at it, and never where that can't be done once and for all.
pub(super) fn code_comes(e: &mut Emitter, number: u32) -> Emitted {
    let (comes, sealed, done) = (e.label(), e.label(), e.label());
    if !brings_code(number) {
        return Ok(());
    }
    asm!(e; test(edx, PROT_EXEC); jne(comes););
    e.here(done)?;
    e.cold(move |e| {
        e.here(comes)?;
        if number == MMAP {
            asm!(e; test(r8d, r8d); js(sealed); test(r10d, MAP_SHARED); jne(sealed););
            asm!(e; mov(r11, IMAGE + image::ELIDE); mov(dword_ptr(r11), 0); jmp(done););
        }
        e.here(sealed)?;
        seal(e)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}

/// Nothing is answered any more. Lost: r11.
pub(super) fn seal(e: &mut Emitter) -> Emitted {
    asm!(e; mov(r11, IMAGE + image::UNSEEN); mov(dword_ptr(r11), 1););
    asm!(e; mov(r11, IMAGE + image::ELIDE); mov(dword_ptr(r11), 0););
    Ok(())
}

/// Behind a call that was made: remembers its answer, which holds for the thread's life.
pub(super) fn remember(e: &mut Emitter, answer: u64) -> Emitted {
    let done = e.label();
    unless_shared(e, done)?;
    let user = USER_ANSWERS.contains(&answer);
    if user {
        asm!(e; cmp(eax, OVERFLOW_USER); je(done););
    }
    asm!(e; mov(ecx, eax); bts(rcx, 32u32); mov(gs(slot::ANSWERS + 8 * answer), rcx););
    if user {
        // Stored first, looked at then: a handler may have changed it since the call.
        asm!(e; cmp(gs32(slot::USER_CHANGES), 0); je(done); mov(gs(slot::ANSWERS + 8 * answer), 0););
    }
    e.here(done)?;
    Ok(())
}
