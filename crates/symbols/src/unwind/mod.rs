//! One step of unwinding: from an address in a file to its caller's registers.
//!
//! A [`Step`] is worked out once for each address and kept; executing it takes nanoseconds. It comes from call frame
//! information ([`Cfi`]). If a file has none, it comes from Go's own table, or from interpreting the code up to its
//! `ret` ([`Epilogue`]). [`crate::AddressSpace`] walks whole stacks by such steps.
//!
//! # Why not framehop
//!
//! framehop (0.16) unwinds the same files for profilers, which can tolerate a lost stack. A count by calling context
//! cannot: a wrong caller is a wrong row. On x86-64, framehop
//!
//! - follows only rip, rsp and rbp, and its expressions read no memory: it cannot pass glibc's signal frames, nor code
//!   that realigns its stack by another register;
//! - uses rbp as a frame pointer, without saying so, if a file has no entry for the code, or one that it does not
//!   support. musl's C library, Go's functions and assembly have no entries. This crate interprets the code up to its
//!   `ret`, and checks that the return address follows a call;
//! - looks up the byte before a return address even if the return enters a function at its first byte, and accepts a
//!   word that points to data as a caller: it finds no end of a coroutine's stack;
//! - does not tell whether a frame always lies at the same distance from the one it calls. The counting code needs
//!   that to find callers in the target ([`crate::PlacedFrame::constant`]).
//!
//! `tests/all/framehop.rs` compares both: they find the same return addresses, except for these reasons.

mod arch;
mod cfi;
mod expression;
mod search_table;
mod small_section;
mod step;

pub use arch::Registers;
pub(crate) use arch::{FP, LINKS, RA, REGISTERS, SP, Switches, find_epilogue, return_to, rule_of_go_frame, strip};
pub(crate) use cfi::{Cfi, RowContext};
pub(crate) use step::{Epilogue, FRAME_RECORD, Rule, Step, step_by_frame_pointer, step_signal_frame};
