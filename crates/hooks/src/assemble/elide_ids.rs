//! Answers calls for a thread's ids in place. For unchanged signal masks see [`super::elide_masks`].
//!
//! **Answers** hold for a thread's life: its ids always, its user until it first changes that. A user without a name in
//! its namespace (65534) may get one from outside until the namespace's names are given ([`image::USERS_NAMED`]), so it
//! is asked for again. The parent's id is not answered: it changes when the parent dies.
//!
//! This requires seeing every call of the process. If a file has places that are not counted, no call is answered;
//! memory that becomes executable clears [`image::ELIDE`], for good if it is no file that can be examined.

use super::call_kinds::brings_code;
use super::elide_masks::{self, before_maps, forget_by_number};
use super::elision::{count, may_answer};
use super::emitter::{Emitted, Emitter, asm, gs, gs32};
use super::entry::Entry;
use super::shared_slot::unless_shared;
use crate::layout::{IMAGE, elide, image, slot};
use crate::numbers::{
    CLONE, CLONE3, GETEUID, GETPID, GETTID, GETUID, MMAP, MPROTECT, PKEY_MPROTECT, RSEQ, RT_SIGPROCMASK, SETNS,
    SETRESUID, SETREUID, SETUID, UNSHARE,
};
use iced_x86::code_asm::*;

const PROT_EXEC: i32 = 4;
const MAP_SHARED: i32 = 1;
/// User id that the kernel shows for a user without a name in its namespace (by default also that of the user
/// "nobody").
const OVERFLOW_USER: i32 = 65534;
/// Calls after which the thread may have another user.
const CHANGE_USER: [u32; 5] = [SETUID, SETREUID, SETRESUID, UNSHARE, SETNS];
/// Flag of clone's family: the new process begins a user namespace.
const CLONE_NEWUSER: i32 = 0x1000_0000;

/// The calls that [`slot::ANSWERS`] answer.
const ANSWERED: [u32; slot::ANSWER_COUNT as usize] = [GETPID, GETTID, GETUID, GETEUID];

/// Returns the bits of [`crate::layout::image::ELIDE`] with the numbers of their calls, in the order of
/// [`slot::NEEDED`].
pub fn elided_calls() -> impl Iterator<Item = (u32, u32)> {
    let answers = (0..).zip(ANSWERED).map(|(index, number)| (1u32 << index, number));
    answers.chain([(elide::MASK, RT_SIGPROCMASK)])
}

/// Returns the index in [`slot::ANSWERS`] of the answer to calls of this number.
pub(super) fn answer(number: u32) -> Option<u64> {
    ANSWERED.iter().position(|n| *n == number).map(|i| i as u64)
}

/// Indexes of the answers that depend on the thread's user.
const USER_ANSWERS: [u64; 2] = [2, 3];

/// Returns true if calls of this number may be answered in place.
pub(super) fn elidable(number: u32) -> bool {
    number == RT_SIGPROCMASK || answer(number).is_some()
}

/// Returns true if calls can be answered only where each call of this number is seen, or each of a site whose number
/// is unknown.
#[must_use]
pub fn must_be_seen(number: Option<u32>) -> bool {
    number.is_none_or(|n| CHANGE_USER.contains(&n) || n == RSEQ || brings_code(n) || elide_masks::must_be_seen(n))
}

/// Answers the call if the answer is known and goes to `answered`, otherwise falls through.
pub(super) fn try_answer(e: &mut Emitter, number: u32, entry: Entry, answered: CodeLabel) -> Emitted {
    let Some(index) = answer(number) else { return elide_masks::try_answer(e, entry, answered) };
    let real = e.label();
    known(e, index, entry, (answered, real))?;
    e.here(real)?;
    Ok(())
}

/// Goes to `answered` with an answer that is known and allowed, otherwise to `real`.
fn known(e: &mut Emitter, index: u64, entry: Entry, (answered, real): (CodeLabel, CodeLabel)) -> Emitted {
    may_answer(e, 1 << index, rcx, real)?;
    asm!(e; cmp(gs(slot::ANSWERS + 8 * index), 0); je(real););
    count(e, entry)?;
    // Read the answer again: a handler may have run since.
    asm!(e; mov(rcx, gs(slot::ANSWERS + 8 * index)); btr(rcx, 32u32); jnc(real); mov(eax, ecx); jmp(answered););
    Ok(())
}

/// Does the work of [`try_answer`] for a call whose number is in eax. If the answer is not known, notes its index,
/// since the number is gone when the call returns. Every call made by number notes it anew, so that nothing remains
/// of a handler's call, or of one that never returned.
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

