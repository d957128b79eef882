//! Addresses → what a programmer would call them; and stacks of stopped threads → addresses.
//!
//! Invariant: nothing here fails. What can't be named is `Unknown` or a
//! [`systoll_model::Problem`]; what a file or a target says is checked, never trusted.
#![forbid(unsafe_code)]

mod code;
mod elf;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
#[cfg(test)]
mod hostile;
mod lines;
mod mapped;
mod module;
mod names;
mod naming;
mod script;
mod stack;
mod symbols;
mod unwind;

pub use frame::{ModuleKey, PlacedFrame, RawFrame, Registers, Until};
pub use mapped::FileState;
pub use module::{Preloaded, PreloadedFile, libraries_of, make_decoder_ready};
pub use naming::{Lines, Resolved};
pub use script::{ReadMemory, Thread};
pub use stack::{AddressSpace, MappedFile};
pub use symbols::Symbols;

/// The longest stack ever unwound.
pub const MAX_FRAMES: usize = 256;
