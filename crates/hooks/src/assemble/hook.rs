//! A site's jumps, and what is told of it.

use super::blob::{Counted, Refused};
use iced_x86::code_asm::CodeLabel;

/// A jump to be written into the file's text.
pub(super) struct Hook {
    /// Over what (ELF vaddr).
    pub(super) start: u64,
    /// How many bytes.
    pub(super) bytes: usize,
    /// To where.
    pub(super) label: CodeLabel,
}

/// What one site came to.
#[derive(Default)]
pub(super) struct Written {
    pub(super) hooks: Vec<Hook>,
    pub(super) counted: Option<Counted>,
    pub(super) refused: Option<Refused>,
}
