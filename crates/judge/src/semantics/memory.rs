//! Calls that map memory and give it back.

use super::vocabulary::When::{self, AllBits, NoBits, OneOf};
use systoll_model::constants::*;

/// A call that maps a file's code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loads {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
}

/// The table.
pub(crate) static LOADS: &[Loads] = &[Loads { call: "mmap", when: &[AllBits(2, PROT_EXEC), NoBits(3, MAP_ANONYMOUS)] }];

/// How much a call gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// The bytes that an argument tells.
    Length(u8),
    /// The bytes by which the second argument named is below the first.
    Less(u8, u8),
    /// What lies between the end before and the result.
    DownTo,
}

/// A call that gives pages back, whether or not their addresses stay the program's: touched again,
/// each takes a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frees {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// How much.
    pub amount: Amount,
}

/// The table. Not MADV_FREE: its pages stay until the kernel needs them for something else.
pub(crate) static FREES: &[Frees] = &[
    Frees { call: "munmap", when: &[], amount: Amount::Length(1) },
    Frees { call: "mremap", when: &[], amount: Amount::Less(1, 2) },
    Frees { call: "madvise", when: &[OneOf(2, &[MADV_DONTNEED, MADV_REMOVE])], amount: Amount::Length(1) },
    Frees { call: "brk", when: &[], amount: Amount::DownTo },
];
