//! What a call instruction calls: directly, through a PLT stub, or through a GOT slot.

use crate::elf::{Image, Section, SymbolTable, word};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use object::LittleEndian as Le;
use object::elf;
use std::ops::Range;
use std::sync::Arc;

/// The longest call: prefixes, REX, opcode, ModRM, SIB, 4 bytes of displacement.
const MAX_CALL: u64 = 9;
/// Most relocations of one file looked at.
const MAX_RELOCATIONS: usize = 4_000_000;
/// Most code looked through for tail jumps in one function.
const MAX_TAIL_CODE: u64 = 4096;

/// What an instruction calls or jumps to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Callee {
    /// A function of the same file.
    Local(u64),
    /// Whatever the loader binds this name to.
    Symbol(Arc<str>),
}

/// What the loader writes into the slots that code calls through.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// By address; of several for one, the last holds.
    written: Vec<(u64, Written)>,
    /// Who is named by its place in it.
    symbols: Option<Arc<SymbolTable>>,
}

/// What the loader writes: where a symbol is, or an address of this file.
#[derive(Clone, Copy, Debug)]
enum Written {
    Symbol(u32),
    Local(u64),
}

impl Slots {
    /// Reads the file's dynamic relocations; in static files, those that pick an implementation.
    pub(crate) fn read(image: &Image) -> Self {
        let mut slots = Self::default();
        let table = |s: &Section| s.addr..s.addr.saturating_add(s.size);
        let got: Vec<_> = image.sections.iter().filter(|s| s.name.starts_with(".got")).map(table).collect();
        for section in image.sections.iter().filter(|s| s.kind == elf::SHT_RELA) {
            slots.add(image, section, &got);
        }
        // Stable, and linkers have nearly sorted them.
        slots.written.sort_by_key(|(slot, _)| *slot);
        slots
    }

    fn add(&mut self, image: &Image, section: &Section, got: &[Range<u64>]) -> Option<()> {
        let linked = image.sections.get(section.link as usize).filter(|s| s.kind == elf::SHT_DYNSYM);
        let symbols = linked.and_then(|_| image.dynamic_symbols());
        if symbols.is_some() {
            self.symbols = symbols.cloned();
        }
        let data = image.section_data(section)?;
        let (relocations, _) =
            object::slice_from_bytes::<elf::Rela64<Le>>(&data, data.len() / size_of::<elf::Rela64<Le>>()).ok()?;
        for r in relocations.iter().take(MAX_RELOCATIONS) {
            let slot = r.r_offset.get(Le);
            let callee = match elf::RelocationType(r.r_type(Le, false).0) {
                elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_64 => {
                    symbols.map(|_| Written::Symbol(r.r_sym(Le, false)))
                }
                elf::R_X86_64_IRELATIVE => Some(Written::Local(r.r_addend.get(Le) as u64)),
                elf::R_X86_64_RELATIVE if got.iter().any(|g| g.contains(&slot)) => {
                    Some(Written::Local(r.r_addend.get(Le) as u64))
                }
                _ => None,
            };
            if let Some(callee) = callee {
                self.written.push((slot, callee));
            }
        }
        Some(())
    }

    /// Who the loader has called through `slot`.
    fn written_to(&self, slot: u64) -> Option<Callee> {
        let end = self.written.partition_point(|(at, _)| *at <= slot);
        let same = self.written.get(..end)?.iter().rev().take_while(|(at, _)| *at == slot);
        same.filter_map(|(_, written)| match *written {
            Written::Local(to) => Some(Callee::Local(to)),
            Written::Symbol(index) => {
                let name = self.symbols.as_ref()?.name(index).filter(|name| !name.is_empty())?;
                Some(Callee::Symbol(String::from_utf8_lossy(&name).into()))
            }
        })
        .next()
    }

    fn get(&self, image: &Image, slot: u64) -> Option<Callee> {
        if let Some(callee) = self.written_to(slot) {
            return Some(callee);
        }
        // A static file that isn't moved has the address in place.
        let fixed = image.sections.iter().any(|s| s.name.starts_with(".got") && slot.wrapping_sub(s.addr) < s.size);
        let target = fixed.then(|| image.read_vaddr(slot, 8)).flatten().and_then(|w| word(&w, 0))?;
        image.is_code(target).then_some(Callee::Local(target))
    }
}

/// The call instruction that ends at `after`, decoded from the up to [`MAX_CALL`] `bytes` before it.
///
/// x86 can't be decoded backwards for sure, so the likeliest forms are tried first: a direct call,
/// a call through memory, then the rest from the longest to the shortest.
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

/// The call instruction before the return address `after` in `image`.
pub(crate) fn call_in_file(image: &Image, after: u64) -> Option<Instruction> {
    let mut bytes = [0; MAX_CALL as usize];
    let start = after.checked_sub(MAX_CALL)?;
    if image.read_code_into(start, &mut bytes) == bytes.len() {
        let i = call_before(&bytes, after)?;
        let direct = i.flow_control() == FlowControl::Call;
        return (!direct || image.is_code(i.near_branch_target())).then_some(i);
    }
    None
}

