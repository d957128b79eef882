//! Handles calls that may hit our memory in the process: they map over it, unmap it or protect it, or limit the
//! process's memory, of which ours is a part. The launcher is asked first, and lets go of the process if it must.

use super::asking_site::AskingSite;
use super::emitter::{Emitted, Emitter, asm, at};
use crate::layout::{BLOBS_AT, BLOBS_SIZE, IMAGE, Question, areas, code, image};
use crate::numbers::{
    MADVISE, MMAP, MPROTECT, MREMAP, MUNMAP, PKEY_MPROTECT, PRLIMIT64, REMAP_FILE_PAGES, SETRLIMIT, SHMAT,
};
use iced_x86::code_asm::*;

/// Calls that are examined only because they may hit our memory.
pub(super) const OTHERS: [u32; 7] = [MUNMAP, MREMAP, MADVISE, SHMAT, REMAP_FILE_PAGES, SETRLIMIT, PRLIMIT64];

/// Flags of `mmap` by which the kernel must use the address, or fail.
const FIXED: i32 = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;

/// Returns true if a call of this number may hit our memory, or limit it.
pub(super) fn may_touch(number: u32) -> bool {
    OTHERS.contains(&number) || matches!(number, MMAP | MPROTECT | PKEY_MPROTECT)
}

/// Asks the launcher before a call of this number if the call hits our memory, or sets a limit that our memory counts
/// against. Lost: rcx, r11, flags.
pub(super) fn ask_before(e: &mut Emitter, number: u32, asking: AskingSite) -> Emitted {
    let (question, go) = (e.label(), e.label());
    match number {
        MMAP => {
            let elsewhere = e.label();
            asm!(e; test(r10d, FIXED); je(elsewhere););
            if_ours(e, (rdi, rsi), question)?;
            e.here(elsewhere)?;
        }
        MREMAP => {
            let moves = e.label();
            if_ours(e, (rdi, rsi), question)?;
            asm!(e; test(r10d, libc::MREMAP_FIXED); je(moves););
            if_ours(e, (r8, rdx), question)?;
            e.here(moves)?;
        }
        // Only the kernel knows the length of the shared memory.
        SHMAT => asm!(e; test(edx, libc::SHM_REMAP); jne(question);),
        SETRLIMIT => if_bounds_memory(e, edi, question)?,
        PRLIMIT64 => {
            let asks = e.label();
            asm!(e; test(rdx, rdx); je(asks););
            if_bounds_memory(e, esi, question)?;
            e.here(asks)?;
        }
        _ => if_ours(e, (rdi, rsi), question)?,
    }
    e.here(go)?;
    e.cold(move |e| {
        e.here(question)?;
        asking.ask(e, Question::Last)?;
        asm!(e; jmp(go););
        Ok(())
    });
    Ok(())
}

/// Goes to `label` if `resource` is a limit that our memory may count against.
fn if_bounds_memory(e: &mut Emitter, resource: AsmRegister32, label: CodeLabel) -> Emitted {
    asm!(e; cmp(resource, libc::RLIMIT_AS as i32); je(label); cmp(resource, libc::RLIMIT_DATA as i32); je(label););
    Ok(())
}

/// Goes to `label` if the memory whose start and length are in the two registers may overlap ours: the areas at the
/// same address in all programs, or code near a file. Lost: rcx, r11, flags.
fn if_ours(e: &mut Emitter, (start, len): (AsmRegister64, AsmRegister64), label: CodeLabel) -> Emitted {
    let (near, next, other, none) = (e.label(), e.label(), e.label(), e.label());
    asm!(e; mov(rcx, BLOBS_AT + BLOBS_SIZE); cmp(start, rcx); jae(near););
    asm!(e; lea(r11, qword_ptr(start + len)); mov(rcx, areas::AT); cmp(r11, rcx); ja(label););
    e.here(near)?;
    asm!(e; mov(rcx, IMAGE + image::CODES););
    e.here(next)?;
    asm!(e; mov(r11, at(rcx, code::START)); test(r11, r11); je(none););
    asm!(e; add(r11, at(rcx, code::SIZE)); cmp(r11, start); jbe(other););
    asm!(e; lea(r11, qword_ptr(start + len)); cmp(r11, at(rcx, code::START)); ja(label););
    e.here(other)?;
    asm!(e; add(rcx, image::CODE_ENTRY as i32); jmp(next););
    e.here(none)?;
    Ok(())
}
