//! The walk down a tree by a thread that can't read its stack as it is, see [`crate::layout::stack`]: a part of the
//! hand-shake's code, behind the same lock.
//!
//! The kernel is asked about each word before it is read, in a way that cannot fault, and what is learnt becomes the
//! bounds for the walks that follow. Before a thread's last call the kernel copies the words. Where no system call
//! may be made the launcher is asked for the context, as by a walk that finds no node; it also says how far the memory
//! reaches.

use super::emitter::{Emitted, Emitter, asm, at, gs, gs32};
use super::shared_slot::unless_shared;
use super::stack_bounds::STACKS;
use super::who::{quiet, who};
use crate::layout::{Question, Saved, node, slot, stack};
use crate::numbers::{PROCESS_VM_READV, RT_SIGPROCMASK};
use iced_x86::code_asm::*;

/// What is asked, in words that are free while nothing is written into windows.
const ASKED: u64 = slot::RING_SCRATCH;
/// Where offsets are counted from.
const BASE: u64 = slot::RING_SCRATCH + 8;
/// The node that a word is read for.
const NODE: u64 = slot::RING_SCRATCH + 16;
/// Address of the first word, zero: none was read yet.
const FIRST: u64 = slot::RING_SCRATCH + 24;
/// Address of the last.
const LAST: u64 = slot::RING_SCRATCH + 32;

/// No way in which `rt_sigprocmask` can change a mask.
const NO_WAY: i32 = i32::MAX;
const PAGE: i32 = 4096;

/// Where a walk goes on that can't read a word.
#[derive(Clone, Copy)]
struct Ways {
    /// There is none.
    unreadable: CodeLabel,
    /// The launcher is to find out.
    launcher: CodeLabel,
}

