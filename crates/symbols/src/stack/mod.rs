//! Stacks of stopped threads: the mappings of an address space, and the walk from frame to frame.

mod search;
mod space;
mod walk;

pub use space::{AddressSpace, MappedFile};
