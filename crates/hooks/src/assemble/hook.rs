//! The jumps of a site, and the result of writing its code.

use super::blob::{CountedPlace, Refused};
use iced_x86::code_asm::CodeLabel;

/// A jump to be written into the file's text.
pub(super) struct Hook {
    /// Address of the replaced bytes (ELF vaddr).
    pub(super) start: u64,
    /// Number of replaced bytes.
    pub(super) bytes: usize,
    /// Target of the jump.
    pub(super) label: CodeLabel,
}

/// The result of writing one site's code.
#[derive(Default)]
pub(super) struct SiteCode {
    pub(super) hooks: Vec<Hook>,
    pub(super) counted: Option<CountedPlace>,
    pub(super) refused: Option<Refused>,
}
