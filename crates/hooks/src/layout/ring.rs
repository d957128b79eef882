//! A window that a thread writes by itself: a buffer in its slot, and a header that tells whose turn it is.
//!
//! The thread takes a free buffer, writes up to [`CALLS`] calls and the memory of their arguments, and marks it as
//! written; the launcher reads it and marks it as free.

/// Number of buffers in a slot.
pub const COUNT: u64 = 48;
/// Numbers of a slot's buffers that windows may fill.
pub const SHARE: Share = Share { of_first: COUNT, of_new: 44, of_old: 40 };
/// Number of filled buffers from which on the launcher is woken to read them: the thread can then reuse them and
/// needs no more memory, of which each page costs it and the launcher 3 µs.
pub const WAKE_FROM: u64 = 8;
/// Number of calls for which a node is new to a thread.
pub const NEW: u64 = 128;

/// Numbers of buffers that a call may fill at most, by how often its thread has been at the node: a loop that outruns
/// the launcher fills its share, and room must remain for calls that the thread makes for the first time.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Buffers for the first call at a node.
    pub of_first: u64,
    /// Buffers for later calls, up to [`NEW`].
    pub of_new: u64,
    /// Buffers for all further calls.
    pub of_old: u64,
}

/// Bytes of a buffer.
pub const BUFFER: u64 = 1 << BUFFER_SHIFT;
/// log2 of [`BUFFER`].
pub const BUFFER_SHIFT: u32 = 15;
/// Number of calls in a window.
pub const CALLS: u64 = 32;
/// Bytes of a call.
pub const CALL: u64 = 192;
/// Offset in a buffer of the copied memory of arguments.
pub const DATA: u64 = CALLS * CALL;
/// Bytes at the beginning of a window whose pages the thread touches before it writes. It touches the others only if
/// calls reach them, which few do.
pub const REACH: u64 = 3 * PAGE;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes copied of one argument, at most.
pub const MOST: u64 = 256;
/// Bytes of all pieces of a call, at most: a call is not written if fewer are left.
pub const ROOM: u64 = call::MOST_PIECES * (MOST + 7);

/// Bytes of a header.
pub const HEADER: u64 = 16;
/// u64 of a header: the buffer's state, one of [`state`].
pub const STATE: u64 = 0;
/// u64 of a header: number of calls.
pub const LEN: u64 = 8;

/// States of a buffer.
pub mod state {
    /// The buffer is free: the thread may take it.
    pub const FREE: u64 = 0;
    /// The thread is writing the buffer.
    pub const WRITING: u64 = 1;
    /// The buffer is written: the launcher may read it.
    pub const WRITTEN: u64 = 2;
}

/// A call, as offsets from its start.
pub mod call {
    /// u64: address of the node at which the call was counted.
    pub const NODE: u64 = 0x00;
    /// u64: the thread's count of calls at the node when this one was written, from one on. That is the call's number,
    /// unless a handler made calls at the same node meanwhile: those have higher numbers, but are made before it.
    pub const NTH: u64 = 0x08;
    /// Six u64: the argument registers.
    pub const ARGS: u64 = 0x10;
    /// u64: the call's number, or rax at the hook.
    pub const NUMBER: u64 = 0x40;
    /// u64: stack pointer at the call.
    pub const RSP: u64 = 0x48;
    /// u64: time stamp counter at the entry.
    pub const TIME: u64 = 0x50;
    /// u64: result, if [`RETURNED`].
    pub const RESULT: u64 = 0x58;
    /// u64: cycles inside the call, if [`RETURNED`].
    pub const CYCLES: u64 = 0x60;
    /// u64: cycles of the call during which the thread was scheduled out.
    pub const WAITED: u64 = 0x68;
    /// u64: minor page faults that the thread had taken before the call, if [`HAS_FAULTS`].
    pub const FAULTS: u64 = 0x70;
    /// u64: bits of the flags below.
    pub const FLAGS: u64 = 0x78;
    /// u64: offset in the slot of the call that this one interrupted, see [`crate::layout::slot::RING_UNDER_WAY`].
    pub const OUTER: u64 = 0x80;
    /// u64: number of pieces in [`PIECES`].
    pub const PIECE_COUNT: u64 = 0x88;
    /// Pieces of memory, a u64 each: the index of the argument, with [`AT_RETURN`] or [`NAME`] if they apply; from
    /// bit 16 on the number of bytes, from bit 32 on the offset in the slot.
    pub const PIECES: u64 = 0x90;
    /// Pieces of a call, at most.
    pub const MOST_PIECES: u64 = 6;

    /// In [`FLAGS`]: the call has returned.
    pub const RETURNED: u64 = 1;
    /// In [`FLAGS`]: earlier calls were not written.
    pub const AFTER_GAP: u64 = 2;
    /// In [`FLAGS`]: page faults are recorded.
    pub const HAS_FAULTS: u64 = 4;
    /// In [`FLAGS`]: waiting is told apart from working.
    pub const HAS_WAITED: u64 = 8;
    /// In [`FLAGS`]: there was no room for some memory, because a handler's calls took it meanwhile.
    pub const NO_ROOM: u64 = 16;
    /// In [`FLAGS`]: the call is a sample, see [`crate::layout::look`]; the bits from [`LOOK_SHIFT`] on tell the
    /// number of calls for which it stands.
    pub const LOOK: u64 = 32;
    /// In [`FLAGS`]: the call stands alone; the calls before and after it are not recorded.
    pub const ALONE: u64 = 64;
    /// In [`FLAGS`]: the name of the descriptor that the call returned follows from its arguments, see
    /// [`crate::layout::capture::OPENS_BELOW`] and [`crate::layout::capture::COPIES_FD`].
    pub const NAMES: u64 = 128;
    /// In [`crate::layout::slot::LOOK_FLAGS`]: the launcher takes the sample.
    pub const BY_LAUNCHER: u64 = 1 << 16;
    /// Lowest bit of the byte of [`FLAGS`] that holds log2 of the number of calls for which a sample stands.
    pub const LOOK_SHIFT: u32 = 8;

    /// In a piece: the memory was read after the call had returned.
    pub const AT_RETURN: u64 = 1 << 8;
    /// In a piece: the bytes are the name of the descriptor in the argument.
    pub const NAME: u64 = 1 << 9;
}

const _: () = assert!(call::PIECES + 8 * call::MOST_PIECES == CALL);
