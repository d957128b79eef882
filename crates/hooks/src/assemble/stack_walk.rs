//! Walks down a tree in a thread that can't read its stack directly, see [`crate::layout::stack`]: a part of the
//! hand-shake's code, behind the same lock.
//!
//! The kernel is asked about each word before it is read, in a way that can't fault, and the result becomes the bounds
//! for later walks. Before a thread's last call the kernel copies the words. If no system call may be made, the
//! launcher is asked for the context, as by a walk that finds no node; it also tells the bounds of the memory.

use super::emitter::{Emitted, Emitter, asm, at, gs, gs_at, gs32};
use super::shared_slot::unless_shared;
use super::stack_bounds::{STACKS, overlapping};
use super::who::{quiet, who};
use crate::layout::{Question, Saved, node, slot, stack};
use crate::numbers::{PROCESS_VM_READV, RT_SIGPROCMASK};
use iced_x86::code_asm::*;

/// Scratch word: the question. These words are unused while no window is written.
const ASKED: u64 = slot::RING_SCRATCH;
/// Scratch word: address to which offsets are relative.
const BASE: u64 = slot::RING_SCRATCH + 8;
/// Scratch word: the node whose word is being read.
const NODE: u64 = slot::RING_SCRATCH + 16;
/// Scratch word: address of the first word read; zero: none was read yet.
const FIRST: u64 = slot::RING_SCRATCH + 24;
/// Scratch word: address of the last word read.
const LAST: u64 = slot::RING_SCRATCH + 32;

/// Scratch word: distance of the bounds that count here from [`slot::STACK_LOW`] and [`slot::STACK_HIGH`].
const PAIR: u64 = slot::RING_SCRATCH + 40;
/// That distance for [`slot::VDSO_LOW`] and [`slot::VDSO_HIGH`].
const VDSO: u64 = slot::VDSO_LOW - slot::STACK_LOW;

/// Invalid argument of `rt_sigprocmask`: the kernel reads the mask and then fails.
const NO_WAY: i32 = i32::MAX;
const PAGE: i32 = 4096;

/// Continuations of a walk that can't read a word.
#[derive(Clone, Copy)]
struct Ways {
    /// Continuation if the memory does not exist.
    unreadable: CodeLabel,
    /// Continuation if the launcher must find out.
    launcher: CodeLabel,
}

/// Answers a question about a stack and goes to `done`. Turns a question that it can't answer into a
/// [`Question::Context`]. Lost: all but rbp.
pub(super) fn by_itself(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let (own, ask) = (e.label(), e.label());
    asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48u32); and(eax, 0x3f); sub(eax, Question::Stack as i32););
    asm!(e; cmp(eax, Question::VdsoStack as i32 - Question::Stack as i32); jbe(own););
    e.here(ask)?;
    e.cold(move |e| {
        let (context, rsp_is_base, last, known, usual) = (e.label(), e.label(), e.label(), e.label(), e.label());
        let ways = Ways { unreadable: e.label(), launcher: e.label() };
        e.here(own)?;
        asm!(e; mov(gs(ASKED), rax); mov(r9, gs(Saved::Rsp.offset())); cmp(eax, Question::Frame as i32 - Question::Stack as i32););
        asm!(e; jne(rsp_is_base); mov(r9, gs(Saved::Rbp.offset())););
        e.here(rsp_is_base)?;
        asm!(e; mov(gs(BASE), r9); mov(gs(FIRST), 0); mov(gs(PAIR), 0););
        asm!(e; cmp(eax, Question::VdsoStack as i32 - Question::Stack as i32); jne(usual); mov(gs(PAIR), VDSO as i32););
        e.here(usual)?;
        before_last(e, last)?;
        go_back(e, known)?;
        e.here(known)?;
        let (new, found) = (e.label(), e.label());
        walk(e, found, new, ways)?;
        e.here(found)?;
        learn(e, done, ways.launcher)?;
        e.here(new)?;
        learn(e, context, ways.launcher)?;
        e.here(last)?;
        quiet(e, ways.launcher)?;
        who(e)?;
        asm!(e; mov(r9, gs(BASE)); jmp(known););
        // The word's memory does not exist, or not any more.
        e.here(ways.unreadable)?;
        asm!(e; jmp(done););
        e.here(ways.launcher)?;
        asm!(e; mov(gs(slot::STACK_ASKED), 1););
        e.here(context)?;
        asm!(e; mov(rax, gs(slot::RESUME)); shl(rax, 16u32); shr(rax, 16u32); bts(rax, 48u32););
        asm!(e; mov(gs(slot::RESUME), rax); jmp(ask););
        Ok(())
    });
    Ok(())
}

