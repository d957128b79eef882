//! Facts that only machine code tells: the function that a call reaches (through a stub or a slot of the global offset
//! table), the address of `main`, the end of a function, and where a thread enters the kernel.
//!
//! Instructions are read from the file, never from the target's memory.

mod arch;
mod got;

#[cfg(target_arch = "aarch64")]
pub(crate) use arch::decode;
pub use arch::extent::MOST_REACH;
pub(crate) use arch::{calls, extent, kernel, make_ready, relocations, start, variables};

pub(crate) use got::{Callee, GotSlots};
