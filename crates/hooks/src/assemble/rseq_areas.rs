//! Our rseq areas, for threads whose program registers none: they show if a thread was scheduled out, so that waiting
//! can be told apart from working.
//!
//! A thread has at most one area. The program's own calls of `rseq` must have the same result as without us, so ours is
//! unregistered before them. Threads get one when they begin, the first thread from the launcher. [`slot::AREA_BUSY`]
//! keeps out a signal handler that comes in between; at worst a thread has no area.

use super::emitter::{Emitted, Emitter, asm, at, gs, gs32};
use super::shared_slot::unless_shared;
use crate::layout::{IMAGE, areas, image, slot};
use crate::numbers::{CLONE3, RSEQ};
use iced_x86::code_asm::*;

/// RSEQ_FLAG_UNREGISTER of include/uapi/linux/rseq.h.
const UNREGISTER: i32 = 1;

/// Situation in which a thread gets an area.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// A thread that shares memory with its maker; the kernel has dropped its area.
    Shares,
    /// A process that has a copy of its maker's memory, with its maker's area.
    Copies,
    /// One of these two: the flags of `clone3` lie in memory that we must not read.
    Unknown,
    /// A thread that existed before, and has called `rseq`.
    Again,
}

impl Begins {
    /// Returns the situation of a thread made by a call of this number; `copies` is true if it is known to have a
    /// copy of its maker's memory.
    pub(super) fn of(number: u32, copies: bool) -> Self {
        match (copies, number) {
            (true, _) => Self::Copies,
            (false, CLONE3) => Self::Unknown,
            (false, _) => Self::Shares,
        }
    }
}

/// Registers that the call needs, which are saved in the slot meanwhile.
const KEPT: [AsmRegister64; 5] = [rax, rdi, rsi, rdx, r10];

/// Gives the thread an area of ours, if its program has none for it. Lost: rcx, r11, flags.
pub(super) fn begin(e: &mut Emitter, begins: Begins) -> Emitted {
    let (wanted, done) = (e.label(), e.label());
    asm!(e; mov(rcx, IMAGE + image::GIVES_AREAS); cmp(dword_ptr(rcx), 0); jne(wanted););
    e.here(done)?;
    e.cold(move |e| {
        let (fresh, took, none) = (e.label(), e.label(), e.label());
        e.here(wanted)?;
        asm!(e; mov(rcx, IMAGE + image::QUIET); cmp(dword_ptr(rcx), 0); jne(done););
        if begins == Begins::Again {
            asm!(e; cmp(gs(slot::RSEQ), 0); jne(done););
            unless_shared(e, done)?;
        }
        keep(e, done)?;
        match begins {
            Begins::Shares | Begins::Again => {}
            Begins::Copies => {
                asm!(e; mov(rdi, gs(slot::RSEQ)); test(rdi, rdi); je(fresh););
                // The program's own area stays with it.
                asm!(e; mov(rcx, areas::AT); mov(rax, rdi); sub(rax, rcx); cmp(rax, areas::SIZE as i32); jae(none););
                asm!(e; mov(gs(slot::RSEQ), 0););
                ask(e, UNREGISTER)?;
            }
            Begins::Unknown => {
                asm!(e; mov(rdi, gs(slot::PARENT)););
                area_of_slot(e)?;
                ask(e, UNREGISTER)?;
            }
        }
        e.here(fresh)?;
        asm!(e; mov(rdi, gs(slot::SELF)););
        area_of_slot(e)?;
        // Older kernels check the old contents of this word.
        asm!(e; mov(at(rdi, 8), 0););
        ask(e, 0)?;
        asm!(e; test(eax, eax); je(took); cmp(eax, -libc::EBUSY); jne(none););
        e.here(took)?;
        asm!(e; mov(gs(slot::RSEQ), rdi););
        e.here(none)?;
        give_back(e)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}

/// Unregisters our area before the program's own `rseq`, which would fail otherwise. Lost: rcx, r11, flags.
pub(super) fn give_way(e: &mut Emitter) -> Emitted {
    let (ours, done) = (e.label(), e.label());
    asm!(e; mov(rcx, IMAGE + image::GIVES_AREAS); cmp(dword_ptr(rcx), 0); jne(ours););
    e.here(done)?;
    e.cold(move |e| {
        let theirs = e.label();
        e.here(ours)?;
        unless_shared(e, done)?;
        keep(e, done)?;
        asm!(e; mov(rdi, gs(slot::SELF)););
        area_of_slot(e)?;
        asm!(e; cmp(gs(slot::RSEQ), rdi); jne(theirs); mov(gs(slot::RSEQ), 0););
        e.here(theirs)?;
        // Unregister whatever the slot says: a handler may have jumped away before the slot was written. If the
        // kernel knows another area, the call has no effect.
        ask(e, UNREGISTER)?;
        give_back(e)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}

/// Saves the registers, or goes to `busy` if they are saved already.
fn keep(e: &mut Emitter, busy: CodeLabel) -> Emitted {
    asm!(e; bts(gs32(slot::AREA_BUSY), 0u32); jc(busy););
    for (nth, register) in (0..).zip(KEPT) {
        asm!(e; mov(gs(slot::AREA_ASIDE + 8 * nth), register););
    }
    Ok(())
}

fn give_back(e: &mut Emitter) -> Emitted {
    for (nth, register) in (0..).zip(KEPT) {
        asm!(e; mov(register, gs(slot::AREA_ASIDE + 8 * nth)););
    }
    asm!(e; mov(gs32(slot::AREA_BUSY), 0););
    Ok(())
}

/// Computes in rdi the area of the slot whose address is in rdi. Lost: rcx.
fn area_of_slot(e: &mut Emitter) -> Emitted {
    asm!(e; mov(rcx, IMAGE + image::SLOTS); sub(rdi, rcx); shr(rdi, slot::SHIFT - areas::SHIFT););
    asm!(e; mov(rcx, areas::AT); add(rdi, rcx););
    Ok(())
}

/// Registers the area at rdi, or unregisters it. eax: the kernel's result. Lost: rsi, rdx, r10, rcx, r11.
fn ask(e: &mut Emitter, flags: i32) -> Emitted {
    asm!(e; mov(r10, IMAGE + image::RSEQ_SIGNATURE); mov(r10d, dword_ptr(r10)););
    asm!(e; mov(esi, areas::AREA as i32); mov(edx, flags); mov(eax, RSEQ); syscall(););
    Ok(())
}