/// Goes to `last` before the thread's last call: bounds learnt there would never be used.
fn before_last(e: &mut Emitter, last: CodeLabel) -> Emitted {
    asm!(e; cmp(gs32(ASKED), Question::LastStack as i32 - Question::Stack as i32); je(last););
    Ok(())
}

/// Reuses the bounds of a stack on which the thread was before, if it is on one again. In: r9 the base. Lost: rax, rcx,
/// rdx, r11.
fn go_back(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let next = e.label();
    STACKS.end(e, rcx)?;
    let next = e.here(next)?;
    asm!(e; sub(rcx, stack::ENTRY as i32); jb(done););
    asm!(e; mov(rax, STACKS.word(rcx, 0)); mov(rdx, STACKS.word(rcx, 8)); cmp(r9, rax); jb(next); cmp(r9, rdx); jae(next););
    set(e, rax, rdx)
}

/// Stores both bounds of the stack in the slot. Lost: r11.
fn set(e: &mut Emitter, low: AsmRegister64, high: AsmRegister64) -> Emitted {
    asm!(e; mov(r11, gs(PAIR)); mov(gs_at(r11, slot::STACK_HIGH), 0););
    asm!(e; mov(gs_at(r11, slot::STACK_LOW), low); mov(gs_at(r11, slot::STACK_HIGH), high););
    Ok(())
}

/// Walks from the root that is the answer in the slot. Goes to `found` with the node that counts as the answer, to
/// `new` if there is none yet, by `ways` if a word can't be read. In: the base in r9.
fn walk(e: &mut Emitter, found: CodeLabel, new: CodeLabel, ways: Ways) -> Emitted {
    let (level, check, down, end, frame) = (e.label(), e.label(), e.label(), e.label(), e.label());
    asm!(e; mov(r8, gs(slot::ANSWER)); mov(r8, at(r8, node::CHILD)););
    e.here(level)?;
    asm!(e; mov(rsi, at(r8, node::OFFSET)); test(rsi, rsi); js(frame); add(rsi, r9););
    read(e, ways)?;
    e.here(check)?;
    asm!(e; cmp(rax, at(r8, node::WORD)); je(down); mov(rcx, at(r8, node::SIBLING)););
    asm!(e; cmp(rcx, node::OTHERS as i32); jbe(end); mov(r8, rcx); jmp(check););
    e.here(down)?;
    asm!(e; mov(rcx, at(r8, node::CHILD)); xchg(r8, rcx); test(r8, r8); jne(level););
    asm!(e; mov(gs(slot::ANSWER), rcx); jmp(found););
    // The flags tell if others count at the root, which is the answer already.
    e.here(end)?;
    asm!(e; je(found); cmp(rcx, node::REST as i32); jb(new); mov(gs(slot::ANSWER), r8); jmp(found););
    e.cold(move |e| {
        let (in_rbp, have, one) = (e.label(), e.label(), e.label());
        e.here(frame)?;
        asm!(e; btr(rsi, 63u32); btr(rsi, node::IN_RBP_BIT); jc(in_rbp); add(rsi, r9););
        read(e, ways)?;
        asm!(e; jmp(have););
        e.here(in_rbp)?;
        asm!(e; mov(rax, gs(Saved::Rbp.offset())););
        e.here(have)?;
        asm!(e; sub(rax, r9););
        e.here(one)?;
        asm!(e; cmp(rax, at(r8, node::WORD)); je(down); mov(rcx, at(r8, node::SIBLING)););
        asm!(e; cmp(rcx, node::OTHERS as i32); jbe(end); mov(r8, rcx); jmp(one););
        Ok(())
    });
    Ok(())
}

