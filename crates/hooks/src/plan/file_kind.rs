//! What kind of file an ELF file is: what may be meant by mapping it.

use super::types::PlanError;
use object::LittleEndian as Le;
use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Sym};

type Header = elf::FileHeader64<Le>;

/// By these symbols debuggers find what a dynamic loader has loaded (glibc's and musl's). No other
/// file defines them.
const LOADERS: [&[u8]; 2] = [b"_r_debug", b"_dl_debug_addr"];

/// What kind of file an ELF file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program, made to be started by the kernel.
    Program {
        /// Whether it names a dynamic loader (PT_INTERP).
        interpreted: bool,
    },
    /// A dynamic loader, which maps programs and libraries.
    Loader,
    /// Anything else that is loaded by a loader.
    Library,
    /// For another processor, or for 32 bits.
    Foreign,
}

impl Kind {
    /// Of the file `elf`; `None` where it is not an ELF file, or a damaged one.
    #[must_use]
    pub fn of(elf: &[u8]) -> Option<Self> {
        let (header, headers) = match super::image::headers(elf) {
            Ok(both) => both,
            Err(PlanError::Foreign) => return Some(Self::Foreign),
            Err(_) => return None,
        };
        if is_loader(header, elf) {
            return Some(Self::Loader);
        }
        let interpreted = headers.iter().any(|p| p.p_type(Le) == elf::PT_INTERP);
        let dynamic = headers.iter().find_map(|p| p.dynamic(Le, elf).ok().flatten()).unwrap_or_default();
        let find = |tag| dynamic.iter().find(|d| d.tag(Le) == tag).map(|d| d.val(Le));
        // The C library can be started as a program, too, but is made to be loaded by name.
        let is_pie = find(elf::DT_FLAGS_1).is_some_and(|flags| flags & elf::DF_1_PIE.0 != 0);
        let has_name = find(elf::DT_SONAME).is_some();
        let program = header.e_type(Le) == elf::ET_EXEC || is_pie || (interpreted && !has_name);
        Some(if program { Self::Program { interpreted } } else { Self::Library })
    }
}

fn is_loader(header: &Header, data: &[u8]) -> bool {
    let Ok(sections) = header.sections(Le, data) else { return false };
    let Ok(table) = sections.symbols(Le, data, elf::SHT_DYNSYM) else { return false };
    let names = table.iter().filter(|s| !s.is_undefined(Le)).filter_map(|s| table.symbol_name(Le, s).ok());
    { names }.any(|name| LOADERS.contains(&name))
}
