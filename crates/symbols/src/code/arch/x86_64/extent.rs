//! Facts about a function that only its code tells: its end, and whether its frame has a single size.

use crate::elf::ElfFile;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
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
    let mut code = vec![0; len as usize + 16];
    let got = elf.read_code_into(start, &mut code);
    let mut furthest = start;
    for i in &mut Decoder::with_ip(64, code.get(..got).unwrap_or(&[]), start, DecoderOptions::NONE) {
        if i.is_invalid() {
            return false;
        }
        if addr < i.next_ip() {
            return true;
        }
        let branches = matches!(i.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
        let to = if branches { i.near_branch_target() } else { 0 };
        if to > start && to - start < MAX_SHORT {
            // A jump far ahead is a tail call. The bytes that it skips are not counted as the function's own.
            let is_tail = i.flow_control() == FlowControl::UnconditionalBranch && to > addr;
            furthest = if is_tail { furthest } else { furthest.max(to) };
        }
        if ends(&i) && i.next_ip() > furthest {
            return false;
        }
    }
    false
}

fn ends(i: &Instruction) -> bool {
    use FlowControl::{Exception, IndirectBranch, Return, UnconditionalBranch};
    matches!(i.flow_control(), Return | UnconditionalBranch | IndirectBranch | Exception)
        || i.mnemonic() == Mnemonic::Hlt
}

/// Returns true if, at every instruction of the function in `range`, the stack pointer is at a fixed distance from
/// the frame pointer: the function neither allocates stack as it runs nor realigns it. Returns false for functions
/// that set no frame pointer, and for a part of a function.
pub(crate) fn is_fixed(elf: &ElfFile, range: Range<u64>) -> bool {
    let len = range.end.saturating_sub(range.start);
    let Some(code) = (len <= MAX_LONG).then(|| elf.read_vaddr(range.start, len)).flatten() else { return false };
    let mut has_pointer = false;
    for i in &mut Decoder::with_ip(64, &code, range.start, DecoderOptions::NONE) {
        let writes_sp = i.op_count() > 0
            && i.op0_kind() == OpKind::Register
            && i.op0_register().full_register() == Register::RSP
            && !matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
        if writes_sp && !keeps_distance(&i) {
            return false;
        }
        has_pointer |= i.mnemonic() == Mnemonic::Mov
            && i.op0_kind() == OpKind::Register
            && i.op1_kind() == OpKind::Register
            && (i.op0_register(), i.op1_register()) == (Register::RBP, Register::RSP);
    }
    has_pointer
}

/// Returns true if `i`, which sets rsp, puts it at a distance from the frame pointer that is known beforehand.
fn keeps_distance(i: &Instruction) -> bool {
    match i.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub => i.op1_kind() != OpKind::Register && i.op1_kind() != OpKind::Memory,
        Mnemonic::Mov => i.op1_kind() == OpKind::Register && i.op1_register() == Register::RBP,
        Mnemonic::Lea => i.memory_index() == Register::None && matches!(i.memory_base(), Register::RBP | Register::RSP),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::elf_of_code;

    #[test]
    fn a_function_ends_at_its_last_reachable_instruction() {
        // The code is: je +1; ret; nop; ret | ret
        let elf = elf_of_code(&[0x74, 0x01, 0xc3, 0x90, 0xc3, 0xc3]);
        assert!(reaches(&elf, 0x1000, 0x1000));
        assert!(reaches(&elf, 0x1000, 0x1004));
        assert!(!reaches(&elf, 0x1000, 0x1005));
        assert!(!reaches(&elf, 0x1001, 0x1000));
        assert!(!reaches(&elf, 0x1000, 0x9000));
        // The code is: jmp +3 (a tail call); then the next function's.
        let elf = elf_of_code(&[0xeb, 0x03, 0x90, 0x90, 0x90, 0xc3]);
        assert!(!reaches(&elf, 0x1000, 0x1002));
    }

    #[test]
    fn recognizes_frames_that_grow() {
        // The code is push %rbp; mov %rsp,%rbp; …; leave; ret.
        let around = |body: &[u8]| [&[0x55, 0x48, 0x89, 0xe5], body, &[0xc9, 0xc3]].concat();
        let fixed = |code: &[u8]| is_fixed(&elf_of_code(code), 0x1000..0x1000 + code.len() as u64);
        assert!(fixed(&around(&[])));
        // The code is sub $0x20,%rsp; lea -8(%rbp),%rsp.
        assert!(fixed(&around(&[0x48, 0x83, 0xec, 0x20, 0x48, 0x8d, 0x65, 0xf8])));
        // The code is sub %rax,%rsp.
        assert!(!fixed(&around(&[0x48, 0x29, 0xc4])));
        // The code is and $-64,%rsp.
        assert!(!fixed(&around(&[0x48, 0x83, 0xe4, 0xc0])));
        // Code that sets no frame pointer is a part of a function.
        assert!(!fixed(&[0x90, 0xc3]));
    }
}
