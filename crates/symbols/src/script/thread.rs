//! A thread whose scripts are read, and the functions of one evaluation in it.

use super::memory::Memory;
use crate::RawFrame;

/// A waiting thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: i32,
    /// The thread's fs base, if it is known: the value that `pthread_self` returns.
    pub fs_base: Option<u64>,
}

impl Thread {
    /// Returns the value that the thread keeps under a key of `pthread_key_create`, with glibc. If the fs base is not
    /// known, the thread's struct is searched above the outermost frame; the first thread has none there.
    pub(super) fn specific(self, memory: &mut Memory<'_, '_>, outermost: u64, key: u32) -> Option<u64> {
        // This is `struct pthread.specific_1stblock`: pairs of a sequence number and the value.
        const SPECIFIC: u64 = 0x310;
        const IN_FIRST_BLOCK: u32 = 32;
        let thread = match self.fs_base {
            Some(base) => base,
            None => self.address(memory, outermost)?,
        };
        let pair = thread.wrapping_add(SPECIFIC).wrapping_add(u64::from(key) * 16);
        (key < IN_FIRST_BLOCK).then(|| memory.pointer(pair.wrapping_add(8)))?
    }

    /// Returns the address of glibc's `struct pthread`, which points to itself twice and holds the thread's id.
    fn address(self, memory: &mut Memory<'_, '_>, outermost: u64) -> Option<u64> {
        /// Bytes searched above the first frame; the thread's own variables lie before the struct.
        const WITHIN: u64 = 16 << 10;
        const TID: u64 = 0x2d0;
        let start = outermost & !0xf;
        (start..start.saturating_add(WITHIN)).step_by(16).find(|at| {
            memory.word(*at) == Some(*at)
                && memory.word(at.wrapping_add(16)) == Some(*at)
                && memory.half(at.wrapping_add(TID)) == Some(self.tid as u32)
        })
    }

    /// Returns true if `pthread_self` returns `id` in the thread.
    pub(super) fn is(self, memory: &mut Memory<'_, '_>, id: u64) -> bool {
        // Offsets of `struct pthread.tid` in glibc (since 2.4) and in musl (since 1.2), on x86-64.
        const TIDS: [u64; 2] = [0x2d0, 0x30];
        match self.fs_base {
            Some(base) => base == id,
            None => TIDS.iter().any(|at| memory.half(id.wrapping_add(*at)) == Some(self.tid as u32)),
        }
    }
}

/// The functions being executed by one evaluation on the native stack.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Evaluation {
    /// Frames, innermost first.
    pub(crate) frames: Vec<RawFrame>,
    /// An address inside the evaluation's native frame, if it has one.
    pub(crate) at: Option<u64>,
}