/// Stores the result of a call made by number as the answer whose index [`try_by_number`] noted, if it noted one.
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

/// Forgets, before a call, answers that it makes invalid.
pub(super) fn before_others(e: &mut Emitter, number: u32) -> Emitted {
    if CHANGE_USER.contains(&number) {
        user_changes(e)?;
    }
    if matches!(number, UNSHARE | SETNS) {
        other_namespace(e)?;
    }
    before_maps(e, number)
}

/// Notes that the thread may be in another user namespace, whose users may still be given names.
fn other_namespace(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs32(slot::USERS_UNNAMED), 1););
    Ok(())
}

/// Does the work of [`other_namespace`] in the thread or process that a call of clone's family has made, if that may be
/// in a new user namespace. The flags of `clone` are in edi; those of `clone3` lie in memory that need not be readable,
/// but no thread of the same process begins one. `identified` is true if the new slot's ids are known. Lost: rcx,
/// flags.
pub(super) fn begins(e: &mut Emitter, number: u32, identified: bool) -> Emitted {
    let done = e.label();
    match number {
        CLONE => asm!(e; test(edi, CLONE_NEWUSER); je(done);),
        CLONE3 if identified => {
            asm!(e; mov(rcx, gs(slot::PARENT)); mov(ecx, dword_ptr(rcx + slot::PID as i32)););
            asm!(e; cmp(gs32(slot::PID), ecx); je(done););
        }
        CLONE3 => {}
        _ => return Ok(()),
    }
    other_namespace(e)?;
    e.here(done)?;
    Ok(())
}

fn user_changes(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs32(slot::USER_CHANGES), 1););
    for answer in USER_ANSWERS {
        asm!(e; mov(gs(slot::ANSWERS + 8 * answer), 0););
    }
    Ok(())
}

/// Forgets, before a call whose number is in eax, the answers that the call may make invalid.
pub(super) fn forget(e: &mut Emitter) -> Emitted {
    let (user, code, done) = (e.label(), e.label(), e.label());
    forget_by_number(e)?;
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
        other_namespace(e)?;
        asm!(e; jmp(done););
        e.here(code)?;
        asm!(e; test(edx, PROT_EXEC); je(done););
        seal(e)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}

/// Handles, behind a call, memory that may have become executable: no call is answered before the launcher has examined
/// it, and never again if that can't be done once and for all.
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

/// Stops answering for good. Lost: r11.
pub(super) fn seal(e: &mut Emitter) -> Emitted {
    asm!(e; mov(r11, IMAGE + image::UNSEEN); mov(dword_ptr(r11), 1););
    asm!(e; mov(r11, IMAGE + image::ELIDE); mov(dword_ptr(r11), 0););
    Ok(())
}

/// Emits code behind the call that stores its result in the slot: later calls are answered from it. Counts the call as
/// needed if it is the thread's first.
pub(super) fn remember(e: &mut Emitter, answer: u64) -> Emitted {
    let (known, done) = (e.label(), e.label());
    unless_shared(e, done)?;
    let user = USER_ANSWERS.contains(&answer);
    if user {
        let (nameless, stays) = (e.label(), e.label());
        asm!(e; cmp(eax, OVERFLOW_USER); je(nameless););
        e.here(stays)?;
        e.cold(move |e| {
            e.here(nameless)?;
            asm!(e; cmp(gs32(slot::USERS_UNNAMED), 0); jne(done););
            asm!(e; mov(r11, IMAGE + image::USERS_NAMED); cmp(dword_ptr(r11), 0); jne(stays); jmp(done););
            Ok(())
        });
    }
    asm!(e; cmp(gs(slot::ANSWERS + 8 * answer), 0); jne(known););
    if user {
        // The answer isn't stored once the thread may change its user: don't count this call as the first.
        asm!(e; cmp(gs32(slot::USER_CHANGES), 0); jne(known););
    }
    asm!(e; inc(gs(slot::NEEDED + 8 * answer)););
    e.here(known)?;
    asm!(e; mov(ecx, eax); bts(rcx, 32u32); mov(gs(slot::ANSWERS + 8 * answer), rcx););
    if user {
        // Store first, then check: a handler may have changed the user since the call.
        asm!(e; cmp(gs32(slot::USER_CHANGES), 0); je(done); mov(gs(slot::ANSWERS + 8 * answer), 0););
    }
    e.here(done)?;
    Ok(())
}
