//! Variables that a function uses, by its instructions.

use super::decode::{Addresses, Flow, instructions};
use crate::elf::ElfFile;
use std::ops::Range;

/// Bytes of a function's code that are decoded, at most.
const MAX_CODE: u64 = 256;

/// Returns the address from which the code at `start` loads its first value of `size` bytes, other than a slot of the
/// global offset table: what such a slot leads to is the variable.
fn first_load(elf: &ElfFile, start: u64, len: u64, size: u8) -> Option<u64> {
    let code = elf.read_vaddr(start, len.min(MAX_CODE))?;
    let is_slot = |at: u64| elf.section(".got").is_some_and(|got| at.wrapping_sub(got.addr) < got.size);
    let mut addresses = Addresses::default();
    for i in instructions(&code, start) {
        let Some((from, to, loaded)) = addresses.take(&i) else { continue };
        if is_slot(from) {
            // The loader puts the variable's address there; the file of a program that can be moved holds none.
            let value =
                elf.read_vaddr(from, 8).and_then(|bytes| Some(u64::from_le_bytes(bytes.first_chunk().copied()?)));
            addresses.set(to, value.filter(|value| *value != 0));
        } else if loaded == size {
            return Some(from);
        }
    }
    None
}

/// Returns the address from which a function reads its first pointer.
pub(crate) fn first_pointer_read(elf: &ElfFile, function: Range<u64>) -> Option<u64> {
    first_load(elf, function.start, function.end.saturating_sub(function.start), 8)
}

/// Returns the address of the first 4-byte variable that a function loads, or the function that it jumps to: a
/// comparison takes its operands from registers.
pub(crate) fn first_half_compared(elf: &ElfFile, function: Range<u64>) -> Option<u64> {
    let len = function.end.saturating_sub(function.start);
    first_load(elf, function.start, len, 4).or_else(|| {
        let code = elf.read_vaddr(function.start, len.min(MAX_CODE))?;
        let jump = instructions(&code, function.start).find_map(|i| match i.flow() {
            Flow::Jump(to) => Some(to),
            _ => None,
        })?;
        first_load(elf, jump, MAX_CODE, 4)
    })
}
