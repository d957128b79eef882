//! Answers `rt_sigprocmask` in place if it does not change the signal mask.

use super::elision::{count, may_answer};
use super::emitter::{Emitted, Emitter, asm, gs, gs_at};
use super::entry::Entry;
use super::shared_slot::unless_shared;
use crate::layout::{IMAGE, elide, image, slot};
use crate::numbers::{
    BRK, MADVISE, MMAP, MPROTECT, MREMAP, MUNMAP, PKEY_MPROTECT, PROCESS_MADVISE, RT_SIGPROCMASK, RT_SIGRETURN, SHMAT,
    SHMDT,
};
use iced_x86::code_asm::*;

const SIG_BLOCK: i32 = 0;
const SIG_UNBLOCK: i32 = 1;
const SIG_SETMASK: i32 = 2;
/// Bit of a stored mask that is set if the mask is known: that of SIGKILL, which can't be blocked.
const KNOWN: u32 = 8;
/// Bit of SIGSTOP, which can't be blocked.
const STOP: u32 = 18;
/// Bytes of a page.
const PAGE: i32 = 4096;
/// Last offset in a page at which a mask fits.
const LAST: i32 = PAGE - 8;
/// PROT_READ and PROT_WRITE.
const READ_WRITE: i32 = 3;
/// MAP_FIXED: the mapping may replace other memory.
const MAP_FIXED: i32 = 0x10;
/// Lowest advice that may unmap memory, MADV_HWPOISON: after lower ones the memory can be touched.
const TAKES_AWAY: i32 = 100;
/// 2^32 divided by the golden ratio: the top bits of the product spread pages over the table.
const SPREADS: i32 = 0x9e37_79b9_u32 as i32;
/// Lowest number outside the table: x32 calls, which are unknown here.
const UNKNOWN_NUMBER: i32 = 512;
/// Calls that may change the mask.
const MASK_CALLS: [u32; 2] = [RT_SIGPROCMASK, RT_SIGRETURN];
/// Calls that may take memory away.
const MAP_CALLS: [u32; 10] =
    [MMAP, MPROTECT, MUNMAP, BRK, MREMAP, MADVISE, SHMDT, SHMAT, PKEY_MPROTECT, PROCESS_MADVISE];
/// Bits to shift an address of the image's area: `IMAGE >> AREA_SHIFT` is the same for all of its slots.
const AREA_SHIFT: u32 = 40;

/// Returns true if calls of this number may change the mask, or take memory away.
pub(super) fn must_be_seen(number: u32) -> bool {
    MASK_CALLS.contains(&number) || MAP_CALLS.contains(&number)
}

/// Answers the call if it changes nothing, and goes to `answered`; otherwise falls through.
pub(super) fn try_answer(e: &mut Emitter, entry: Entry, answered: CodeLabel) -> Emitted {
    let (real, changes) = (e.label(), e.label());
    unchanged(e, real, changes)?;
    count(e, entry)?;
    asm!(e; xor(eax, eax); jmp(answered););
    e.here(changes)?;
    asm!(e; mov(gs(slot::WHY), slot::CHANGES as i32););
    e.here(real)?;
    asm!(e; mov(rcx, gs(slot::SIGRETURNS)); mov(gs(slot::MASK_SEQUENCE), rcx););
    asm!(e; mov(rcx, IMAGE + image::MAPS); mov(rcx, qword_ptr(rcx)); mov(gs(slot::MAPS_BEFORE), rcx););
    Ok(())
}

/// Prepares the call right before it is made: if the program does not ask for the old mask, we do, since the sets to
/// add or to remove alone do not tell the new one.
pub(super) fn lend_old(e: &mut Emitter) -> Emitted {
    let own = e.label();
    asm!(e; test(rdx, rdx); jne(own); mov(rdx, gs(slot::SELF)); add(rdx, slot::OLD_MASK as i32););
    e.here(own)?;
    Ok(())
}

