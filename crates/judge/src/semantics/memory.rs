//! Calls that give memory back.

use super::vocabulary::When::{self, OneOf};
use systoll_model::constants::*;

/// The amount of memory that a call gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// The number of bytes in an argument.
    Length(u8),
    /// The number of bytes by which the second argument is smaller than the first.
    Less(u8, u8),
    /// The memory from the result up to the heap's previous end.
    DownTo,
}

/// A call that gives pages back, with or without their addresses: when they are used again, each takes a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frees {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The amount given back.
    pub amount: Amount,
}

/// The calls that give pages back. MADV_FREE is absent: its pages stay until the kernel needs them elsewhere.
pub(crate) static FREES: &[Frees] = &[
    Frees { call: "munmap", when: &[], amount: Amount::Length(1) },
    Frees { call: "mremap", when: &[], amount: Amount::Less(1, 2) },
    Frees { call: "madvise", when: &[OneOf(2, &[MADV_DONTNEED, MADV_REMOVE])], amount: Amount::Length(1) },
    Frees { call: "brk", when: &[], amount: Amount::DownTo },
];