/// Answers a question about a stack, if it is one, and goes to `done`. What it can't answer it makes a
/// [`Question::Context`]. Lost: all but rbp.
pub(super) fn by_itself(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let (own, ask) = (e.label(), e.label());
    asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48u32); and(eax, 0x3f); sub(eax, Question::Stack as i32););
    asm!(e; cmp(eax, Question::LastStack as i32 - Question::Stack as i32); jbe(own););
    e.here(ask)?;
    e.cold(move |e| {
        let (context, rsp_is_base, last, known) = (e.label(), e.label(), e.label(), e.label());
        let ways = Ways { unreadable: e.label(), launcher: e.label() };
        e.here(own)?;
        asm!(e; mov(gs(ASKED), rax); mov(r9, gs(Saved::Rsp.offset())); cmp(eax, Question::Frame as i32 - Question::Stack as i32););
        asm!(e; jne(rsp_is_base); mov(r9, gs(Saved::Rbp.offset())););
        e.here(rsp_is_base)?;
        asm!(e; mov(gs(BASE), r9); mov(gs(FIRST), 0););
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
        // Nothing was there, or no more.
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

/// Goes to `last` before the thread's last call, where nothing is to be learnt.
fn before_last(e: &mut Emitter, last: CodeLabel) -> Emitted {
    asm!(e; cmp(gs32(ASKED), Question::LastStack as i32 - Question::Stack as i32); je(last););
    Ok(())
}

/// Takes the bounds of a stack on which the thread was before, if it is on one again. In: r9 the base. Lost: rax,
/// rcx, rdx.
fn go_back(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let next = e.label();
    STACKS.end(e, rcx)?;
    let next = e.here(next)?;
    asm!(e; sub(rcx, stack::ENTRY as i32); jb(done););
    asm!(e; mov(rax, STACKS.word(rcx, 0)); mov(rdx, STACKS.word(rcx, 8)); cmp(r9, rax); jb(next); cmp(r9, rdx); jae(next););
    set(e, rax, rdx)
}

/// Sets both bounds.
fn set(e: &mut Emitter, low: AsmRegister64, high: AsmRegister64) -> Emitted {
    asm!(e; mov(gs(slot::STACK_HIGH), 0); mov(gs(slot::STACK_LOW), low); mov(gs(slot::STACK_HIGH), high););
    Ok(())
}

/// Walks from the root that stands as the answer in the slot: to `found` with the node that counts as the answer, to
/// `new` where there is none yet, by `ways` where a word can't be read. In: the base in r9.
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
    e.here(end)?;
    asm!(e; jb(new); jmp(found););
    e.cold(move |e| {
        let (in_rbp, have, one, rest) = (e.label(), e.label(), e.label(), e.label());
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
        asm!(e; cmp(rcx, node::REST as i32); jb(new); je(rest); cmp(rcx, node::OTHERS as i32); je(found););
        asm!(e; mov(r8, rcx); jmp(one););
        e.here(rest)?;
        asm!(e; mov(gs(slot::ANSWER), r8); jmp(found););
        Ok(())
    });
    Ok(())
}

/// rax: the word at the address in rsi, or where it can't be read goes by `ways`. r8 and r9 are kept, all else is lost.
fn read(e: &mut Emitter, ways: Ways) -> Emitted {
    let (last, known, noted, done) = (e.label(), e.label(), e.label(), e.label());
    before_last(e, last)?;
    asm!(e; cmp(rsi, gs(slot::STACK_LOW)); jb(noted); cmp(rsi, gs(slot::STACK_HIGH)); jb(known););
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

/// Has the kernel copy the word at rsi. rax: how many bytes of it. r8 and r9 are kept, all else is lost.
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

/// Makes what was read the bounds, with what lies between, and goes to `done`; to `wide` where the launcher is to be
/// asked how far the memory reaches.
fn learn(e: &mut Emitter, done: CodeLabel, wide: CodeLabel) -> Emitted {
    let (page, alone, whole, put, joins) = (e.label(), e.label(), e.label(), e.label(), e.label());
    before_last(e, done)?;
    unless_shared(e, done)?;
    asm!(e; mov(r8, gs(FIRST)); mov(r9, gs(LAST)); test(r8, r8); je(done););
    // Nothing was learnt where all lies in the bounds already.
    let news = e.label();
    asm!(e; cmp(r8, gs(slot::STACK_LOW)); jb(news); cmp(r9, gs(slot::STACK_HIGH)); jb(done););
    e.here(news)?;
    asm!(e; and(r8, -PAGE); add(r9, stack::LAST as i32); and(r9, -PAGE););
    // What lies between, page by page.
    asm!(e; mov(rax, r9); sub(rax, r8); cmp(rax, stack::MOST_PAGES as i32 * PAGE); ja(alone); mov(rsi, r8););
    e.here(page)?;
    asm!(e; add(rsi, PAGE); cmp(rsi, r9); jae(whole););
    ask(e, alone)?;
    asm!(e; jmp(page););
    // The first word's page alone, and the launcher is asked when that was so often.
    e.here(alone)?;
    asm!(e; lea(r9, qword_ptr(r8 + (PAGE - stack::LAST as i32))); jmp(put););
    e.here(whole)?;
    asm!(e; add(r9, PAGE - stack::LAST as i32););
    // r8 and r9: bounds. Where they meet those that hold they are one.
    asm!(e; mov(rcx, gs(slot::STACK_LOW)); mov(rdx, gs(slot::STACK_HIGH)); lea(rax, qword_ptr(rdx + stack::LAST as i32)););
    asm!(e; cmp(rdx, 0); je(put); cmp(r8, rax); ja(put); lea(rax, qword_ptr(r9 + stack::LAST as i32)); cmp(rcx, rax); jbe(joins););
    e.here(put)?;
    // The oldest gives way.
    STACKS.put(e, r8, r9)?;
    set(e, r8, r9)?;
    asm!(e; mov(rax, gs(slot::STACKS_MET)); cmp(rax, gs(slot::STACKS_ASK)); jb(done););
    asm!(e; cmp(rax, stack::ASK_FROM as i32); jb(done); add(rax, rax); mov(gs(slot::STACKS_ASK), rax); jmp(wide););
    e.here(joins)?;
    let next = e.label();
    asm!(e; cmp(rcx, r8); cmovb(r8, rcx); cmp(rdx, r9); cmova(r9, rdx););
    // So they are where they are kept.
    STACKS.end(e, r10)?;
    let next = e.here(next)?;
    asm!(e; sub(r10, stack::ENTRY as i32); jb(put); cmp(STACKS.word(r10, 0), rcx); jne(next); cmp(STACKS.word(r10, 8), rdx); jne(next););
    asm!(e; mov(STACKS.word(r10, 8), 0); mov(STACKS.word(r10, 0), r8); mov(STACKS.word(r10, 8), r9););
    set(e, r8, r9)?;
    asm!(e; jmp(done););
    Ok(())
}

/// Takes what the launcher says about the memory that the thread's stack lies in. Lost: rax, rcx, rdx.
pub(super) fn take_answer(e: &mut Emitter) -> Emitted {
    let (take, done) = (e.label(), e.label());
    asm!(e; cmp(gs(slot::STACK_ASKED), 0); jne(take););
    e.here(done)?;
    e.cold(move |e| {
        e.here(take)?;
        asm!(e; mov(rdx, gs(slot::STACK_ANSWER_HIGH)); mov(rax, gs(slot::STACK_ANSWER_LOW)););
        asm!(e; mov(gs(slot::STACK_ASKED), 0); mov(gs(slot::STACK_ANSWER_HIGH), 0); test(rdx, rdx); je(done););
        unless_shared(e, done)?;
        STACKS.put(e, rax, rdx)?;
        set(e, rax, rdx)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}
