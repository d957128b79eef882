//! One step of unwinding: from an address in a file to where its caller's registers lie.
//!
//! A [`Step`] is worked out once for each address and kept; executing it takes nanoseconds. It comes
//! from call frame information ([`Cfi`]), or, where a file has none, from what the code does until its
//! `ret` ([`find_epilogue`]). [`crate::AddressSpace`] walks whole stacks by such steps.

mod cfi;
mod epilogue;
mod expression;
mod search_table;
mod step;

pub(crate) use cfi::{Cfi, RowContext};
pub(crate) use epilogue::{Epilogue, find_epilogue};
pub(crate) use step::{RA, RBP, REGISTERS, RSP, Step, step_signal_frame};
