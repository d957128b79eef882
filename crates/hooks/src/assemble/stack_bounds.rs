//! Forgets, before calls that unmap memory, the bounds of the thread's stacks and other memory there, see
//! [`crate::layout::stack`].

use super::emitter::{Emitted, Emitter, asm, gs};
use crate::layout::{IMAGE, image, slot, stack};
use crate::numbers::{
    BRK, MADVISE, MMAP, MPROTECT, MREMAP, MUNMAP, PKEY_MPROTECT, PROCESS_MADVISE, REMAP_FILE_PAGES, SHMAT, SHMDT,
};
use iced_x86::code_asm::*;

/// Calls that may make memory unreadable.
const TAKE_AWAY: [u32; 11] =
    [MMAP, MPROTECT, MUNMAP, BRK, MREMAP, MADVISE, SHMAT, SHMDT, REMAP_FILE_PAGES, PKEY_MPROTECT, PROCESS_MADVISE];

/// Flag MAP_FIXED: the mapping may replace other memory.
const MAP_FIXED: i32 = 0x10;
/// Flag MREMAP_FIXED: the mapping may replace other memory.
const MREMAP_FIXED: i32 = 2;
/// Bits PROT_READ and PROT_WRITE; on x86, writable memory is readable.
const READ_WRITE: i32 = 3;
/// Lowest advice that may make memory unreadable, MADV_HWPOISON.
const TAKES_AWAY: i32 = 100;
/// log2 of a distance that is longer than any heap, and shorter than that from a heap to the stacks outside of it.
const HEAP_BITS: u32 = 40;

/// A table of bounds in the slot.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// Offset of the table in the slot.
    pub(super) at: u64,
    /// Offset of the word that counts the entries made so far.
    pub(super) count: u64,
    /// Capacity, a power of two.
    pub(super) len: u64,
}

/// The table of the stacks that the thread was on.
pub(super) const STACKS: Table = Table { at: slot::STACKS, count: slot::STACKS_COUNT, len: stack::LEN };
/// The table of the heaps from which the thread copies.
const OWN_MEMORY: Table = Table { at: slot::OWN_MEMORY, count: slot::OWN_MEMORY_COUNT, len: stack::OWN_LEN };

impl Table {
    /// Returns a word of the entry at offset `entry` in the table.
    pub(super) fn word(self, entry: AsmRegister64, word: u64) -> AsmMemoryOperand {
        qword_ptr(entry + (self.at + word) as i32).gs()
    }

    /// Loads the offset behind the last entry into `end`.
    pub(super) fn end(self, e: &mut Emitter, end: AsmRegister64) -> Emitted {
        let few = e.label();
        asm!(e; mov(end, gs(self.count)); cmp(end, self.len as i32); jbe(few); mov(end, self.len););
        e.here(few)?;
        asm!(e; shl(end, stack::ENTRY.trailing_zeros()););
        Ok(())
    }

    /// Replaces the oldest entry by these bounds. Lost: rcx.
    pub(super) fn put(self, e: &mut Emitter, low: AsmRegister64, high: AsmRegister64) -> Emitted {
        asm!(e; mov(ecx, 1); xadd(gs(self.count), rcx); and(ecx, (self.len - 1) as i32););
        asm!(e; shl(ecx, stack::ENTRY.trailing_zeros()); mov(self.word(rcx, 8), 0););
        asm!(e; mov(self.word(rcx, 0), low); mov(self.word(rcx, 8), high););
        Ok(())
    }
}

/// Returns true if a call of this number may make memory unreadable.
pub(super) fn takes_away(number: u32) -> bool {
    TAKE_AWAY.contains(&number)
}

/// The code that forgets bounds, by the memory that a call takes away.
#[derive(Clone, Copy)]
struct Parts {
    /// Notes that guards may lie within mappings, and continues as `range`.
    guards: CodeLabel,
    /// Forgets the bounds in the range of rsi bytes from rdi on.
    range: CodeLabel,
    /// Forgets the bounds of a heap that ends at rdi from now on.
    heap: CodeLabel,
    /// Forgets all bounds.
    all: CodeLabel,
}

impl Parts {
    fn new(e: &mut Emitter) -> Self {
        Self { guards: e.label(), range: e.label(), heap: e.label(), all: e.label() }
    }