/// Sets rdx back to the program's value, zero, behind the call if [`lend_old`] replaced it. In a child that a signal
/// handler forked here, rdx points to the slot of another thread. Changes rcx.
pub(super) fn take_old_back(e: &mut Emitter) -> Emitted {
    let own = e.label();
    asm!(e; mov(rcx, rdx); shr(rcx, AREA_SHIFT); cmp(ecx, (IMAGE >> AREA_SHIFT) as i32); jne(own););
    asm!(e; mov(ecx, edx); and(ecx, (slot::SIZE - 1) as i32); cmp(ecx, slot::OLD_MASK as i32); jne(own););
    asm!(e; xor(edx, edx););
    e.here(own)?;
    Ok(())
}

/// Goes to `real` unless the thread's rseq area shows that no signal has come since the mask was last learnt. A pointer
/// of the program's own shows nothing.
fn undisturbed(e: &mut Emitter, real: CodeLabel) -> Emitted {
    asm!(e; mov(rcx, gs(slot::RSEQ)); test(rcx, rcx); je(real););
    asm!(e; mov(r11, IMAGE + image::RSEQ_CS); cmp(qword_ptr(rcx + 8), r11); jne(real););
    Ok(())
}

/// Computes into ecx the offset, from a table's start, of the entry for the page of `pointer`. A page has two places,
/// of which `second` chooses one: pages of two stacks that share the first place rarely share the second.
fn entry_of(e: &mut Emitter, pointer: AsmRegister64, second: bool) -> Emitted {
    const PLACES: i32 = (slot::GOOD_LEN - 1) as i32;
    asm!(e; mov(rcx, pointer); shr(rcx, 12u32););
    if second {
        asm!(e; imul_3(ecx, ecx, SPREADS); shr(ecx, 32 - slot::GOOD_LEN.ilog2()););
        asm!(e; shl(ecx, slot::GOOD_SHIFT); add(ecx, (slot::GOOD_LEN << slot::GOOD_SHIFT) as i32););
    } else {
        asm!(e; and(ecx, PLACES); shl(ecx, slot::GOOD_SHIFT););
    }
    Ok(())
}

/// Goes to `not` unless a mask at `pointer` can be touched as the kernel would. Lost: rcx, r11.
fn touchable(e: &mut Emitter, pointer: AsmRegister64, good: u64, not: CodeLabel) -> Emitted {
    let (other, fine) = (e.label(), e.label());
    asm!(e; mov(rcx, pointer); and(ecx, PAGE - 1); cmp(ecx, LAST); ja(not););
    asm!(e; mov(rcx, pointer); xor(rcx, rsp); test(rcx, -PAGE); je(fine););
    for (second, miss) in [(false, other), (true, not)] {
        entry_of(e, pointer, second)?;
        asm!(e; mov(r11, gs_at(rcx, good)); xor(r11, pointer); test(r11, -PAGE); jne(miss););
        asm!(e; mov(r11, IMAGE + image::MAPS); mov(r11, qword_ptr(r11)); cmp(r11, gs_at(rcx, good + 8)););
        if second {
            asm!(e; jne(not););
        } else {
            asm!(e; je(fine););
            e.here(other)?;
        }
    }
    e.here(fine)?;
    Ok(())
}

