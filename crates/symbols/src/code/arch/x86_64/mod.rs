//! Instructions of x86-64.

pub(crate) mod calls;
pub(crate) mod extent;
pub(crate) mod kernel;
pub(crate) mod start;
pub(crate) mod variables;

use iced_x86::{Decoder, DecoderOptions};

/// Makes the instruction decoder unpack its tables, which it does once, on first use. That takes as long as decoding
/// thousands of instructions.
pub(crate) fn make_ready() {
    let _ = Decoder::new(64, &[0xc3], DecoderOptions::NONE).decode();
}

/// Kinds of relocations (x86-64 psABI, table 4.9).
pub(crate) mod relocations {
    use object::elf::{self, RelocationType};

    /// Those that fill a slot with a symbol's address.
    pub(crate) const SYMBOLS: [RelocationType; 3] = [elf::R_X86_64_JUMP_SLOT, elf::R_X86_64_GLOB_DAT, elf::R_X86_64_64];
    /// That which fills a slot with the address that a function chooses.
    pub(crate) const CHOSEN: RelocationType = elf::R_X86_64_IRELATIVE;
    /// That which fills a slot with an address in the file.
    pub(crate) const RELATIVE: RelocationType = elf::R_X86_64_RELATIVE;
}
