//! Calls that take and leave a lock of a file.

use super::vocabulary::When::{self, AllBits, AnyBits, InAnyBits, InNoBits, OneOf};
use systoll_model::constants::*;

/// A call that takes or leaves a lock of a file, of which the first argument is the descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileLock {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// Whether it leaves it.
    pub leaves: bool,
}

const SETS_LOCKS: &[u32] = &[F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW];
/// In `l_type` of `struct flock`, F_RDLCK and F_WRLCK being 0 and 1 (asm-generic/fcntl.h).
const F_UNLCK: u32 = 2;

/// The table.
#[rustfmt::skip]
pub(crate) static FILE_LOCKS: &[FileLock] = &[
    FileLock { call: "flock", when: &[AllBits(1, LOCK_UN)], leaves: true },
    FileLock { call: "flock", when: &[AnyBits(1, LOCK_SH | LOCK_EX)], leaves: false },
    FileLock { call: "fcntl", when: &[OneOf(1, SETS_LOCKS), InAnyBits(2, F_UNLCK)], leaves: true },
    FileLock { call: "fcntl", when: &[OneOf(1, SETS_LOCKS), InNoBits(2, F_UNLCK)], leaves: false },
];
