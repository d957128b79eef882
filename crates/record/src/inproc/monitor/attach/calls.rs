//! System calls that a stopped thread of a running program makes for us, and is as it was.
//!
//! They are made by a `syscall` instruction of the program's own, touch no byte of its stack, and leave alone what the
//! kernel knows of the call that the thread was in.

use crate::inproc::monitor::exec::hand_over::{self, Caller};
use crate::inproc::monitor::shared::remote::Mem;
use std::fs::File;

/// Bytes of memory of ours in the program for as long as files are handed over.
const SCRATCH: u64 = 4096;
const ALONE: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;

/// Hands `files` to the process of a stopped thread. Returns the descriptors that they have there.
///
/// # Errors
/// In words.
pub(crate) fn hand_over(caller: &Caller<'_>, files: &[File; 2]) -> Result<[i32; 2], String> {
    let scratch = caller.call(libc::SYS_mmap, [0, SCRATCH, READ_WRITE, ALONE, u64::MAX, 0])?;
    let handed = hand_over::over_sockets(caller, files, scratch);
    caller.call(libc::SYS_munmap, [scratch, SCRATCH, 0, 0, 0, 0])?;
    handed
}

/// The address of a `syscall` instruction of the program's own, by which calls can be made.
pub(crate) fn instruction(mem: &Mem, mut candidates: impl Iterator<Item = u64>) -> Option<u64> {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    candidates.find(|at| {
        let mut bytes = [0; 2];
        mem.read(*at, &mut bytes).is_ok() && bytes == SYSCALL
    })
}
