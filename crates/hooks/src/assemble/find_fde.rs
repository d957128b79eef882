//! Finds call frame information for our code, in a process that unwinds itself.
//!
//! GCC's unwinder (exceptions, `pthread_cancel`, `backtrace`) knows only files, and would stop at the first address of
//! ours: a handler's backtrace would be cut short, and destructors would not run. Its look-up is hooked, and answers
//! for our code itself. The answer is made on the spot, in the thread's slot: a table for all of the code would be
//! larger than the code.

use super::Blob;
use super::emitter::{Emitted, Emitter, Origin, asm, at, gs, gs32};
use super::frame_info::{piece, signal_piece};
use super::hook::Hook;
use super::relocate::{BASE, decode, displace, movable};
use crate::layout::{IMAGE, code, image, slot};
use crate::plan::Span;
use iced_x86::code_asm::*;

/// Index in [`image::FRAMES`] of the piece for a known address.
const AT_ADDRESS: u64 = 0;
/// Index of the piece for code whose place is in rcx.
const AT_RCX: u64 = 1;
/// Index of the piece for the hand-shake's code.
const AT_SLOT: u64 = 2;

/// Returns the words of a new image for [`image::FRAMES`] and what follows them, as (offset in the image, value).
pub(super) fn frames() -> impl Iterator<Item = (u64, u64)> {
    let (_, mut signal) = signal_piece();
    signal.resize(image::SIGNAL_FRAME_SIZE as usize, 0);
    let signal: Vec<u64> = signal.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
    let signal = (0..).zip(signal).map(|(i, word)| (image::SIGNAL_FRAME + 8 * i, word));
    // The table has one entry, which is valid from the first byte on.
    let table = (image::SIGNAL_TABLE, u64::from(code::IN_SIGNAL as u32) << 32);
    pieces().chain(signal).chain([table])
}

fn pieces() -> impl Iterator<Item = (u64, u64)> {
    let all = [(AT_ADDRESS, Origin::Address(0)), (AT_RCX, Origin::InRcx), (AT_SLOT, Origin::InSlot)];
    all.into_iter().flat_map(|(n, origin)| {
        let (_, _, mut bytes) = piece(origin);
        bytes.resize(image::FRAME as usize, 0);
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
        (0..).zip(words).map(move |(i, word)| (image::FRAMES + n * image::FRAME + 8 * i, word))
    })
}

/// Returns the table of a blob's origins in the form of [`code::TABLE`], and the number of its entries.
#[must_use]
pub fn origins_table(blob: &Blob) -> (Vec<u8>, u64) {
    let (mut table, mut count, mut last) = (Vec::new(), 0, None);
    for (range, origin) in &blob.origins {
        let value = match origin {
            // The distance fits 32 bits, because jumps lead from one to the other.
            Origin::Address(address) => (*address as i64).wrapping_sub(blob.delta) as i32,
            Origin::InRcx => code::IN_RCX,
            Origin::InSlot => code::IN_SLOT,
        };
        if last != Some(value) {
            table.extend(range.start.to_le_bytes());
            table.extend(value.to_le_bytes());
            (count, last) = (count + 1, Some(value));
        }
    }
    (table, count)
}

/// Writes the hook of `_Unwind_Find_FDE` (its arguments: an address, and the place to write its bases to). It lies
/// behind the function's entry, where all registers that a function may change are free.
pub(super) fn write(e: &mut Emitter, span: &Span) -> Emitted<Vec<Hook>> {
    let Some(head) = decode(span).filter(|i| i.iter().all(movable)) else { return Ok(Vec::new()) };
    let (entry, theirs) = (e.label(), e.label());
    e.stands_for(Origin::Address(span.start));
    let label = e.here(entry)?;
    code_at(e, theirs)?;
    origin_of(e)?;
    answer(e)?;
    e.here(theirs)?;
    displace(e, &head)?;
    e.stands_for(Origin::Address(span.resume()));
    asm!(e; jmp(BASE.wrapping_add(span.resume())););
    Ok(vec![Hook { start: span.start, bytes: span.bytes.len(), label }])
}

/// Finds the entry of [`image::CODES`] whose code holds the address in rdi. Out: rcx the entry's address, rdx the
/// distance of the address from the start of that code. Goes to `theirs` if no code holds it; changes rax.
fn code_at(e: &mut Emitter, theirs: CodeLabel) -> Emitted {
    let next = e.label();
    asm!(e; mov(rcx, IMAGE + image::CODE_COUNT); mov(rax, qword_ptr(rcx)););
    let next = e.here(next)?;
    asm!(e; sub(rax, 1); jb(theirs); add(rcx, image::CODE_ENTRY as i32););
    asm!(e; mov(rdx, rdi); sub(rdx, at(rcx, code::START)); cmp(rdx, at(rcx, code::SIZE)); jae(next););
    Ok(())
}

