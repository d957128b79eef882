//! Buffers of a thread's ring, for windows and samples: taking, resuming, setting aside and closing them.

use super::emitter::{Emitted, Emitter, asm, at, gs, gs_at};
use crate::layout::ring::{self, Share, state};
use crate::layout::{GLOBAL, IMAGE, global, image, look, node, record, slot, want};
use crate::numbers::FUTEX;
use iced_x86::code_asm::*;

/// Multiplier of the seed: 2^64 divided by the golden ratio, as for the error table.
const GOLDEN: u64 = super::on_return::ERROR_HASH;
const FUTEX_WAKE: u32 = 1;

/// Draws 53 random bits into rax. Lost: rdx.
pub(super) fn draw(e: &mut Emitter) -> Emitted {
    let seeded = e.label();
    asm!(e; mov(rax, gs(slot::RING_SEED)); test(rax, rax); jne(seeded););
    asm!(e; mov(rdx, IMAGE + image::SEED); mov(rax, qword_ptr(rdx)); add(rax, gs(slot::TAG)););
    asm!(e; mov(rdx, GOLDEN); imul_2(rax, rdx); or(rax, 1););
    e.here(seeded)?;
    // The steps are those of Marsaglia's xorshift.
    asm!(e; mov(rdx, rax); shl(rdx, 13u32); xor(rax, rdx); mov(rdx, rax); shr(rdx, 7u32); xor(rax, rdx););
    asm!(e; mov(rdx, rax); shl(rdx, 17u32); xor(rax, rdx); mov(gs(slot::RING_SEED), rax); shr(rax, 11u32););
    Ok(())
}

/// Takes a free buffer among those that the pending call may fill, or goes to `none`. In: the call's node, in the
/// slot. rdi: the buffer's offset. Lost: rax.
pub(super) fn free_buffer(e: &mut Emitter, share: Share, none: CodeLabel) -> Emitted {
    let (again, found, known) = (e.label(), e.label(), e.label());
    let end = |count: u64| (slot::RING_HEADERS + count * ring::HEADER) as u32;
    // Threads that found no slot share one, and get no buffer.
    asm!(e; cmp(word_ptr(slot::TAG).gs(), image::SLOT_COUNT as i32); je(none););
    asm!(e; mov(rdi, gs(slot::ANSWER)); mov(rdi, at(rdi, node::RECORD)); mov(rdi, gs_at(rdi, record::ENTERED)););
    asm!(e; mov(eax, end(share.of_first)); cmp(rdi, 1); jbe(known););
    asm!(e; mov(eax, end(share.of_new)); cmp(rdi, ring::NEW as i32); jbe(known); mov(eax, end(share.of_old)););
    e.here(known)?;
    asm!(e; mov(edi, slot::RING_HEADERS as u32););
    e.here(again)?;
    asm!(e; cmp(gs_at(rdi, ring::STATE), state::FREE as i32); je(found););
    asm!(e; add(edi, ring::HEADER as i32); cmp(edi, eax); jb(again); jmp(none););
    e.here(found)?;
    asm!(e; mov(gs_at(rdi, ring::LEN), 0); mov(gs_at(rdi, ring::STATE), state::WRITING as i32););
    go_on_in(e)
}

/// Resumes the buffer whose header is at the offset in rdi. rdi: the buffer's offset.
pub(super) fn go_on_in(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(slot::RING_HEADER), rdi); sub(edi, slot::RING_HEADERS as i32););
    asm!(e; shl(rdi, ring::BUFFER_SHIFT - ring::HEADER.trailing_zeros()); add(rdi, slot::RINGS as i32););
    asm!(e; mov(gs(slot::RING_BUFFER), rdi););
    for word in [slot::RING_UNDER_WAY, slot::RING_NAMED, slot::RING_MISSED] {
        asm!(e; mov(gs(word), 0););
    }
    Ok(())
}

/// Goes to `room` if the buffer has room for another call. r8: its header. Lost: rax.
pub(super) fn is_full(e: &mut Emitter, room: CodeLabel) -> Emitted {
    let full = e.label();
    asm!(e; mov(r8, gs(slot::RING_HEADER)); mov(rax, gs_at(r8, ring::LEN)); cmp(rax, gs(slot::RING_MOST)); jae(full););
    asm!(e; mov(rax, gs(slot::RING_DATA)); sub(rax, gs(slot::RING_BUFFER)); cmp(rax, (ring::BUFFER - ring::ROOM) as i32););
    asm!(e; jbe(room););
    e.here(full)?;
    Ok(())
}

/// Marks the window, or the buffer of samples, as written, unless a process was forked meanwhile, whose slot has
/// none. In: r8 its header. Lost: all but r9.
pub(super) fn close(e: &mut Emitter) -> Emitted {
    let (forked, looks) = (e.label(), e.label());
    asm!(e; mov(rax, gs(slot::WANT)); mov(gs(slot::WANT), want::NOTHING as i32); cmp(eax, want::LOOK as i32); je(looks););
    asm!(e; cmp(eax, want::WRITING as i32); jne(forked); mov(gs_at(r8, ring::STATE), state::WRITTEN as i32););
    written(e)?;
    wake(e, ring::WAKE_FROM, forked)?;
    e.here(forked)?;
    e.cold(move |e| {
        e.here(looks)?;
        asm!(e; mov(gs(slot::LOOK_HEADER), 0); mov(gs_at(r8, ring::STATE), state::WRITTEN as i32););
        written(e)?;
        wake(e, look::WAKE_FROM, forked)
    });
    Ok(())
}

/// Tells the launcher that there is something to read. Lost: r11.
fn written(e: &mut Emitter) -> Emitted {
    asm!(e; mov(r11, IMAGE + image::WRITTEN););
    e.a.lock().inc(qword_ptr(r11))
}

/// Closes the buffer if it is full, otherwise keeps a buffer of samples for the next one, and goes to `done`. Lost:
/// all but r9.
pub(super) fn leave(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let room = e.label();
    is_full(e, room)?;
    close(e)?;
    asm!(e; jmp(done););
    e.here(room)?;
    asm!(e; cmp(gs(slot::WANT), want::LOOK as i32); jne(done););
    asm!(e; mov(rax, gs(slot::RING_DATA)); mov(gs(slot::LOOK_DATA), rax); mov(gs(slot::WANT), want::NOTHING as i32););
    asm!(e; jmp(done););
    Ok(())
}

/// Wakes the launcher if it sleeps and `from` buffers wait for it, unless no system call may be made, and goes to
/// `done`. A wake-up right before it sleeps is lost; the next buffer brings another. In: r8 the header just filled.
/// Lost: all but r9.
fn wake(e: &mut Emitter, from: u64, done: CodeLabel) -> Emitted {
    let first = slot::RING_HEADERS + from * ring::HEADER;
    asm!(e; cmp(r8, first as i32); jb(done); mov(r11, IMAGE + image::QUIET); cmp(dword_ptr(r11), 0); jne(done););
    asm!(e; mov(r11, GLOBAL); cmp(dword_ptr(r11 + global::AWAKE as i32), 0); jne(done););
    asm!(e; mov(rdi, GLOBAL + global::WAKE); mov(esi, FUTEX_WAKE); mov(edx, 1); mov(eax, FUTEX); syscall(); jmp(done););
    Ok(())
}
