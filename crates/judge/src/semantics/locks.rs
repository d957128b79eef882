//! Calls that take and leave locks: of a file, and those that are the kernel's own.

use super::vocabulary::When::{self, AllBits, AnyBits, InAnyBits, InNoBits, Is, OneOf};
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

/// A call that takes or leaves a lock which lies in the kernel, free or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelLock {
    /// The system call's name; its first argument tells which lock it is.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// Whether it leaves it.
    pub leaves: bool,
    /// What to use instead.
    pub instead: &'static str,
    /// What that gives up.
    pub gives_up: &'static str,
}

const fn semaphore(call: &'static str, leaves: bool, when: &'static [When]) -> KernelLock {
    let instead = "a mutex or a semaphore in shared memory (pthread_mutex with PTHREAD_PROCESS_SHARED, sem_init), which is no call while it is free";
    let gives_up = "SEM_UNDO: a robust mutex tells the next one that its holder died, and leaves it to that one";
    KernelLock { call, when, leaves, instead, gives_up }
}

/// In the first word of `struct sembuf`, whose second half is the number that is added: below zero.
const TAKES: u32 = 1 << 31;

/// The table: of several at once nothing tells which is taken.
#[rustfmt::skip]
pub(crate) static KERNEL_LOCKS: &[KernelLock] = &[
    semaphore("semop", false, &[Is(2, 1), InAnyBits(1, TAKES)]),
    semaphore("semop", true, &[Is(2, 1), InNoBits(1, TAKES)]),
    semaphore("semtimedop", false, &[Is(2, 1), InAnyBits(1, TAKES)]),
    semaphore("semtimedop", true, &[Is(2, 1), InNoBits(1, TAKES)]),
];
