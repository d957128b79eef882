//! Samples single calls, see [`crate::layout::look`]: decides which are due, and writes them.
//!
//! A sample goes into a buffer like a window's call and by the same code ([`super::ring`]); the buffer is kept from
//! sample to sample. A call that is entered during a sampled one ends that sample: it was made by a handler, or the
//! sampled call never returned.

use super::emitter::{Emitted, Emitter, NUMBER_BIT, asm, at, gs, gs_at, gs32};
use super::ring_buffer::{draw, free_buffer, go_on_in, leave};
use crate::layout::ring::call;
use crate::layout::{GLOBAL, IMAGE, NUMBERS, Saved, capture, global, image, look, node, record, slot, want};
use iced_x86::code_asm::*;

/// Notes in [`slot::LOOK_FLAGS`] if this call is sampled, and if so draws the next one, at a random place of the
/// count's next part. In: the question, in the slot. Lost: rax, rcx, rdx, r8, r10, r11.
pub(super) fn plan(e: &mut Emitter) -> Emitted {
    let (due, done) = (e.label(), e.label());
    asm!(e; mov(gs(slot::LOOK_FLAGS), 0); mov(r11, gs(slot::ANSWER)); mov(r11, at(r11, node::RECORD)););
    asm!(e; cmp(gs_at(r11, record::LOOK_LEFT), 0); jl(due););
    e.here(done)?;
    e.cold(move |e| {
        let (known, never, named, own, later) = (e.label(), e.label(), e.label(), e.label(), e.label());
        let (ahead, few, new, shifted) = (e.label(), e.label(), e.label(), e.label());
        e.here(due)?;
        asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48 + NUMBER_BIT); sub(eax, 1); jae(known););
        asm!(e; mov(eax, gs32(Saved::Rax.offset())););
        e.here(known)?;
        asm!(e; cmp(eax, (NUMBERS - 1) as i32); jae(never); shl(eax, global::CAPTURE_SHIFT););
        asm!(e; mov(r8, GLOBAL + global::CAPTURES); add(r8, rax););
        asm!(e; test(byte_ptr(r8 + capture::FLAGS as i32), i32::from(capture::LOOKS)); je(never););
        // A name relative to a descriptor would need another call to resolve, which costs more than the sample.
        asm!(e; cmp(byte_ptr(r8 + capture::FD as i32), 0); je(named););
        asm!(e; cmp(byte_ptr(r8 + capture::RECEIVE as i32), 0); jne(named); cmp(gs32(Saved::Rdi.offset()), libc::AT_FDCWD); jne(later););
        e.here(named)?;
        // A call whose memory can't be copied is not sampled.
        asm!(e; mov(rcx, IMAGE + image::QUIET); cmp(dword_ptr(rcx), 0); jne(later););
        asm!(e; mov(rax, gs_at(r11, record::LOOK_SHIFT)); shl(eax, call::LOOK_SHIFT); or(eax, call::LOOK as i32););
        asm!(e; cmp(byte_ptr(r8 + capture::RECEIVE as i32), i32::from(capture::BUFFERS)); jne(own););
        asm!(e; or(eax, call::BY_LAUNCHER as i32););
        e.here(own)?;
        asm!(e; mov(gs(slot::LOOK_FLAGS), rax););
        e.here(later)?;
        // r8 is the first call of the next part, after this call.
        asm!(e; mov(r8, gs_at(r11, record::LOOK_NEXT)); mov(r10, gs_at(r11, record::ENTERED)); cmp(r8, r10); ja(ahead););
        asm!(e; lea(r8, qword_ptr(r10 + 1)););
        e.here(ahead)?;
        asm!(e; xor(ecx, ecx); cmp(r8, look::ALL as i32); jb(few); bsr(rcx, r8); sub(ecx, look::OF_OCTAVE_BITS as i32););
        e.here(few)?;
        asm!(e; mov(rax, IMAGE + image::LOOK_SHIFT); mov(eax, dword_ptr(rax)); and(eax, 63); add(ecx, eax););
        asm!(e; mov(rax, IMAGE + image::FAMILIAR); cmp(r8, qword_ptr(rax)); jae(new); add(ecx, look::FAMILIAR_SHIFT as i32););
        e.here(new)?;
        asm!(e; cmp(ecx, look::MOST_SHIFT as i32); jbe(shifted); mov(ecx, look::MOST_SHIFT););
        e.here(shifted)?;
        asm!(e; mov(gs_at(r11, record::LOOK_SHIFT), rcx););
        draw(e)?;
        asm!(e; mov(edx, 1); shl(rdx, cl); lea(rcx, qword_ptr(r8 + rdx)); mov(gs_at(r11, record::LOOK_NEXT), rcx););
        asm!(e; sub(rdx, 1); and(rax, rdx); add(rax, r8); sub(rax, r10); sub(rax, 1););
        asm!(e; mov(gs_at(r11, record::LOOK_LEFT), rax); jmp(done););
        e.here(never)?;
        asm!(e; mov(rax, look::NEVER); mov(gs_at(r11, record::LOOK_LEFT), rax); jmp(done););
        Ok(())
    });
    Ok(())
}

/// Ends a sample whose call has not returned. Lost: all but r9.
pub(super) fn unfinished(e: &mut Emitter) -> Emitted {
    let (under_way, done) = (e.label(), e.label());
    asm!(e; cmp(gs(slot::WANT), want::LOOK as i32); je(under_way););
    e.here(done)?;
    e.cold(move |e| {
        e.here(under_way)?;
        leave(e, done)
    });
    Ok(())
}

/// Begins to write this call if it is to be sampled and there is room; otherwise goes to `done`.
pub(super) fn begin(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let (fill, ready, none) = (e.label(), e.label(), e.label());
    asm!(e; cmp(gs(slot::LOOK_FLAGS), 0); je(done); mov(rdi, gs(slot::LOOK_HEADER)); test(rdi, rdi); jne(fill););
    free_buffer(e, look::SHARE, none)?;
    asm!(e; mov(rax, gs(slot::RING_HEADER)); mov(gs(slot::LOOK_HEADER), rax););
    asm!(e; lea(rax, qword_ptr(rdi + look::DATA as i32)); mov(gs(slot::RING_DATA), rax); jmp(ready););
    e.here(none)?;
    asm!(e; jmp(done););
    e.here(fill)?;
    go_on_in(e)?;
    asm!(e; mov(rax, gs(slot::LOOK_DATA)); mov(gs(slot::RING_DATA), rax););
    e.here(ready)?;
    asm!(e; mov(gs(slot::RING_MOST), look::CALLS as i32););
    asm!(e; or(gs(slot::LOOK_FLAGS), call::ALONE as i32); mov(gs(slot::WANT), want::LOOK as i32););
    Ok(())
}
