//! Walks down a calling-context tree, from a stack to a node.
//!
//! A word is read only where memory is known to be readable ([`crate::layout::stack`]); otherwise [`super::stack_walk`]
//! walks.

use super::emitter::{Emitted, Emitter, asm, at, gs};
use crate::layout::{GLOBAL, NODE_SIZE, NUMBERS, Question, TABLE_LEN, global, node, slot};
use iced_x86::code_asm::{AsmRegister64, CodeLabel, eax, ecx, qword_ptr, r11, r11d, rax, rbp, rcx, rsp};
use systoll_model::Sysno;

/// The start of a walk.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// The root at this address.
    Root(u64),
    /// The entry for the number in eax of the table at this address.
    Numbers(u64),
}

/// Bounds in the slot between which words of the stack can be read.
#[derive(Clone, Copy)]
struct Bounds {
    low: u64,
    high: u64,
    /// The question of a walk that comes to a word outside.
    asks: Question,
}

/// Does the work of [`walk`] at the entry of a function of the vDSO, where rax is free.
pub(super) fn walk_in_vdso(e: &mut Emitter, root: u64) -> Emitted {
    let (hit, start) = (e.label(), Start::Root(root));
    let bounds = Bounds { low: slot::VDSO_LOW, high: slot::VDSO_HIGH, asks: Question::VdsoStack };
    asm!(e; mov(r11, root););
    contexts(e, start, hit, (rsp, rax), bounds)?;
    e.here(hit)?;
    Ok(())
}

/// Leaves the node of this context in r11, or the site's (or number's) root if it can't be known. `base` is the
/// register from which return addresses lie at constant distances, if there is one. `scratch` and flags are lost.
pub(super) fn walk(e: &mut Emitter, start: Start, base: Option<AsmRegister64>, scratch: AsmRegister64) -> Emitted {
    let hit = e.label();
    match start {
        Start::Root(root) => asm!(e; mov(r11, root);),
        Start::Numbers(table) => by_number(e, table, hit)?,
    }
    if let Some(base) = base {
        let asks = if base == rbp { Question::Frame } else { Question::Stack };
        contexts(e, start, hit, (base, scratch), Bounds { low: slot::STACK_LOW, high: slot::STACK_HIGH, asks })?;
    }
    e.here(hit)?;
    Ok(())
}

/// Loads the root of the number in eax into r11. Asks for a number that this site never had; without an answer the call
/// counts at the number's own root, which belongs to no site.
fn by_number(e: &mut Emitter, table: u64, hit: CodeLabel) -> Emitted {
    let (within, beyond, ask, asked) = (e.label(), e.label(), e.label(), e.label());
    let last = (NUMBERS - 1) as u32;
    asm!(e; mov(ecx, eax); cmp(ecx, last); ja(beyond););
    e.here(within)?;
    e.cold(move |e| {
        let unknown = e.label();
        e.here(beyond)?;
        asm!(e; sub(ecx, (Sysno::X32 - NUMBERS as u32) as i32); cmp(ecx, last); jbe(unknown););
        asm!(e; cmp(ecx, TABLE_LEN as i32); jb(within););
        e.here(unknown)?;
        asm!(e; mov(ecx, last); jmp(within););
        Ok(())
    });
    asm!(e; mov(r11, table); mov(r11, qword_ptr(r11 + rcx * 8)); test(r11, r11); je(ask););
    e.cold(move |e| {
        let within = e.label();
        e.here(ask)?;
        asm!(e; mov(r11, table););
        e.ask(Question::Number, asked)?;
        e.here(asked)?;
        asm!(e; mov(rcx, table); cmp(r11, rcx); jne(hit););
        asm!(e; mov(r11d, eax); cmp(r11d, last); jbe(within); mov(r11d, last););
        e.here(within)?;
        let shift = NODE_SIZE.trailing_zeros();
        asm!(e; shl(r11d, shift); mov(rcx, GLOBAL + global::NUMBER_ROOTS); add(r11, rcx); jmp(hit););
        Ok(())
    });
    Ok(())
}

