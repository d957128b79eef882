//! Addresses in dash's code, which are found by decoding it.

#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::ops::Range;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::find;

/// Returns `None`: code of this machine is not read here, so no file counts as dash, and its scripts have no lines.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn find(_: crate::script::interpreter::Candidate<'_>) -> Option<Option<Anatomy>> {
    None
}

/// Addresses of dash's variables and of the functions that evaluate commands, in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Anatomy {
    /// Address of `errlinno`, the line of the command being evaluated.
    pub(crate) line: u64,
    /// Address of `funcline`, the line at which the function being evaluated begins, or 0.
    pub(crate) function_line: u64,
    /// Address of `arg0`, the script's name or the name by which the shell was called.
    pub(crate) script: u64,
    /// Address of `parsefile`, the pointer to the input being read.
    pub(crate) input: u64,
    /// Code of `evalcommand`.
    pub(crate) command: Range<u64>,
    /// Offset from rsp at which a frame of `evalcommand` keeps the command.
    pub(crate) command_slot: u64,
    /// Offset from rsp at which a frame of `evalcommand` keeps the input that was read when it began.
    pub(crate) input_slot: u64,
    /// Code of `evalfun`.
    pub(crate) function: Range<u64>,
    /// Offset from rsp at which a frame of `evalfun` keeps the function.
    pub(crate) function_slot: u64,
    /// Code of all functions that set `errlinno` from a node: `evaltree`, `evalfor`, …
    pub(crate) evaluators: Vec<Range<u64>>,
}