/// Loads into rax the origin of the code at offset rdx of the entry at rcx, from the entry's table.
fn origin_of(e: &mut Emitter) -> Emitted {
    let (halve, lower, found) = (e.label(), e.label(), e.label());
    asm!(e; mov(r8, at(rcx, code::TABLE)); xor(r9d, r9d); mov(r10, at(rcx, code::LEN)););
    let halve = e.here(halve)?;
    asm!(e; lea(r11, qword_ptr(r9 + 1)); cmp(r11, r10); jae(found););
    asm!(e; lea(rax, qword_ptr(r9 + r10)); shr(rax, 1u32); cmp(dword_ptr(r8 + rax * 8), edx); ja(lower););
    asm!(e; mov(r9, rax); jmp(halve););
    e.here(lower)?;
    asm!(e; mov(r10, rax); jmp(halve););
    e.here(found)?;
    asm!(e; movsxd(rax, dword_ptr(r8 + r9 * 8 + 4)););
    Ok(())
}

/// Returns from the function with an FDE for the origin in rax, of the code whose entry is at rcx.
fn answer(e: &mut Emitter) -> Emitted {
    let (in_rcx, in_slot, in_signal) = (e.label(), e.label(), e.label());
    let (begins, address_at, bytes) = piece(Origin::Address(0));
    // struct dwarf_eh_bases: tbase, dbase, func (gcc: libgcc/unwind-dw2-fde.h).
    asm!(e; mov(r11, at(rcx, code::START)););
    asm!(e; mov(qword_ptr(rsi), 0); mov(at(rsi, 8), 0); mov(at(rsi, 16), r11););
    asm!(e; cmp(eax, code::IN_RCX); je(in_rcx); cmp(eax, code::IN_SLOT); je(in_slot););
    asm!(e; cmp(eax, code::IN_SIGNAL); je(in_signal); add(rax, r11););
    asm!(e; mov(ecx, 1); xadd(gs32(slot::FRAME_COUNT), ecx); and(ecx, (slot::FRAMES_LEN - 1) as i32););
    asm!(e; shl(ecx, image::FRAME.trailing_zeros()); add(rcx, gs(slot::SELF)); add(rcx, slot::FRAMES as i32););
    asm!(e; mov(r8, IMAGE + image::FRAMES + AT_ADDRESS * image::FRAME););
    for word in 0..bytes.len().div_ceil(8) as u64 {
        asm!(e; mov(r9, at(r8, 8 * word)); mov(at(rcx, 8 * word), r9););
    }
    asm!(e; mov(at(rcx, address_at as u64), rax); lea(rax, at(rcx, begins as u64)); ret(););
    for (label, n, origin) in [(in_rcx, AT_RCX, Origin::InRcx), (in_slot, AT_SLOT, Origin::InSlot)] {
        let (begins, ..) = piece(origin);
        e.here(label)?;
        asm!(e; mov(rax, IMAGE + image::FRAMES + n * image::FRAME + begins as u64); ret(););
    }
    e.here(in_signal)?;
    asm!(e; mov(rax, IMAGE + image::SIGNAL_FRAME + signal_piece().0 as u64); ret(););
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_descriptions_fit_and_hold_the_address() {
        for origin in [Origin::Address(0), Origin::InRcx, Origin::InSlot] {
            assert!(piece(origin).2.len() as u64 <= image::FRAME, "{origin:?}");
        }
        let (begins, at, bytes) = piece(Origin::Address(0x1122_3344_5566_7788));
        assert_eq!(bytes[at..at + 8], 0x1122_3344_5566_7788u64.to_le_bytes());
        // The distance to the CIE is relative to its own place.
        assert_eq!(bytes[begins + 4..begins + 8], (begins as u32 + 4).to_le_bytes());
        assert_eq!(pieces().count() as u64, image::FRAMES_LEN * image::FRAME / 8);
        assert!(signal_piece().1.len() as u64 <= image::SIGNAL_FRAME_SIZE);
    }

    #[test]
    fn neighbours_that_stand_for_the_same_are_one() {
        let blob = Blob {
            delta: -0x1000,
            code: vec![0; 12],
            references: Vec::new(),
            patches: Vec::new(),
            sites: Vec::new(),
            refused: Vec::new(),
            origins: vec![
                (0..2, Origin::InRcx),
                (2..5, Origin::Address(0x20)),
                (5..9, Origin::Address(0x20)),
                (9..12, Origin::InSlot),
            ],
            options: super::super::Options::default(),
        };
        let (table, count) = origins_table(&blob);
        let words: Vec<i32> = table.as_chunks::<4>().0.iter().map(|w| i32::from_le_bytes(*w)).collect();
        assert_eq!((count, words), (3, vec![0, code::IN_RCX, 2, 0x1020, 9, code::IN_SLOT]));
    }
}
