//! Instructions of aarch64.

pub(crate) mod calls;
pub(crate) mod decode;
pub(crate) mod extent;
pub(crate) mod kernel;
pub(crate) mod start;
pub(crate) mod variables;

/// Nothing is to be made ready: instructions are decoded without tables.
pub(crate) fn make_ready() {}

/// Kinds of relocations (ELF for the Arm 64-bit Architecture, section 5.7).
pub(crate) mod relocations {
    use object::elf::{self, RelocationType};

    /// Those that fill a slot with a symbol's address.
    pub(crate) const SYMBOLS: [RelocationType; 3] =
        [elf::R_AARCH64_JUMP_SLOT, elf::R_AARCH64_GLOB_DAT, elf::R_AARCH64_ABS64];
    /// That which fills a slot with the address that a function chooses.
    pub(crate) const CHOSEN: RelocationType = elf::R_AARCH64_IRELATIVE;
    /// That which fills a slot with an address in the file.
    pub(crate) const RELATIVE: RelocationType = elf::R_AARCH64_RELATIVE;
}