/// What `i` calls or jumps to, as far as it can be told from the file.
pub(crate) fn target(image: &Image, slots: &Slots, i: &Instruction) -> Option<Callee> {
    match i.flow_control() {
        FlowControl::Call | FlowControl::UnconditionalBranch => {
            let to = i.near_branch_target();
            Some(through_stub(image, slots, to).unwrap_or(Callee::Local(to)))
        }
        FlowControl::IndirectCall | FlowControl::IndirectBranch => slot_of(i).and_then(|s| slots.get(image, s)),
        _ => None,
    }
}

/// The slot an indirect call or jump goes through, where its address is fixed.
fn slot_of(i: &Instruction) -> Option<u64> {
    let fixed = i.op0_kind() == OpKind::Memory
        && (i.is_ip_rel_memory_operand() || (i.memory_base() == Register::None && i.memory_index() == Register::None))
        && i.memory_segment() == Register::DS;
    fixed.then(|| i.memory_displacement64())
}

/// Where a PLT stub at `at` leads: `[endbr64] [bnd] jmp *slot(%rip)`.
fn through_stub(image: &Image, slots: &Slots, at: u64) -> Option<Callee> {
    let mut code = [0; 16];
    let got = image.read_code_into(at, &mut code);
    let decoder = Decoder::with_ip(64, code.get(..got)?, at, DecoderOptions::NONE);
    let jump = decoder.into_iter().find(|i| i.mnemonic() != Mnemonic::Endbr64)?;
    if jump.flow_control() != FlowControl::IndirectBranch {
        return None;
    }
    slots.get(image, slot_of(&jump)?)
}

/// Where a function may go by a jump as its last act: everything outside `range` it jumps to.
pub(crate) fn tail_jumps(image: &Image, slots: &Slots, range: Range<u64>) -> Vec<Callee> {
    let mut found = Vec::new();
    let len = range.end.saturating_sub(range.start).min(MAX_TAIL_CODE);
    let Some(code) = image.read_vaddr(range.start, len) else { return found };
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
                Some(through_stub(image, slots, to).unwrap_or(Callee::Local(to)))
            }
            _ => target(image, slots, &i),
        };
        if let Some(to) = to
            && !found.contains(&to)
        {
            found.push(to);
        }
    }
    found
}

/// The address of `main`, decoded from the start-up code at the ELF entry point: the last code
/// address it puts into rdi, the first argument of `__libc_start_main`, before it calls that.
pub(crate) fn main_of(image: &Image, slots: &Slots) -> Option<u64> {
    let mut code = [0; 160];
    let got = image.read_code_into(image.entry, &mut code);
    let mut main = None;
    for i in &mut Decoder::with_ip(64, code.get(..got)?, image.entry, DecoderOptions::NONE) {
        let to_rdi =
            i.op_count() == 2 && i.op0_kind() == OpKind::Register && i.op0_register().full_register() == Register::RDI;
        match i.mnemonic() {
            Mnemonic::Lea if to_rdi && i.is_ip_rel_memory_operand() => main = Some(i.ip_rel_memory_address()),
            Mnemonic::Mov if to_rdi && i.is_ip_rel_memory_operand() => {
                main = match slots.get(image, i.ip_rel_memory_address()) {
                    Some(Callee::Local(to)) => Some(to),
                    _ => None,
                };
            }
            Mnemonic::Mov if to_rdi && i.op1_kind() != OpKind::Register && i.op1_kind() != OpKind::Memory => {
                main = Some(i.immediate(1));
            }
            Mnemonic::Call | Mnemonic::Jmp => {
                if let Some(main) = main.filter(|m| image.is_code(*m)) {
                    return Some(main);
                }
                // musl's _start calls the function right behind it, which has the rest.
            }
            Mnemonic::Hlt | Mnemonic::Ret | Mnemonic::INVALID => break,
            _ => {}
        }
    }
    None
}

/// Whether the call that returns to `after` is the C library's `exit(main(argc, argv, environ))`:
/// an indirect call, its result put into edi, a direct call. glibc, musl, shared or static, have it.
pub(crate) fn calls_main(image: &Image, after: u64) -> bool {
    const MOV_EAX_EDI_CALL: [u8; 3] = [0x89, 0xc7, 0xe8];
    let mut code = [0; 3];
    image.read_code_into(after, &mut code) == 3
        && code == MOV_EAX_EDI_CALL
        && call_in_file(image, after).is_some_and(|i| i.flow_control() == FlowControl::IndirectCall)
}

/// The function that the start-up code at the entry point calls first: `__libc_start_main`.
pub(crate) fn first_call(image: &Image, slots: &Slots) -> Option<u64> {
    let mut code = [0; 160];
    let got = image.read_code_into(image.entry, &mut code);
    let call = Decoder::with_ip(64, code.get(..got)?, image.entry, DecoderOptions::NONE)
        .into_iter()
        .find(|i| matches!(i.flow_control(), FlowControl::Call | FlowControl::IndirectCall))?;
    match target(image, slots, &call)? {
        Callee::Local(at) => Some(at),
        Callee::Symbol(_) => None,
    }
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
}
