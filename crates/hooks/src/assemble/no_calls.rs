//! Recognises, in the thread, a file without calls that a loader maps again: there is nothing to hook in it.

use super::emitter::{Emitted, Emitter, asm, at, gs, gs32};
use crate::layout::{GLOBAL, IMAGE, Question, Saved, global, image, no_calls, slot};
use crate::numbers::FSTAT;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// Offsets of an entry's fields, each with the offset of the same field in a file's state.
const OF_FILE: [(u64, usize); 7] = [
    (no_calls::INODE, offset_of!(libc::stat, st_ino)),
    (no_calls::DEVICE, offset_of!(libc::stat, st_dev)),
    (no_calls::FILE_SIZE, offset_of!(libc::stat, st_size)),
    (no_calls::MODIFIED, offset_of!(libc::stat, st_mtime)),
    (no_calls::MODIFIED + 8, offset_of!(libc::stat, st_mtime_nsec)),
    (no_calls::CHANGED, offset_of!(libc::stat, st_ctime)),
    (no_calls::CHANGED + 8, offset_of!(libc::stat, st_ctime_nsec)),
];

const _: () = assert!(size_of::<libc::stat>() as u64 <= slot::REQUEST_LEN * slot::MOST_REQUESTS);

/// Continues at `done` if the question is about a file that is known to have no calls; rbp is kept.
///
/// The thread must be alone, or its descriptor might belong to another file by now. It has its slot to itself: no
/// handler's calls get here meanwhile.
pub(super) fn known(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let (next, other, ask) = (e.label(), e.label(), e.label());
    let saved = |r: Saved| gs(r.offset());
    asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48u32); and(eax, 0x3f); cmp(eax, Question::Mapped as i32); jne(ask););
    asm!(e; mov(r11, IMAGE); mov(rax, at(r11, image::LOADER)); test(rax, rax); je(ask););
    asm!(e; cmp(rax, gs(slot::ANSWER)); jne(ask); cmp(dword_ptr(r11 + image::QUIET as i32), 0); jne(ask););
    asm!(e; cmp(qword_ptr(r11 + image::NEXT_SLOT as i32), 0); jne(ask););
    asm!(e; mov(rdi, saved(Saved::R8)); mov(rsi, gs(slot::SELF)); add(rsi, slot::REQUESTS as i32););
    asm!(e; mov(eax, FSTAT); syscall(); test(rax, rax); jne(ask););
    // r10 becomes protection and flags in the form that an entry has.
    asm!(e; mov(r10, saved(Saved::R10)); shl(r10, 32u32); mov(edx, gs32(Saved::Rdx.offset())););
    asm!(e; or(r10, rdx); mov(r11, GLOBAL + global::NO_CALLS););
    e.here(next)?;
    asm!(e; cmp(qword_ptr(r11 + no_calls::INODE as i32), 0); je(ask););
    for (entry, of) in OF_FILE {
        asm!(e; mov(rax, at(r11, entry)); cmp(rax, qword_ptr(rsi + of as i32)); jne(other););
    }
    asm!(e; cmp(r10, at(r11, no_calls::HOW)); jne(other););
    for (entry, argument) in [(no_calls::LEN, Saved::Rsi), (no_calls::OFFSET, Saved::R9)] {
        asm!(e; mov(rax, at(r11, entry)); cmp(rax, saved(argument)); jne(other););
    }
    asm!(e; mov(r11, IMAGE); inc(at(r11, image::UNASKED_FILES)); jmp(done););
    e.here(other)?;
    asm!(e; add(r11, no_calls::SIZE as i32); jmp(next););
    e.here(ask)?;
    Ok(())
}
