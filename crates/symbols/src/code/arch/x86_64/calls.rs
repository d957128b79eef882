//! Targets of call instructions: direct ones, those of PLT stubs, and those in GOT slots.

use crate::code::{Callee, GotSlots};
use crate::elf::ElfFile;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;

/// Length of the longest call, bytes: prefixes, REX, opcode, ModRM, SIB, 4 bytes of displacement.
pub(crate) const MAX_CALL: u64 = 9;
/// Bytes of a function searched for tail calls, at most.
const MAX_TAIL_CODE: u64 = 4096;

/// Returns the call instruction that ends at `after`, decoded from the bytes before it, of which [`MAX_CALL`]
/// suffice.
///
/// x86 code cannot be decoded backwards with certainty. The likeliest forms are tried first: a direct call, a call
/// through memory, then the others from the longest to the shortest.
pub(crate) fn call_before(bytes: &[u8], after: u64) -> Option<Instruction> {
    for len in [5usize, 6, 7, 8, 9, 4, 3, 2] {
        let Some(code) = bytes.len().checked_sub(len).and_then(|at| bytes.get(at..)) else { continue };
        let mut decoder = Decoder::with_ip(64, code, after.wrapping_sub(len as u64), DecoderOptions::NONE);
        let i = decoder.decode();
        if i.len() == len && matches!(i.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            let sound = match i.flow_control() {
                FlowControl::Call => i.op0_kind() == OpKind::NearBranch64,
                _ => i.mnemonic() == Mnemonic::Call,
            };
            if sound {
                return Some(i);
            }
        }
    }
    None
}

/// Returns the call instruction before the return address `after` in `elf`.
pub(crate) fn call_in_file(elf: &ElfFile, after: u64) -> Option<Instruction> {
    let mut bytes = [0; MAX_CALL as usize];
    let start = after.checked_sub(MAX_CALL)?;
    if elf.read_code_into(start, &mut bytes) == bytes.len() {
        let i = call_before(&bytes, after)?;
        let direct = i.flow_control() == FlowControl::Call;
        return (!direct || elf.is_code(i.near_branch_target())).then_some(i);
    }
    None
}

/// Returns true if the call whose bytes are exactly `bytes` takes its target from a register or from memory. It does
/// not use the decoder, whose tables take a fifth of a millisecond to build.
pub(crate) fn is_indirect(bytes: &[u8]) -> bool {
    /// Legacy prefixes of all groups; REX is tested apart.
    const PREFIXES: [u8; 11] = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3];
    const GROUP_5: u8 = 0xff;
    let is_prefix = |byte: &&u8| PREFIXES.contains(byte) || (0x40..0x50).contains(*byte);
    bytes.iter().find(|byte| !is_prefix(byte)) == Some(&GROUP_5)
}

/// Returns the target of `i`, a call or a jump, if the file determines it.
pub(crate) fn target(elf: &ElfFile, slots: &GotSlots, i: &Instruction) -> Option<Callee> {
    match i.flow_control() {
        FlowControl::Call | FlowControl::UnconditionalBranch => {
            let to = i.near_branch_target();
            Some(through_stub(elf, slots, to).unwrap_or(Callee::Local(to)))
        }
        FlowControl::IndirectCall | FlowControl::IndirectBranch => slot_of(i).and_then(|s| slots.get(elf, s)),
        _ => None,
    }
}

/// Returns the slot that an indirect call or jump goes through, if its address is fixed.
fn slot_of(i: &Instruction) -> Option<u64> {
    let fixed = i.op0_kind() == OpKind::Memory
        && (i.is_ip_rel_memory_operand() || (i.memory_base() == Register::None && i.memory_index() == Register::None))
        && i.memory_segment() == Register::DS;
    fixed.then(|| i.memory_displacement64())
}

/// Returns the target of the PLT stub at `at`, which has the form `[endbr64] [bnd] jmp *slot(%rip)`.
fn through_stub(elf: &ElfFile, slots: &GotSlots, at: u64) -> Option<Callee> {
    let mut code = [0; 16];
    let got = elf.read_code_into(at, &mut code);
    let decoder = Decoder::with_ip(64, code.get(..got)?, at, DecoderOptions::NONE);
    let jump = decoder.into_iter().find(|i| i.mnemonic() != Mnemonic::Endbr64)?;
    if jump.flow_control() != FlowControl::IndirectBranch {
        return None;
    }
    slots.get(elf, slot_of(&jump)?)
}

/// Returns the targets of the function's tail calls, which are the jumps out of `range`.
pub(crate) fn tail_jumps(elf: &ElfFile, slots: &GotSlots, range: Range<u64>) -> Vec<Callee> {
    let mut found = Vec::new();
    let len = range.end.saturating_sub(range.start).min(MAX_TAIL_CODE);
    let Some(code) = elf.read_vaddr(range.start, len) else { return found };
    for i in &mut Decoder::with_ip(64, &code, range.start, DecoderOptions::NONE) {
        let leaves = match i.flow_control() {
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                !range.contains(&i.near_branch_target())
            }
            FlowControl::IndirectBranch => true,
            _ => false,
        };
        let to = match i.flow_control() {
            _ if !leaves => None,
            FlowControl::ConditionalBranch => {
                let to = i.near_branch_target();
                Some(through_stub(elf, slots, to).unwrap_or(Callee::Local(to)))
            }
            _ => target(elf, slots, &i),
        };
        if let Some(to) = to
            && !found.contains(&to)
        {
            found.push(to);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_call_before_a_return_address() {
        let call = |bytes: &[u8]| call_before(bytes, 0x1000).map(|i| (i.len(), i.flow_control()));
        assert_eq!(call(&[0x90, 0x90, 0x90, 0x90, 0xe8, 1, 0, 0, 0]), Some((5, FlowControl::Call)));
        assert_eq!(call(&[0x90, 0x90, 0x90, 0xff, 0x15, 1, 0, 0, 0]), Some((6, FlowControl::IndirectCall)));
        assert_eq!(call(&[0, 0, 0, 0, 0, 0, 0x90, 0xff, 0xd0]), Some((2, FlowControl::IndirectCall)));
        assert_eq!(call(&[0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xd4]), Some((3, FlowControl::IndirectCall)));
        assert_eq!(call(&[0x90; 9]), None);
        assert_eq!(call(&[0xff]), None);
        assert_eq!(call(&[]), None);
    }

    #[test]
    fn finds_the_same_indirect_calls_as_the_decoder() {
        // Every call opcode and one other opcode are tried with every ModRM byte, behind up to two prefixes.
        for prefixes in [&[][..], &[0x41], &[0x3e], &[0x3e, 0x41], &[0xf2], &[0x2e], &[0x66]] {
            for (opcode, modrm) in
                [0xe8, 0xff, 0x9a, 0x90].into_iter().flat_map(|op| (0..=u8::MAX).map(move |m| (op, m)))
            {
                let mut bytes = prefixes.to_vec();
                bytes.extend([opcode, modrm, 0x24, 1, 0, 0, 0]);
                for len in 1..=bytes.len() {
                    let alone = bytes.get(..len).unwrap_or_default();
                    let Some(call) = call_before(alone, 0x1000).filter(|call| call.len() == len) else { continue };
                    assert_eq!(is_indirect(alone), call.flow_control() == FlowControl::IndirectCall, "{alone:02x?}");
                }
            }
        }
    }
}
