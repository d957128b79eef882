//! Targets of call instructions: direct ones, those of PLT stubs, and those in GOT slots.

use super::decode::{Addresses, Flow, Instruction, instructions};
use crate::code::{Callee, GotSlots};
use crate::elf::ElfFile;
use std::ops::Range;

/// Length of a call, bytes.
pub(crate) const MAX_CALL: u64 = 4;
/// Bytes of a function searched for tail calls, at most.
const MAX_TAIL_CODE: u64 = 4096;
/// Bytes before an indirect call that are searched for the load of its target, at most.
const MAX_BEFORE: u64 = 64;

fn is_call(i: &Instruction) -> bool {
    matches!(i.flow(), Flow::Call(_) | Flow::IndirectCall(_))
}

/// Returns the call instruction that ends at `after`, decoded from the bytes before it.
pub(crate) fn call_before(bytes: &[u8], after: u64) -> Option<Instruction> {
    let word = u32::from_le_bytes(*bytes.last_chunk()?);
    after.is_multiple_of(4).then_some(())?;
    Some(Instruction::new(after.wrapping_sub(4), word)).filter(is_call)
}

/// Returns the call instruction before the return address `after` in `elf`.
pub(crate) fn call_in_file(elf: &ElfFile, after: u64) -> Option<Instruction> {
    let mut bytes = [0; MAX_CALL as usize];
    let start = after.checked_sub(MAX_CALL)?;
    if elf.read_code_into(start, &mut bytes) != bytes.len() {
        return None;
    }
    let i = call_before(&bytes, after)?;
    match i.flow() {
        Flow::Call(to) => elf.is_code(to).then_some(i),
        _ => Some(i),
    }
}

/// Returns true if the call whose bytes are exactly `bytes` takes its target from a register.
pub(crate) fn is_indirect(bytes: &[u8]) -> bool {
    call_before(bytes, 4).is_some_and(|i| matches!(i.flow(), Flow::IndirectCall(_)))
}

/// Returns the target of `i`, a call or a jump, if the file determines it.
pub(crate) fn target(elf: &ElfFile, slots: &GotSlots, i: &Instruction) -> Option<Callee> {
    match i.flow() {
        Flow::Call(to) | Flow::Jump(to) => Some(through_stub(elf, slots, to).unwrap_or(Callee::Local(to))),
        Flow::IndirectCall(register) | Flow::IndirectJump(register) => loaded(elf, slots, i, register),
        _ => None,
    }
}

/// Returns the function whose address the straight code before `i` has loaded from a slot into `register`.
fn loaded(elf: &ElfFile, slots: &GotSlots, i: &Instruction, register: u8) -> Option<Callee> {
    let start = i.ip().checked_sub(MAX_BEFORE)?;
    let mut code = [0; MAX_BEFORE as usize];
    let got = elf.read_code_into(start, &mut code);
    let (mut addresses, mut slot) = (Addresses::default(), None);
    for before in instructions(code.get(..got)?, start) {
        if before.flow() != Flow::Next {
            (addresses, slot) = (Addresses::default(), None);
            continue;
        }
        let load = addresses.take(&before);
        if let Some((from, to, 8)) = load
            && to == register
        {
            slot = Some(from);
        }
    }
    slots.get(elf, slot?)
}

/// Returns the target of the PLT stub at `at`, which has the form `[bti c]; adrp x16; ldr x17, [x16, …]; add; br x17`.
fn through_stub(elf: &ElfFile, slots: &GotSlots, at: u64) -> Option<Callee> {
    let mut code = [0; 20];
    let got = elf.read_code_into(at, &mut code);
    let (mut addresses, mut slot) = (Addresses::default(), None);
    for i in instructions(code.get(..got)?, at) {
        match i.flow() {
            Flow::Next => slot = addresses.take(&i).map(|(from, to, _)| (from, to)).or(slot),
            Flow::IndirectJump(register) => {
                let (from, _) = slot.filter(|(_, to)| *to == register)?;
                return slots.get(elf, from);
            }
            _ => return None,
        }
    }
    None
}

/// Returns the targets of the function's tail calls, which are the jumps out of `range`.
pub(crate) fn tail_jumps(elf: &ElfFile, slots: &GotSlots, range: Range<u64>) -> Vec<Callee> {
    let mut found = Vec::new();
    let len = range.end.saturating_sub(range.start).min(MAX_TAIL_CODE);
    let Some(code) = elf.read_vaddr(range.start, len) else { return found };
    for i in instructions(&code, range.start) {
        let to = match i.flow() {
            Flow::Jump(to) | Flow::Branch(to) if !range.contains(&to) => {
                Some(through_stub(elf, slots, to).unwrap_or(Callee::Local(to)))
            }
            Flow::IndirectJump(_) => target(elf, slots, &i),
            _ => None,
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
        let call = |word: u32| call_before(&word.to_le_bytes(), 0x1000).map(|i| i.flow());
        assert_eq!(call(0x9400_0001), Some(Flow::Call(0x1000)));
        assert_eq!(call(0xd63f_0060), Some(Flow::IndirectCall(3)));
        assert_eq!(call(0xd503_201f), None);
        assert_eq!(call_before(&[0x94], 0x1000), None);
        assert_eq!(call_before(&0x9400_0001u32.to_le_bytes(), 0x1002), None);
        assert!(is_indirect(&0xd63f_0060u32.to_le_bytes()) && !is_indirect(&0x9400_0001u32.to_le_bytes()));
    }
}