/// Reads the word at the address in rsi into rax, or continues by `ways` if it can't be read. r8 and r9 are kept, all
/// else is lost.
fn read(e: &mut Emitter, ways: Ways) -> Emitted {
    let (last, known, noted, done) = (e.label(), e.label(), e.label(), e.label());
    before_last(e, last)?;
    asm!(e; mov(r11, gs(PAIR)); cmp(rsi, gs_at(r11, slot::STACK_LOW)); jb(noted); cmp(rsi, gs_at(r11, slot::STACK_HIGH)); jb(known););
    e.here(noted)?;
    quiet(e, ways.launcher)?;
    ask(e, ways.unreadable)?;
    e.here(known)?;
    asm!(e; cmp(gs(FIRST), 0); mov(gs(LAST), rsi); mov(rax, qword_ptr(rsi)); jne(done); mov(gs(FIRST), rsi););
    e.here(done)?;
    e.cold(move |e| {
        e.here(last)?;
        copy(e)?;
        asm!(e; cmp(rax, 8); mov(rax, gs(slot::STACK_WORD)); jne(ways.unreadable); jmp(done););
        Ok(())
    });
    Ok(())
}

/// Goes to `none` unless eight bytes at rsi can be read. Lost: rax, rcx, rdx, rdi, r10, r11.
fn ask(e: &mut Emitter, none: CodeLabel) -> Emitted {
    asm!(e; mov(edi, NO_WAY); xor(edx, edx); mov(r10d, 8); mov(eax, RT_SIGPROCMASK); syscall(););
    asm!(e; cmp(eax, -libc::EINVAL); jne(none););
    Ok(())
}

/// Makes the kernel copy the word at rsi. rax: the number of bytes copied. r8 and r9 are kept, all else is lost.
fn copy(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(NODE), r8); mov(rax, gs(slot::SELF)); lea(rdx, qword_ptr(rax + slot::STACK_WORD as i32)););
    asm!(e; mov(gs(slot::RING_VECTORS), rdx); mov(gs(slot::RING_VECTORS + 8), 8););
    asm!(e; mov(gs(slot::RING_VECTORS + 16), rsi); mov(gs(slot::RING_VECTORS + 24), 8););
    asm!(e; lea(rsi, qword_ptr(rax + slot::RING_VECTORS as i32)); lea(r10, qword_ptr(rsi + 16)););
    asm!(e; mov(edi, gs32(slot::PID)); mov(edx, 1); mov(r8d, 1); xor(r9d, r9d);
        mov(eax, PROCESS_VM_READV); syscall(););
    asm!(e; mov(r8, gs(NODE)); mov(r9, gs(BASE)););
    Ok(())
}