/// Walks from a root in r11 down to the node whose return addresses are those on the stack.
fn contexts(
    e: &mut Emitter,
    start: Start,
    hit: CodeLabel,
    (base, scratch): (AsmRegister64, AsmRegister64),
    bounds: Bounds,
) -> Emitted {
    let (level, check, sibling, found, down) = (e.label(), e.label(), e.label(), e.label(), e.label());
    let (beyond, unreadable) = (e.label(), e.label());
    // The comparison is signed, so that the sum with an offset is a program's address only if it is higher.
    asm!(e; cmp(base, gs(bounds.low)); jl(unreadable););
    asm!(e; mov(r11, at(r11, node::CHILD)););
    e.here(level)?;
    // The offset of a level of frames has a mark, so that the sum is beyond all memory.
    asm!(e; mov(scratch, at(r11, node::OFFSET)); add(scratch, base); cmp(scratch, gs(bounds.high)); jae(beyond););
    asm!(e; mov(scratch, qword_ptr(scratch)););
    e.here(check)?;
    asm!(e; cmp(scratch, at(r11, node::WORD)); jne(sibling););
    e.here(found)?;
    asm!(e; mov(scratch, at(r11, node::CHILD)); test(scratch, scratch); jne(down););
    e.cold(move |e| {
        let (end, open, asked) = (e.label(), e.label(), e.label());
        e.here(beyond)?;
        asm!(e; mov(scratch, at(r11, node::OFFSET)); test(scratch, scratch); jns(unreadable););
        by_frame(e, Ways { found, end, unreadable }, (base, scratch), bounds.high)?;
        e.here(down)?;
        asm!(e; mov(r11, scratch); jmp(level););
        e.here(unreadable)?;
        asm!(e; mov(r11, at(r11, node::ROOT)););
        keep_argument(e, scratch)?;
        e.ask(bounds.asks, asked)?;
        e.here(sibling)?;
        match start {
            Start::Root(_) => {
                asm!(e; cmp(at(r11, node::SIBLING), node::OTHERS as i32); jbe(end););
                asm!(e; mov(r11, at(r11, node::SIBLING)); jmp(check););
            }
            Start::Numbers(_) => {
                // No third register is free to keep the word.
                asm!(e; mov(scratch, at(r11, node::SIBLING)); cmp(scratch, node::OTHERS as i32); jbe(end););
                asm!(e; mov(r11, at(r11, node::OFFSET)); mov(r11, qword_ptr(base + r11)); xchg(r11, scratch););
                asm!(e; jmp(check););
            }
        }
        e.here(end)?;
        asm!(e; jb(open); mov(r11, at(r11, node::ROOT)); jmp(hit););
        e.here(open)?;
        asm!(e; cmp(at(r11, node::SIBLING), node::REST as i32); je(hit); mov(r11, at(r11, node::ROOT)););
        keep_argument(e, scratch)?;
        e.ask(Question::Context, asked)?;
        e.here(asked)?;
        if scratch == rax {
            asm!(e; mov(rcx, rax););
        }
        asm!(e; jmp(hit););
        Ok(())
    });
    Ok(())
}

/// Saves rcx if it is an argument, since asking uses it.
fn keep_argument(e: &mut Emitter, scratch: AsmRegister64) -> Emitted {
    if scratch == rax {
        asm!(e; mov(rax, rcx););
    }
    Ok(())
}

/// Does the work of [`walk`] before the call by which the thread ends, when its stack, from rsp on, may be another
/// thread's by now.
pub(super) fn walk_for_the_last_time(e: &mut Emitter, root: u64) -> Emitted {
    let hit = e.label();
    asm!(e; mov(r11, root););
    e.ask(Question::LastStack, hit)?;
    e.here(hit)?;
    Ok(())
}

/// Continuations of a walk from a level.
struct Ways {
    /// Continuation with the matching node in r11.
    found: CodeLabel,
    /// Continuation with the last node of the level in r11, if none matches; the flags compare its sibling with
    /// [`node::OTHERS`].
    end: CodeLabel,
    /// Continuation with any node of the tree in r11, if a word is not known to be readable.
    unreadable: CodeLabel,
}

/// Compares the frame pointers of a level. In: its first node in r11, its offset in `scratch`. `high` is the word with the
/// upper bound of readable memory.
fn by_frame(e: &mut Emitter, ways: Ways, (base, scratch): (AsmRegister64, AsmRegister64), high: u64) -> Emitted {
    let (one, next, in_rbp, have) = (e.label(), e.label(), e.label(), e.label());
    asm!(e; btr(scratch, 63u32); btr(scratch, node::IN_RBP_BIT); jc(in_rbp););
    asm!(e; add(scratch, base); cmp(scratch, gs(high)); jae(ways.unreadable););
    asm!(e; mov(scratch, qword_ptr(scratch)); jmp(have););
    e.here(in_rbp)?;
    asm!(e; mov(scratch, rbp););
    e.here(have)?;
    asm!(e; sub(scratch, base););
    let one = e.here(one)?;
    asm!(e; cmp(scratch, at(r11, node::WORD)); je(ways.found););
    asm!(e; cmp(at(r11, node::SIBLING), node::OTHERS as i32); ja(next); jmp(ways.end););
    e.here(next)?;
    asm!(e; mov(r11, at(r11, node::SIBLING)); jmp(one););
    Ok(())
}
