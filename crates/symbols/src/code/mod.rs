//! Facts that only machine code tells: the function that a call reaches (through a stub or a slot of the global offset
//! table), the address of `main`, the end of a function, and where a thread enters the kernel.
//!
//! x86-64 only. Instructions are read from the file, never from the target's memory.

pub(crate) mod calls;
pub(crate) mod extent;
mod got;
pub(crate) mod kernel;
pub(crate) mod start;

pub(crate) use got::{Callee, GotSlots};
