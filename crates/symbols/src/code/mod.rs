//! What machine code tells where tables do not: which function a call reaches (by a stub, by a slot of
//! the global offset table), where `main` is, how far a function extends, where the kernel is entered.
//!
//! x86-64 only. Instructions are read from the file, never from the target's memory.

pub(crate) mod calls;
pub(crate) mod extent;
mod got;
pub(crate) mod kernel;
pub(crate) mod start;

pub(crate) use got::{Callee, GotSlots};
