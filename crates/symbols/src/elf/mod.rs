//! Reads one ELF file: its headers, its symbol tables with their strings, its index of exported symbols, and Go's table
//! of functions. `systoll-binfile` reads the formats that hooks are planned from as well.
//!
//! Invariant: no count, size or offset of a file is trusted; each has a bound next to it.

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
