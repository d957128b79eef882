//! Facts about a function that only its code tells: its end, and whether its frame has a single size.

use super::decode::{Effect, Flow, SP, instructions};
use crate::elf::ElfFile;
use std::ops::Range;

/// Bytes searched for the end of a function without a size, at most. Such functions are written in assembly.
pub const MOST_REACH: u16 = 4096;
const MAX_SHORT: u64 = MOST_REACH as u64;
/// Bytes of a function searched for changes of the stack pointer, at most.
const MAX_LONG: u64 = 64 << 10;

/// Returns true if the code of the function at `start` extends to the instruction at `addr`. A function ends with the
/// first instruction that does not continue, unless an earlier branch leads beyond it.
pub(crate) fn reaches(elf: &ElfFile, start: u64, addr: u64) -> bool {
    let Some(len) = addr.checked_sub(start).filter(|len| *len < MAX_SHORT) else { return false };
    let mut code = vec![0; len as usize + 4];
    let got = elf.read_code_into(start, &mut code);
    let mut furthest = start;
    for i in instructions(code.get(..got).unwrap_or(&[]), start) {
        let next = i.ip().wrapping_add(4);
        if addr < next {
            return true;
        }
        let (to, ends) = match i.flow() {
            Flow::Branch(to) => (Some(to), false),
            // A jump far ahead is a tail call. The bytes that it skips are not counted as the function's own.
            Flow::Jump(to) => (Some(to).filter(|to| *to <= addr), true),
            Flow::Return | Flow::IndirectJump(_) | Flow::Trap => (None, true),
            Flow::Next | Flow::Call(_) | Flow::IndirectCall(_) => (None, false),
        };
        if let Some(to) = to.filter(|to| *to > start && to - start < MAX_SHORT) {
            furthest = furthest.max(to);
        }
        if ends && next > furthest {
            return false;
        }
    }
    false
}

/// Returns true if, at every instruction of the function in `range`, the stack pointer is at a fixed distance from
/// the frame pointer: the function neither allocates stack as it runs nor realigns it. Returns false for functions
/// that set no frame pointer, and for a part of a function.
pub(crate) fn is_fixed(elf: &ElfFile, range: Range<u64>) -> bool {
    let len = range.end.saturating_sub(range.start);
    let Some(code) = (len <= MAX_LONG).then(|| elf.read_vaddr(range.start, len)).flatten() else { return false };
    let mut has_pointer = false;
    for i in instructions(&code, range.start) {
        match i.effect() {
            Effect::Add { to: 29, from: SP, .. } => has_pointer = true,
            Effect::Add { to: SP, from: SP | 29, .. } => {}
            Effect::Add { to: SP, .. } => return false,
            // An addition of a register, or a mask.
            Effect::Other { to: Some(SP) } if i.writes_sp() => return false,
            _ => {}
        }
    }
    has_pointer
}