/// Makes the pages of the words read, and those between them, the new bounds, and goes to `done`, or to `wide` if the
/// launcher should be asked for the memory's bounds.
fn learn(e: &mut Emitter, done: CodeLabel, wide: CodeLabel) -> Emitted {
    let (page, alone, whole, put, joins) = (e.label(), e.label(), e.label(), e.label(), e.label());
    before_last(e, done)?;
    unless_shared(e, done)?;
    asm!(e; mov(r8, gs(FIRST)); mov(r9, gs(LAST)); test(r8, r8); je(done););
    // If everything lies within the bounds already, there is nothing to learn.
    let news = e.label();
    asm!(e; mov(r11, gs(PAIR)); cmp(r8, gs_at(r11, slot::STACK_LOW)); jb(news); cmp(r9, gs_at(r11, slot::STACK_HIGH)); jb(done););
    e.here(news)?;
    asm!(e; and(r8, -PAGE); add(r9, stack::LAST as i32); and(r9, -PAGE););
    // Check the pages between them one by one.
    asm!(e; mov(rax, r9); sub(rax, r8); cmp(rax, stack::MOST_PAGES as i32 * PAGE); ja(alone); mov(rsi, r8););
    e.here(page)?;
    asm!(e; add(rsi, PAGE); cmp(rsi, r9); jae(whole););
    ask(e, alone)?;
    asm!(e; jmp(page););
    // Remember the first word's page only; the launcher is asked once that has happened often enough.
    e.here(alone)?;
    asm!(e; lea(r9, qword_ptr(r8 + (PAGE - stack::LAST as i32))); jmp(put););
    e.here(whole)?;
    asm!(e; add(r9, PAGE - stack::LAST as i32););
    // r8 and r9 are bounds; if they touch the current ones, the two are joined.
    asm!(e; mov(r11, gs(PAIR)); mov(rcx, gs_at(r11, slot::STACK_LOW)); mov(rdx, gs_at(r11, slot::STACK_HIGH)); lea(rax, qword_ptr(rdx + stack::LAST as i32)););
    asm!(e; cmp(rdx, 0); je(put); cmp(r8, rax); ja(put); lea(rax, qword_ptr(r9 + stack::LAST as i32)); cmp(rcx, rax); jbe(joins););
    e.here(put)?;
    // Replace the oldest entry.
    STACKS.put(e, r8, r9)?;
    set(e, r8, r9)?;
    asm!(e; mov(rax, gs(slot::STACKS_COUNT)); cmp(rax, gs(slot::STACKS_ASK)); jb(done););
    asm!(e; cmp(rax, stack::ASK_FROM as i32); jb(done); add(rax, rax); mov(gs(slot::STACKS_ASK), rax); jmp(wide););
    e.here(joins)?;
    let next = e.label();
    asm!(e; cmp(rcx, r8); cmovb(r8, rcx); cmp(rdx, r9); cmova(r9, rdx););
    // Update the stored entry too.
    STACKS.end(e, r10)?;
    let next = e.here(next)?;
    asm!(e; sub(r10, stack::ENTRY as i32); jb(put); cmp(STACKS.word(r10, 0), rcx); jne(next); cmp(STACKS.word(r10, 8), rdx); jne(next););
    asm!(e; mov(STACKS.word(r10, 8), 0); mov(STACKS.word(r10, 0), r8); mov(STACKS.word(r10, 8), r9););
    set(e, r8, r9)?;
    asm!(e; jmp(done););
    Ok(())
}

/// Takes the launcher's answer about the memory of the thread's stack. Pages of it that the thread has learnt one by one
/// are forgotten: they would be found first, and each goroutine that runs there would bring other bounds. Lost: rax, rcx,
/// rdx, rdi, r11.
pub(super) fn take_answer(e: &mut Emitter) -> Emitted {
    let (take, done) = (e.label(), e.label());
    asm!(e; cmp(gs(slot::STACK_ASKED), 0); jne(take););
    e.here(done)?;
    e.cold(move |e| {
        e.here(take)?;
        asm!(e; mov(rdx, gs(slot::STACK_ANSWER_HIGH)); mov(rdi, gs(slot::STACK_ANSWER_LOW)););
        asm!(e; mov(gs(slot::STACK_ASKED), 0); mov(gs(slot::STACK_ANSWER_HIGH), 0); test(rdx, rdx); je(done););
        unless_shared(e, done)?;
        overlapping(e, rdx)?;
        STACKS.put(e, rdi, rdx)?;
        set(e, rdi, rdx)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}
