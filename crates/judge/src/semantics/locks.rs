//! Calls that lock and unlock: a file, or a lock that the kernel holds.

use super::vocabulary::When::{self, AllBits, AnyBits, InAnyBits, InNoBits, Is, OneOf};
use systoll_model::constants::*;

/// A call that locks or unlocks a file; its first argument is the descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileLock {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// True if the call unlocks.
    pub leaves: bool,
}

const SETS_LOCKS: &[u32] = &[F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW];
/// Value of `l_type` in `struct flock` that unlocks; F_RDLCK and F_WRLCK are 0 and 1 (asm-generic/fcntl.h).
const F_UNLCK: u32 = 2;

/// The calls that lock and unlock files.
#[rustfmt::skip]
pub(crate) static FILE_LOCKS: &[FileLock] = &[
    FileLock { call: "flock", when: &[AllBits(1, LOCK_UN)], leaves: true },
    FileLock { call: "flock", when: &[AnyBits(1, LOCK_SH | LOCK_EX)], leaves: false },
    FileLock { call: "fcntl", when: &[OneOf(1, SETS_LOCKS), InAnyBits(2, F_UNLCK)], leaves: true },
    FileLock { call: "fcntl", when: &[OneOf(1, SETS_LOCKS), InNoBits(2, F_UNLCK)], leaves: false },
];

/// A call that takes or releases a lock which needs the kernel, contended or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelLock {
    /// The system call's name; its first argument identifies the lock.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// True if the call releases the lock.
    pub leaves: bool,
    /// The advice, for a sentence.
    pub instead: &'static str,
    /// The drawback of the advice; empty if there is none.
    pub gives_up: &'static str,
}

const fn semaphore(call: &'static str, leaves: bool, when: &'static [When]) -> KernelLock {
    let instead = "a mutex or a semaphore in shared memory (pthread_mutex with PTHREAD_PROCESS_SHARED, sem_init), which is no call while it is free";
    let gives_up = "SEM_UNDO: a robust mutex tells the next one that its holder died, and leaves it to that one";
    KernelLock { call, when, leaves, instead, gives_up }
}

/// Sign bit of the number to add, in the first word of `struct sembuf`: a negative number takes the semaphore.
const TAKES: u32 = 1 << 31;

/// The calls on kernel locks. Calls with several operations are absent, since nothing tells which is taken.
#[rustfmt::skip]
pub(crate) static KERNEL_LOCKS: &[KernelLock] = &[
    semaphore("semop", false, &[Is(2, 1), InAnyBits(1, TAKES)]),
    semaphore("semop", true, &[Is(2, 1), InNoBits(1, TAKES)]),
    semaphore("semtimedop", false, &[Is(2, 1), InAnyBits(1, TAKES)]),
    semaphore("semtimedop", true, &[Is(2, 1), InNoBits(1, TAKES)]),
];
