//! Slots of the global offset table: what the loader writes into them, which code calls through.

use crate::elf::{ElfFile, SymbolTable};
use object::LittleEndian as Le;
use object::elf;
use std::ops::Range;
use std::sync::Arc;
use systoll_binfile::elf::{Relocation, Section, relocations};
use systoll_binfile::word;

/// Most relocations of one section looked at.
const MAX_RELOCATIONS: usize = 4_000_000;
/// How many are in memory at a time: a large program has megabytes of them, of which few tell of a slot.
const AT_ONCE: usize = 512;

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
pub(crate) struct GotSlots {
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

impl GotSlots {
    /// Reads the file's dynamic relocations; in static files, those that pick an implementation.
    pub(crate) fn read(elf: &ElfFile) -> Self {
        let mut slots = Self::default();
        let table = |s: &Section| s.addr..s.addr.saturating_add(s.size);
        let got: Vec<_> = elf.headers.sections.iter().filter(|s| s.name.starts_with(".got")).map(table).collect();
        for section in elf.headers.sections.iter().filter(|s| s.kind == elf::SHT_RELA) {
            slots.add(elf, section, &got);
        }
        // Stable, and linkers have nearly sorted them.
        slots.written.sort_by_key(|(slot, _)| *slot);
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
            let callee = match elf::RelocationType(r.r_type(Le, false).0) {
                elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_64 => {
                    has_symbols.then(|| Written::Symbol(r.r_sym(Le, false)))
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

    pub(super) fn get(&self, elf: &ElfFile, slot: u64) -> Option<Callee> {
        if let Some(callee) = self.written_to(slot) {
            return Some(callee);
        }
        // A static file that isn't moved has the address in place.
        let fixed =
            elf.headers.sections.iter().any(|s| s.name.starts_with(".got") && slot.wrapping_sub(s.addr) < s.size);
        let target = fixed.then(|| elf.read_vaddr(slot, 8)).flatten().and_then(|w| word(&w, 0))?;
        elf.is_code(target).then_some(Callee::Local(target))
    }
}
