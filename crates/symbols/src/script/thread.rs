//! A thread whose scripts are read, and what one evaluation in it is executing.

use super::memory::Memory;
use crate::RawFrame;

/// A thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its id.
    pub tid: i32,
    /// Its fs base, where that is known: what `pthread_self` returns.
    pub fs_base: Option<u64>,
}

impl Thread {
    /// Whether `pthread_self` returns `id` in it.
    pub(super) fn is(self, memory: &mut Memory<'_, '_>, id: u64) -> bool {
        // `struct pthread.tid` of glibc (since 2.4) and of musl (since 1.2), on x86-64.
        const TIDS: [u64; 2] = [0x2d0, 0x30];
        match self.fs_base {
            Some(base) => base == id,
            None => TIDS.iter().any(|at| memory.half(id.wrapping_add(*at)) == Some(self.tid as u32)),
        }
    }
}

/// What one evaluation on the native stack is executing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Evaluation {
    /// Innermost first.
    pub(crate) frames: Vec<RawFrame>,
    /// An address inside the evaluation's native frame, where there is one.
    pub(crate) at: Option<u64>,
}
