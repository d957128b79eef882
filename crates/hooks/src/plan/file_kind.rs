//! The kind of an ELF file, which tells for what purpose it is mapped.

use super::types::PlanError;
use object::LittleEndian as Le;
use object::elf;
use object::read::elf::Sym as _;
use systoll_binfile::elf::{Headers, symbols};
use systoll_binfile::{c_str, word};

/// Symbols by which debuggers find what a dynamic loader has loaded (glibc's and musl's). No other file defines them.
const LOADERS: [&[u8]; 2] = [b"_r_debug", b"_dl_debug_addr"];

/// The kind of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program, which the kernel starts.
    Program {
        /// True if the program names a dynamic loader (PT_INTERP).
        interpreted: bool,
    },
    /// A dynamic loader, which maps programs and libraries.
    Loader,
    /// Any other file that a loader loads.
    Library,
    /// A file for another processor, or for 32 bits.
    Foreign,
}

impl Kind {
    /// Returns the kind of the file `elf`; `None` if it is not an ELF file, or is damaged.
    #[must_use]
    pub fn of(elf: &[u8]) -> Option<Self> {
        let headers = match super::image::headers(elf) {
            Ok(headers) => headers,
            Err(PlanError::Foreign) => return Some(Self::Foreign),
            Err(_) => return None,
        };
        if is_loader(&headers, elf) {
            return Some(Self::Loader);
        }
        let interpreted = headers.interpreter.is_some();
        let dynamic = headers.dynamic.and_then(|piece| piece.data(elf)).unwrap_or_default();
        let find = |tag: elf::DynamicTag| {
            let entry = dynamic.chunks_exact(16).find(|d| word(d, 0) == Some(tag.0.cast_unsigned()))?;
            word(entry, 8)
        };
        // The C library can be started as a program, too, but it is meant to be loaded by name.
        let is_pie = find(elf::DT_FLAGS_1).is_some_and(|flags| flags & elf::DF_1_PIE.0 != 0);
        let has_name = find(elf::DT_SONAME).is_some();
        let program = headers.is_fixed || is_pie || (interpreted && !has_name);
        Some(if program { Self::Program { interpreted } } else { Self::Library })
    }
}

fn is_loader(headers: &Headers, data: &[u8]) -> bool {
    let of = |section| headers.linked(section).and_then(|strings| Some((section.data(data)?, strings.data(data)?)));
    let Some((table, strings)) = headers.of_kind(elf::SHT_DYNSYM).and_then(of) else { return false };
    let defined = symbols(table).iter().filter(|s| !s.is_undefined(Le));
    { defined }.any(|s| c_str(strings, s.st_name.get(Le) as usize).is_some_and(|name| LOADERS.contains(&name)))
}