/// Falls through if `rt_sigprocmask(how, set, old, 8)` would change nothing, after writing `old`. Goes to `changes` if
/// it would change something or fail, and to `real`, with the reason in the slot, if that is unknown.
fn unchanged(e: &mut Emitter, real: CodeLabel, changes: CodeLabel) -> Emitted {
    let (set, block, old, done, no_old, with_set) = (e.label(), e.label(), e.label(), e.label(), e.label(), e.label());
    let (unknown, elsewhere, down) = (e.label(), e.label(), e.label());
    undisturbed(e, unknown)?;
    may_answer(e, elide::MASK, r11, down)?;
    asm!(e; cmp(r10, 8); jne(changes); test(rdx, rdx); je(no_old););
    touchable(e, rdx, slot::GOOD_WRITTEN, elsewhere)?;
    e.here(no_old)?;
    asm!(e; test(rsi, rsi); jne(with_set); jmp(old););
    e.here(with_set)?;
    touchable(e, rsi, slot::GOOD_READ, elsewhere)?;
    asm!(e; mov(r11, qword_ptr(rsi)); btr(r11, KNOWN); btr(r11, STOP););
    asm!(e; mov(rcx, gs(slot::MASK)); bt(rcx, KNOWN); jnc(unknown););
    asm!(e; cmp(edi, SIG_SETMASK); je(set); cmp(edi, SIG_BLOCK); je(block); cmp(edi, SIG_UNBLOCK); jne(changes););
    asm!(e; test(rcx, r11); jne(changes); jmp(old););
    e.here(block)?;
    asm!(e; not(rcx); test(rcx, r11); jne(changes); jmp(old););
    e.here(set)?;
    asm!(e; bts(r11, KNOWN); cmp(rcx, r11); jne(changes););
    e.here(old)?;
    // Read the mask again: a handler that ran since has made it unknown.
    asm!(e; mov(rcx, gs(slot::MASK)); btr(rcx, KNOWN); jnc(unknown););
    asm!(e; test(rdx, rdx); je(done); mov(qword_ptr(rdx), rcx););
    e.here(done)?;
    e.cold(move |e| {
        for (label, why) in [(unknown, slot::UNKNOWN), (elsewhere, slot::ELSEWHERE), (down, slot::DOWN)] {
            e.here(label)?;
            asm!(e; mov(gs(slot::WHY), why as i32); jmp(real););
        }
        Ok(())
    });
    Ok(())
}

/// Learns, behind a `rt_sigprocmask` that was made, the new mask, and if it changed. The slot holds the old mask if the
/// program did not ask for it. Lost: rcx, r11, flags.
pub(super) fn mask_changed(e: &mut Emitter) -> Emitted {
    let (asked, before, add, have, unknown, done) = (e.label(), e.label(), e.label(), e.label(), e.label(), e.label());
    let (failed, needed, told, out) = (e.label(), e.label(), e.label(), e.label());
    asm!(e; test(rax, rax); jne(failed););
    unless_shared(e, out)?;
    // Use our own knowledge first: other threads may write to the program's memory.
    asm!(e; mov(rax, gs(slot::MASK)); btr(rax, KNOWN); jc(before););
    asm!(e; test(rdx, rdx); jne(asked); mov(rax, gs(slot::OLD_MASK)); jmp(before););
    e.here(asked)?;
    asm!(e; mov(rax, qword_ptr(rdx)););
    e.here(before)?;
    asm!(e; mov(rcx, rax); test(rsi, rsi); je(have););
    // If the old mask was written over the new one, the new one is lost.
    asm!(e; mov(rcx, rsi); sub(rcx, rdx); add(rcx, 7); cmp(rcx, 14); jbe(unknown););
    asm!(e; mov(r11, qword_ptr(rsi)); btr(r11, KNOWN); btr(r11, STOP);
        mov(rcx, r11); cmp(edi, SIG_SETMASK); je(have);
        mov(rcx, rax); cmp(edi, SIG_BLOCK); je(add); not(r11); and(rcx, r11); jmp(have););
    e.here(add)?;
    asm!(e; or(rcx, r11););
    e.here(have)?;
    // rax is the old mask, rcx the new one; the report needs to know if they differ.
    asm!(e; cmp(rax, rcx); jne(needed););
    asm!(e; mov(r11, gs(slot::WHY)); and(r11d, (slot::WHYS - 1) as i32);
        inc(qword_ptr(r11 * 8 + slot::MISSED as i32).gs()););
    e.here(told)?;
    asm!(e; mov(rax, rcx););
    undisturbed(e, unknown)?;
    asm!(e; bts(rax, KNOWN); mov(gs(slot::MASK), rax););
    // Store first, then check: a handler that ends in between is seen either way.
    asm!(e; mov(rcx, gs(slot::SIGRETURNS)); cmp(rcx, gs(slot::MASK_SEQUENCE)); jne(unknown););
    touched(e)?;
    asm!(e; jmp(done););
    e.here(unknown)?;
    asm!(e; mov(gs(slot::MASK), 0););
    e.here(done)?;
    asm!(e; xor(eax, eax););
    e.here(out)?;
    e.cold(move |e| {
        const NEEDED: u64 = slot::NEEDED + 8 * slot::ANSWER_COUNT;
        e.here(needed)?;
        asm!(e; inc(gs(NEEDED)); jmp(told););
        e.here(failed)?;
        asm!(e; inc(gs(NEEDED)); jmp(out););
        Ok(())
    });
    Ok(())
}

