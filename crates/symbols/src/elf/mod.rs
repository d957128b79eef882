//! One ELF file, taken apart: headers, sections, symbol tables with their strings, the index of what
//! it exports, and Go's table of functions.
//!
//! Invariant: no count, size or offset of a file is believed; each has a bound beside it.

mod file;
mod gnu_hash;
pub(crate) mod pclntab;
mod read;
mod strings;
mod symbol_table;

#[cfg(test)]
pub(crate) use file::elf_of_code;
pub(crate) use file::{ElfFile, Section};
pub(crate) use gnu_hash::Exports;
pub(crate) use pclntab::GoTable;
pub(crate) use read::{c_str, half, word};
pub(crate) use strings::Strings;
pub(crate) use symbol_table::SymbolTable;
