//! A thread whose scripts are read, and the functions of one evaluation in it.

use super::memory::Memory;
use crate::RawFrame;

/// A waiting thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: i32,
    /// The thread's own register (fs base, TPIDR_EL0), if it is known. On x86-64 it is the value that `pthread_self`
    /// returns; on aarch64 glibc's struct of the thread lies before the address in it.
    pub fs_base: Option<u64>,
}

/// True if the thread's own register points behind the C library's struct of the thread, not to it.
const BEFORE_POINTER: bool = cfg!(target_arch = "aarch64");
/// Offset of `struct pthread.tid` in glibc (since 2.4), bytes.
const TID: u64 = if BEFORE_POINTER { 0xd0 } else { 0x2d0 };
/// The same in glibc and in musl (since 1.2).
const TIDS: [u64; 2] = [TID, if BEFORE_POINTER { 0x20 } else { 0x30 }];

impl Thread {
    /// Returns the value that the thread keeps under a key of `pthread_key_create`, with glibc. If the fs base is not
    /// known, the thread's struct is searched above the outermost frame; the first thread has none there.
    pub(super) fn specific(self, memory: &mut Memory<'_, '_>, outermost: u64, key: u32) -> Option<u64> {
        // This is `struct pthread.specific_1stblock`: pairs of a sequence number and the value.
        const SPECIFIC: u64 = TID + 0x40;
        const IN_FIRST_BLOCK: u32 = 32;
        let thread = match self.fs_base {
            Some(base) if !BEFORE_POINTER => base,
            Some(base) => self.before(memory, base)?,
            None => self.address(memory, outermost)?,
        };
        let pair = thread.wrapping_add(SPECIFIC).wrapping_add(u64::from(key) * 16);
        (key < IN_FIRST_BLOCK).then(|| memory.pointer(pair.wrapping_add(8)))?
    }

    /// Returns the address of glibc's `struct pthread` that ends at the thread's own data `at`: the struct holds the
    /// thread's id. Its size differs between versions (0x720 bytes in glibc 2.41).
    fn before(self, memory: &mut Memory<'_, '_>, at: u64) -> Option<u64> {
        (0x400u64..0xc00).step_by(16).map(|size| at.wrapping_sub(size)).find(|start| {
            memory.half(start.wrapping_add(TID)) == Some(self.tid as u32)
                && memory.half(start.wrapping_add(TID + 4)) != Some(self.tid as u32)
        })
    }

    /// Returns the address of glibc's `struct pthread`, which points to itself twice and holds the thread's id.
    fn address(self, memory: &mut Memory<'_, '_>, outermost: u64) -> Option<u64> {
        /// Bytes searched above the first frame; the thread's own variables lie before the struct.
        const WITHIN: u64 = 16 << 10;
        let start = outermost & !0xf;
        (start..start.saturating_add(WITHIN)).step_by(16).find(|at| {
            memory.word(*at) == Some(*at)
                && memory.word(at.wrapping_add(16)) == Some(*at)
                && memory.half(at.wrapping_add(TID)) == Some(self.tid as u32)
        })
    }

    /// Returns true if `pthread_self` returns `id` in the thread.
    pub(super) fn is(self, memory: &mut Memory<'_, '_>, id: u64) -> bool {
        match self.fs_base {
            Some(base) if !BEFORE_POINTER => base == id,
            _ => TIDS.iter().any(|at| memory.half(id.wrapping_add(*at)) == Some(self.tid as u32)),
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
