//! Addresses → what a programmer would call them; and stacks of stopped threads → addresses.
//!
//! Invariant: nothing here fails. What can't be named is `Unknown` or a
//! [`systoll_model::Problem`]; what a file or a target says is checked, never trusted.
#![forbid(unsafe_code)]

mod ahead;
#[cfg(any(test, feature = "any-file"))]
pub mod any_file;
mod api;
mod calls;
mod cfi;
mod class;
mod debug;
mod elf;
mod exports;
mod extent;
mod forward;
mod go;
#[cfg(test)]
mod hostile;
mod known;
mod lines;
mod maps;
mod module;
mod names;
mod raw;
mod resolve;
mod rule;
mod scope;
mod script;
mod source;
mod space;
mod strings;
mod symbols;

pub use ahead::{Ahead, AheadFile, libraries_of, make_decoder_ready};
pub use raw::{ModuleKey, PlacedFrame, RawFrame, Registers, Until};
pub use resolve::{Lines, Resolved};
pub use script::{ReadMemory, Thread};
pub use source::FileState;
pub use space::{AddressSpace, MappedFile};
pub use symbols::Symbols;

/// The longest stack ever unwound.
pub const MAX_FRAMES: usize = 256;
