//! Compares the stack above a context with the node's trunk, see [`crate::layout::trunk`].

use super::emitter::{Emitted, Emitter, asm, at, gs, gs_at};
use crate::layout::{IMAGE, NODE_SIZE, Saved, image, node, record, slot, trunk};
use crate::numbers::RT_SIGPROCMASK;
use iced_x86::code_asm::*;

/// Cycles of a context's calls from which on a sample is worth its price, a twentieth to an eighth of a millisecond.
/// Cheaper contexts are sampled less often.
pub(super) const CRUMB_CYCLES: u32 = 1 << 18;
/// Scratch word of the slot: the end of the trunk's pairs.
const END: u64 = slot::RING_SCRATCH;
/// Scratch word of the slot: the address to which places are relative.
const BASE: u64 = slot::RING_SCRATCH + 8;
/// Invalid argument of `rt_sigprocmask`: the kernel reads the mask and then fails.
const NO_WAY: u32 = u32::MAX;
/// Mask that keeps the page of an address.
const PAGE: i32 = -4096;

/// Compares the stack above the context with the node's trunk, at a call at which a window is due, and notes in the
/// record if they are equal. If not, goes to `ask` at a thread's first call there, and at later ones as soon as its
/// calls have taken about as long as asking takes. In: the node, in the slot. Lost: rax, rcx, rdx, rsi, rdi, r8 to
/// r11.
pub(super) fn compare(e: &mut Emitter, ask: CodeLabel) -> Emitted {
    let (known, done) = (e.label(), e.label());
    asm!(e; mov(r11, gs(slot::ANSWER)); mov(rax, at(r11, node::TRANSFERS)); bt(rax, node::TRUNK_BIT); jc(known););
    e.here(done)?;
    e.cold(move |e| {
        let (from_rsp, next, there, page, same, other) =
            (e.label(), e.label(), e.label(), e.label(), e.label(), e.label());
        e.here(known)?;
        // Only a system call tells if the memory exists; if none may be made, nothing is compared.
        asm!(e; mov(rax, IMAGE + image::QUIET); cmp(dword_ptr(rax), 0); jne(done););
        asm!(e; lea(r8, qword_ptr(r11 + (NODE_SIZE + trunk::PAIRS) as i32)););
        asm!(e; mov(rcx, at(r11, NODE_SIZE + trunk::SIZE)); mov(r9, gs(Saved::Rsp.offset())); mov(rax, r9););
        asm!(e; btr(rcx, trunk::FROM_RBP_BIT); jnc(from_rsp); mov(rax, gs(Saved::Rbp.offset())););
        e.here(from_rsp)?;
        asm!(e; mov(gs(BASE), rax); add(rcx, r8); mov(gs(END), rcx); and(r9, PAGE););
        // r8: the next pair, r9: the last page that was found to exist.
        let next = e.here(next)?;
        asm!(e; cmp(r8, gs(END)); jae(same); mov(rsi, qword_ptr(r8)); add(rsi, gs(BASE)); test(esi, 7); jne(other););
        asm!(e; mov(rax, rsi); and(rax, PAGE); cmp(rax, r9); jne(page););
        let there = e.here(there)?;
        asm!(e; mov(rax, qword_ptr(rsi)); cmp(rax, qword_ptr(r8 + 8)); jne(other); add(r8, trunk::PAIR as i32); jmp(next););
        e.here(page)?;
        asm!(e; mov(r9, rax); mov(rax, rsi); sub(rax, gs(Saved::Rsp.offset())); cmp(rax, trunk::REACH as i32); jae(done););
        asm!(e; mov(edi, NO_WAY); xor(edx, edx); mov(r10d, 8); mov(eax, RT_SIGPROCMASK); syscall(););
        asm!(e; cmp(eax, -libc::EINVAL); je(there););
        e.here(other)?;
        differs(e, done, ask)?;
        e.here(same)?;
        weight(e)?;
        asm!(e; inc(gs_at(rsi, record::TRUNK_LOOKS)); add(gs_at(rsi, record::TRUNK_SEEN), rax); jmp(done););
        Ok(())
    });
    Ok(())
}

/// Handles a stack that differs from the trunk: goes to `ask`, or notes it and goes to `done`. In: r8 the pair that
/// differs.
fn differs(e: &mut Emitter, done: CodeLabel, ask: CodeLabel) -> Emitted {
    let (note, not_longer) = (e.label(), e.label());
    weight(e)?;
    asm!(e; mov(rcx, IMAGE + image::LOOKED_ENOUGH); cmp(dword_ptr(rcx), 0); jne(note););
    asm!(e; cmp(rdx, 1); je(ask); mov(ecx, CRUMB_CYCLES); cmp(gs_at(rsi, record::CYCLES), rcx); jae(ask););
    e.here(note)?;
    asm!(e; add(gs_at(rsi, record::TRUNK_OTHERS), rax); mov(rcx, gs(END)); sub(rcx, r8););
    asm!(e; cmp(rcx, gs_at(rsi, record::TRUNK_MISSED)); jbe(not_longer); mov(gs_at(rsi, record::TRUNK_MISSED), rcx););
    e.here(not_longer)?;
    asm!(e; jmp(done););
    Ok(())
}

/// Computes in rax the number of calls for which a sample of this one stands; rdx: number of the thread's call at the
/// node, whose record is rsi. Lost: rcx, r11.
fn weight(e: &mut Emitter) -> Emitted {
    asm!(e; mov(r11, gs(slot::ANSWER)); mov(rsi, at(r11, node::RECORD)); mov(rdx, gs_at(rsi, record::ENTERED)););
    asm!(e; mov(rax, rdx); or(rax, 1); bsr(rcx, rax); mov(eax, 1); shl(rax, cl););
    Ok(())
}
