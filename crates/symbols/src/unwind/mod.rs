//! One step of unwinding: from an address in a file to where its caller's registers lie.
//!
//! A [`Step`] is worked out once for each address and kept; executing it takes nanoseconds. It comes
//! from call frame information ([`Cfi`]), or, where a file has none, from Go's own table, or from what the code
//! does until its `ret` ([`find_epilogue`]). [`crate::AddressSpace`] walks whole stacks by such steps.
//!
//! # Why not framehop
//!
//! framehop (0.16) unwinds the same files for profilers, which may lose a stack. Counting by calling
//! context may not: a wrong caller is a wrong row. On x86-64 it
//!
//! - keeps rip, rsp and rbp alone, and its expressions read no memory: it does not get over a signal's frame
//!   of glibc, nor over code that realigns its stack by another register;
//! - takes rbp for a frame pointer where a file has no entry for the code, or one it does not follow, and
//!   does not say so: musl's C library, Go's functions and assembly have none. We read the code to its `ret`,
//!   and check that what we return to follows a call;
//! - looks at the byte before a return address also where a return enters a function at its first byte, and
//!   takes a word that points to data for a caller: coroutines do not end;
//! - does not tell whether a frame always lies at the same distance from the one it calls, by which the
//!   counting code finds callers in the target ([`crate::PlacedFrame::constant`]).
//!
//! `tests/framehop.rs` holds both against each other: the same return addresses, but for these reasons.

mod cfi;
mod epilogue;
mod expression;
mod search_table;
mod small_section;
mod step;

pub(crate) use cfi::{Cfi, RowContext};
pub(crate) use epilogue::{Epilogue, find_epilogue};
pub(crate) use step::{RA, RBP, REGISTERS, RSP, Rule, Step, step_signal_frame};
