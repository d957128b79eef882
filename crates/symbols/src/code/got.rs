//! Slots of the global offset table, and the values that the loader writes into them.

use super::relocations as kinds;
use crate::elf::{ElfFile, SymbolTable};
use object::LittleEndian as Le;
use object::elf;
use std::ops::Range;
use std::sync::Arc;
use systoll_binfile::elf::{Relocation, Section, relocations};
use systoll_binfile::word;

/// Relocations read from one section, at most.
const MAX_RELOCATIONS: usize = 4_000_000;
/// Relocations in memory at a time, at most. A large program has megabytes of them, and few concern
/// a slot.
const AT_ONCE: usize = 512;

/// Target of a call or a jump.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Callee {
    /// A function of the same file, by its address.
    Local(u64),
    /// The definition to which the loader binds this name.
    Symbol(Arc<str>),
}

/// Values that the loader writes into the slots of a file.
#[derive(Debug, Default)]
pub(crate) struct GotSlots {
    /// Values by the slot's address. If a slot has several values, the last one counts.
    values: Vec<(u64, SlotValue)>,
    /// The symbol table that [`SlotValue::Symbol`] indexes.
    symbols: Option<Arc<SymbolTable>>,
}

/// Value of a slot: a symbol's address, or an address in this file.
#[derive(Clone, Copy, Debug)]
enum SlotValue {
    Symbol(u32),
    Local(u64),
}

impl GotSlots {
    /// Reads the file's dynamic relocations. In a static file, they are those that choose among
    /// implementations of a function.
    pub(crate) fn read(elf: &ElfFile) -> Self {
        let mut slots = Self::default();
        let table = |s: &Section| s.addr..s.addr.saturating_add(s.size);
        let got: Vec<_> = elf.headers.sections.iter().filter(|s| s.name.starts_with(".got")).map(table).collect();
        for section in elf.headers.sections.iter().filter(|s| s.kind == elf::SHT_RELA) {
            slots.add(elf, section, &got);
        }
        // The sort is stable, so the last value of a slot stays last. It is fast, since linkers
        // write relocations nearly sorted.
        slots.values.sort_by_key(|(slot, _)| *slot);
        slots
    }

    fn add(&mut self, elf: &ElfFile, section: &Section, got: &[Range<u64>]) -> Option<()> {
        let linked = elf.headers.sections.get(section.link as usize).filter(|s| s.kind == elf::SHT_DYNSYM);
        let symbols = linked.and_then(|_| elf.dynamic_symbols());
        if symbols.is_some() {
            self.symbols = symbols.cloned();
        }
        if !section.is_stored() || section.is_compressed() {
            let data = elf.section_data(section)?;
            self.add_some(&data, symbols.is_some(), got);
            return Some(());
        }
        if !elf.bytes.may_read(section.offset, section.size) {
            return None;
        }
        let most = section.size.min((MAX_RELOCATIONS * size_of::<Relocation>()) as u64);
        let mut buffer = vec![0; AT_ONCE * size_of::<Relocation>()];
        for at in (0..most).step_by(buffer.len()) {
            let len = buffer.len().min(usize::try_from(most - at).ok()?);
            let some = buffer.get_mut(..len)?;
            elf.bytes.read_into(section.offset + at, some).then_some(())?;
            self.add_some(some, symbols.is_some(), got);
        }
        Some(())
    }

    fn add_some(&mut self, data: &[u8], has_symbols: bool, got: &[Range<u64>]) {
        for r in relocations(data).iter().take(MAX_RELOCATIONS) {
            let slot = r.r_offset.get(Le);
            let local = || Some(SlotValue::Local(r.r_addend.get(Le) as u64));
            let callee = match elf::RelocationType(r.r_type(Le, false).0) {
                kind if kinds::SYMBOLS.contains(&kind) => has_symbols.then(|| SlotValue::Symbol(r.r_sym(Le, false))),
                kinds::CHOSEN => local(),
                kinds::RELATIVE if got.iter().any(|g| g.contains(&slot)) => local(),
                _ => None,
            };
            if let Some(callee) = callee {
                self.values.push((slot, callee));
            }
        }
    }

    /// Returns the function whose address the loader writes into `slot`.
    fn callee_in(&self, slot: u64) -> Option<Callee> {
        let end = self.values.partition_point(|(at, _)| *at <= slot);
        let same = self.values.get(..end)?.iter().rev().take_while(|(at, _)| *at == slot);
        same.filter_map(|(_, value)| match *value {
            SlotValue::Local(to) => Some(Callee::Local(to)),
            SlotValue::Symbol(index) => {
                let name = self.symbols.as_ref()?.name(index).filter(|name| !name.is_empty())?;
                Some(Callee::Symbol(String::from_utf8_lossy(&name).into()))
            }
        })
        .next()
    }

    pub(crate) fn get(&self, elf: &ElfFile, slot: u64) -> Option<Callee> {
        if let Some(callee) = self.callee_in(slot) {
            return Some(callee);
        }
        // In a static file that is not moved, no relocation fills the slot: the file already holds
        // the address.
        let fixed =
            elf.headers.sections.iter().any(|s| s.name.starts_with(".got") && slot.wrapping_sub(s.addr) < s.size);
        let target = fixed.then(|| elf.read_vaddr(slot, 8)).flatten().and_then(|w| word(&w, 0))?;
        elf.is_code(target).then_some(Callee::Local(target))
    }
}