/// Notes that the kernel has just touched both masks, if there are two.
fn touched(e: &mut Emitter) -> Emitted {
    for (pointer, good) in [(rsi, slot::GOOD_READ), (rdx, slot::GOOD_WRITTEN)] {
        let (put, none) = (e.label(), e.label());
        asm!(e; test(pointer, pointer); je(none););
        // Use the first place, unless another page has it whose entry is still valid.
        entry_of(e, pointer, false)?;
        asm!(e; mov(r11, gs_at(rcx, good)); xor(r11, pointer); test(r11, -PAGE); je(put););
        asm!(e; mov(r11, gs(slot::MAPS_BEFORE)); cmp(r11, gs_at(rcx, good + 8)); jne(put););
        entry_of(e, pointer, true)?;
        e.here(put)?;
        // The entry must never have the number for one page and the address of another, even if a handler's call comes
        // in between.
        asm!(e; mov(gs_at(rcx, good + 8), 0); mov(gs_at(rcx, good), pointer););
        asm!(e; mov(r11, gs(slot::MAPS_BEFORE)); mov(gs_at(rcx, good + 8), r11););
        e.here(none)?;
    }
    Ok(())
}

/// Forgets the mask before `rt_sigreturn`, which restores the one that the kernel saved, or the handler changed. Also
/// before a call that may change the mask and whose return is not hooked.
pub(super) fn forget_mask(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(slot::MASK), 0); inc(gs(slot::SIGRETURNS)););
    Ok(())
}

/// Notes, before a call with this number that may unmap memory or give it to another owner, that mappings change.
pub(super) fn before_maps(e: &mut Emitter, number: u32) -> Emitted {
    let (changes, done) = (e.label(), e.label());
    match number {
        MUNMAP | BRK | MREMAP | SHMDT | SHMAT | PROCESS_MADVISE => return maps_change(e),
        // Without MAP_FIXED, the mapping is new and lies in unused memory.
        MMAP => asm!(e; test(r10d, MAP_FIXED); jne(changes);),
        MADVISE => asm!(e; cmp(edx, TAKES_AWAY); jae(changes);),
        MPROTECT | PKEY_MPROTECT => {
            asm!(e; mov(r11d, edx); and(r11d, READ_WRITE); cmp(r11d, READ_WRITE); jne(changes);)
        }
        _ => return Ok(()),
    }
    e.here(done)?;
    e.cold(move |e| {
        e.here(changes)?;
        maps_change(e)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}

fn maps_change(e: &mut Emitter) -> Emitted {
    asm!(e; mov(r11, IMAGE + image::MAPS););
    e.a.lock().inc(qword_ptr(r11))
}

/// Forgets, before a call whose number is in eax, the mask or the known pages that the call may change. Lost: r11.
pub(super) fn forget_by_number(e: &mut Emitter) -> Emitted {
    let (all, mask, maps, done) = (e.label(), e.label(), e.label(), e.label());
    asm!(e; cmp(eax, UNKNOWN_NUMBER); jae(all););
    for number in MASK_CALLS {
        asm!(e; cmp(eax, number as i32); je(mask););
    }
    for number in MAP_CALLS {
        asm!(e; cmp(eax, number as i32); je(maps););
    }
    e.here(done)?;
    e.cold(move |e| {
        e.here(all)?;
        maps_change(e)?;
        e.here(mask)?;
        forget_mask(e)?;
        asm!(e; jmp(done););
        e.here(maps)?;
        maps_change(e)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}
