//! A symbol table with its strings.

use super::strings::Strings;
use super::view::View;
use object::LittleEndian as Le;
use object::elf;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use systoll_binfile::elf::{Symbol, symbols};

/// A symbol table and its strings. Names, relocations and runtimes are all looked up in the dynamic table, which can
/// have megabytes. They need few symbols, and each of these is read by itself.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    entries: View,
    pub(crate) strings: Arc<Strings>,
}

impl SymbolTable {
    /// Makes a table of `entries`, whose names are offsets in `strings`.
    pub(super) fn new(entries: View, strings: Strings) -> Self {
        Self { entries, strings: Arc::new(strings) }
    }

    /// Returns the address of the symbol at `index` if the file defines it under this name.
    pub(crate) fn defined(&self, index: u32, name: &[u8]) -> Option<u64> {
        let symbol = self.symbol(index).filter(|s| s.st_shndx.get(Le) != elf::SHN_UNDEF)?;
        (self.strings.get(symbol.st_name.get(Le)).as_deref() == Some(name)).then(|| symbol.st_value.get(Le))
    }

    /// Returns the address range of the symbol at `index` if the file defines it under this name.
    pub(crate) fn extent(&self, index: u32, name: &[u8]) -> Option<Range<u64>> {
        let start = self.defined(index, name)?;
        Some(start..start.checked_add(self.symbol(index)?.st_size.get(Le))?)
    }

    /// Returns the name of the symbol at `index`.
    pub(crate) fn name(&self, index: u32) -> Option<Cow<'_, [u8]>> {
        self.strings.get(self.symbol(index)?.st_name.get(Le))
    }

    fn symbol(&self, index: u32) -> Option<Symbol> {
        let mut entry = [0; size_of::<Symbol>()];
        let at = u64::from(index) * entry.len() as u64;
        self.entries.read_into(at, &mut entry).then(|| symbols(&entry).first().copied())?
    }

    /// Returns all symbols, which stay in memory from now on.
    pub(crate) fn symbols(&self) -> &[Symbol] {
        symbols(self.entries.whole())
    }
}
