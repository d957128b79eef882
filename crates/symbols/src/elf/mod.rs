//! One ELF file, taken apart: its headers, symbol tables with their strings, the index of what it
//! exports, and Go's table of functions. `systoll-binfile` has the formats that hooks are planned by too.
//!
//! Invariant: no count, size or offset of a file is believed; each has a bound beside it.

mod file;
mod gnu_hash;
mod go;
mod strings;
mod symbol_table;
mod view;

pub(crate) use file::ElfFile;
#[cfg(test)]
pub(crate) use file::elf_of_code;
pub(crate) use gnu_hash::Exports;
pub(crate) use go::{GoFunction, GoTable};
pub(crate) use strings::Strings;
pub(crate) use symbol_table::SymbolTable;
pub(crate) use view::View;
