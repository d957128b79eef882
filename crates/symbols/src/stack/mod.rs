//! Stacks of stopped threads: the mappings of an address space, and the walk from frame to frame.

mod idle;
mod search;
mod space;
mod walk;

pub use idle::Idle;
pub use space::{AddressSpace, MappedFile};
