//! Variables that a function uses, by its instructions.

use crate::elf::ElfFile;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use std::ops::Range;

/// Bytes of a function's code that are decoded, at most.
const MAX_CODE: u64 = 256;

/// Returns the address from which a function reads its first pointer.
pub(crate) fn first_pointer_read(elf: &ElfFile, function: Range<u64>) -> Option<u64> {
    let len = function.end.saturating_sub(function.start).min(MAX_CODE);
    let code = elf.read_vaddr(function.start, len)?;
    let decoder = Decoder::with_ip(64, &code, function.start, DecoderOptions::NONE);
    let is_read =
        |i: &Instruction| i.mnemonic() == Mnemonic::Mov && i.is_ip_rel_memory_operand() && i.op0_register().is_gpr64();
    decoder.into_iter().find(is_read).map(|i| i.ip_rel_memory_address())
}

/// Returns the address of the first 4-byte variable that a function compares, or the function that it jumps to.
pub(crate) fn first_half_compared(elf: &ElfFile, function: Range<u64>) -> Option<u64> {
    let compares =
        |i: &Instruction| i.mnemonic() == Mnemonic::Cmp && i.is_ip_rel_memory_operand() && i.memory_size().size() == 4;
    let code_at = |start: u64, len: u64| {
        let code = elf.read_vaddr(start, len.min(MAX_CODE))?;
        Some(Decoder::with_ip(64, &code, start, DecoderOptions::NONE).into_iter().collect::<Vec<Instruction>>())
    };
    let own = code_at(function.start, function.end.saturating_sub(function.start))?;
    let found = |code: &[Instruction]| code.iter().find(|i| compares(i)).map(Instruction::ip_rel_memory_address);
    let jump = own.iter().find(|i| i.mnemonic() == Mnemonic::Jmp && i.near_branch_target() != 0);
    found(&own).or_else(|| found(&code_at(jump?.near_branch_target(), MAX_CODE)?))
}