    /// Goes to the part for a call of this number with its arguments, or falls through if the call takes nothing away.
    fn choose(self, e: &mut Emitter, number: u32) -> Emitted {
        let Self { guards, range, heap, all } = self;
        match number {
            MMAP => asm!(e; test(r10d, MAP_FIXED); jne(range);),
            MPROTECT | PKEY_MPROTECT => asm!(e; test(edx, READ_WRITE); je(range);),
            MADVISE => asm!(e; cmp(edx, TAKES_AWAY); jae(guards);),
            BRK => asm!(e; test(rdi, rdi); jne(heap);),
            MREMAP => asm!(e; test(r10d, MREMAP_FIXED); jne(all); jmp(range);),
            MUNMAP => asm!(e; jmp(range);),
            _ => asm!(e; jmp(all);),
        }
        Ok(())
    }

    /// Writes the parts that calls of these numbers need, each of which continues at `done`. Lost: rcx, r11, flags.
    fn write(self, e: &mut Emitter, numbers: &[u32], done: CodeLabel) -> Emitted {
        let has = |of: &[u32]| numbers.iter().any(|n| of.contains(n));
        let of_range = has(&[MMAP, MUNMAP, MPROTECT, PKEY_MPROTECT, MREMAP, MADVISE]);
        let overlap = e.label();
        if has(&[MADVISE]) {
            e.here(self.guards)?;
            asm!(e; mov(r11, IMAGE + image::GUARDED); mov(dword_ptr(r11), 1););
        }
        if of_range {
            e.here(self.range)?;
            asm!(e; lea(r11, qword_ptr(rdi + rsi)););
            e.here(overlap)?;
            overlapping(e, r11)?;
            asm!(e; jmp(done););
        }
        if has(&[BRK]) {
            e.here(self.heap)?;
            asm!(e; mov(r11, 1u64 << HEAP_BITS); add(r11, rdi););
            if of_range {
                asm!(e; jmp(overlap););
            } else {
                overlapping(e, r11)?;
                asm!(e; jmp(done););
            }
        }
        if has(&[MREMAP, SHMAT, SHMDT, REMAP_FILE_PAGES, PROCESS_MADVISE]) {
            e.here(self.all)?;
            whole(e)?;
            asm!(e; jmp(done););
        }
        Ok(())
    }
}

/// Forgets, right before a call of this number and its arguments, the bounds that the call makes invalid. Lost: rcx,
/// r11, flags.
pub(super) fn before(e: &mut Emitter, number: u32) -> Emitted {
    if !takes_away(number) {
        return Ok(());
    }
    let (parts, done) = (Parts::new(e), e.label());
    parts.choose(e, number)?;
    e.here(done)?;
    e.cold(move |e| parts.write(e, &[number], done));
    Ok(())
}

/// Does the work of [`before`] for a call whose number is in eax. The parts stand there once for all numbers: written for
/// each, they took two KiB of each such site.
pub(super) fn before_by_number(e: &mut Emitter) -> Emitted {
    let (parts, done) = (Parts::new(e), e.label());
    for number in TAKE_AWAY {
        let other = e.label();
        asm!(e; cmp(eax, number as i32); jne(other););
        parts.choose(e, number)?;
        asm!(e; jmp(done););
        e.here(other)?;
    }
    e.here(done)?;
    e.cold(move |e| parts.write(e, &TAKE_AWAY, done));
    Ok(())
}

/// Forgets the bounds that overlap the range from rdi to `end`. Lost: rcx.
pub(super) fn overlapping(e: &mut Emitter, end: AsmRegister64) -> Emitted {
    let others = e.label();
    asm!(e; mov(gs(slot::VDSO_HIGH), 0););
    asm!(e; cmp(end, gs(slot::STACK_LOW)); jbe(others); cmp(rdi, gs(slot::STACK_HIGH)); jae(others););
    asm!(e; mov(gs(slot::STACK_HIGH), 0););
    e.here(others)?;
    for table in [STACKS, OWN_MEMORY] {
        let (next, done) = (e.label(), e.label());
        table.end(e, rcx)?;
        let next = e.here(next)?;
        asm!(e; sub(rcx, stack::ENTRY as i32); jb(done); cmp(end, table.word(rcx, 0)); jbe(next););
        asm!(e; cmp(rdi, table.word(rcx, 8)); jae(next); mov(table.word(rcx, 8), 0); jmp(next););
        e.here(done)?;
    }
    Ok(())
}

/// Forgets all bounds.
fn whole(e: &mut Emitter) -> Emitted {
    for table in [STACKS, OWN_MEMORY] {
        asm!(e; mov(gs(table.count), 0););
    }
    asm!(e; mov(gs(slot::STACK_HIGH), 0); mov(gs(slot::VDSO_HIGH), 0););
    Ok(())
}

/// Handles a handler's end: the interrupted code may have been between reading its bounds, see
/// [`crate::layout::stack`].
pub(super) fn handler_ends(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(slot::STACK_HIGH), 0); mov(gs(slot::VDSO_HIGH), 0););
    Ok(())
}
