//! A window that a thread writes by itself: a buffer in its slot, and a header that says whose it is.
//!
//! The thread takes a free buffer, writes up to [`CALLS`] calls and what their arguments point to, and
//! marks it as written; the launcher reads it and marks it as free.

/// Buffers of a slot.
pub const COUNT: u64 = 48;
/// Of them, those that windows fill.
pub const SHARE: Share = Share { of_first: COUNT, of_new: 44, of_old: 40 };
/// Buffers written before the launcher is woken to read them: the thread then takes them again, and no more memory, of
/// which each page costs it and the launcher 3 µs.
pub const WAKE_FROM: u64 = 8;
/// A node is new to a thread for so many calls.
pub const NEW: u64 = 128;

/// How many of the buffers a call may have filled, by how often its thread has been at its node: a loop that outruns
/// the launcher fills all that it may, and what the thread does for the first time after it is to be seen too.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// By its first call there.
    pub of_first: u64,
    /// By the calls after it, up to [`NEW`].
    pub of_new: u64,
    /// By all others.
    pub of_old: u64,
}

/// Bytes of a buffer, 1 << [`BUFFER_SHIFT`].
pub const BUFFER: u64 = 1 << BUFFER_SHIFT;
/// See [`BUFFER`].
pub const BUFFER_SHIFT: u32 = 15;
/// Calls of a window.
pub const CALLS: u64 = 32;
/// Bytes of a call.
pub const CALL: u64 = 192;
/// Where in a buffer begins what arguments point to.
pub const DATA: u64 = CALLS * CALL;
/// Bytes at the beginning of a window whose pages the thread touches before it writes. It touches the others only where
/// calls reach them, which few do.
pub const REACH: u64 = 3 * PAGE;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes copied of one argument at most.
pub const MOST: u64 = 256;
/// Bytes that all pieces of a call take at most: no call is written where fewer are left.
pub const ROOM: u64 = call::MOST_PIECES * (MOST + 7);

/// Bytes of a header.
pub const HEADER: u64 = 16;
/// u64 of a header: one of [`state`].
pub const STATE: u64 = 0;
/// u64 of a header: calls there are.
pub const LEN: u64 = 8;

/// Whose turn a buffer is.
pub mod state {
    /// The thread may take it.
    pub const FREE: u64 = 0;
    /// The thread writes it.
    pub const WRITING: u64 = 1;
    /// The launcher may read it.
    pub const WRITTEN: u64 = 2;
}

/// A call, offsets from its start.
pub mod call {
    /// u64: the node it was counted at.
    pub const NODE: u64 = 0x00;
    /// u64: which call of the thread there it was, from one on.
    pub const NTH: u64 = 0x08;
    /// Six u64.
    pub const ARGS: u64 = 0x10;
    /// u64: what was in rax.
    pub const NUMBER: u64 = 0x40;
    /// u64: rsp.
    pub const RSP: u64 = 0x48;
    /// u64: time stamp counter.
    pub const TIME: u64 = 0x50;
    /// u64: result, if [`RETURNED`].
    pub const RESULT: u64 = 0x58;
    /// u64: cycles inside the call, if [`RETURNED`].
    pub const CYCLES: u64 = 0x60;
    /// u64: of them, those it was scheduled out for.
    pub const WAITED: u64 = 0x68;
    /// u64: minor page faults the thread had taken before it, if [`HAS_FAULTS`].
    pub const FAULTS: u64 = 0x70;
    /// u64: bits of those below.
    pub const FLAGS: u64 = 0x78;
    /// u64: offset in the slot of the call that this one interrupted, see
    /// [`crate::layout::slot::RING_UNDER_WAY`].
    pub const OUTER: u64 = 0x80;
    /// u64: how many of [`PIECES`] there are.
    pub const PIECE_COUNT: u64 = 0x88;
    /// Pieces of memory, u64 each: which argument, [`AT_RETURN`] or [`NAME`], where they apply, and from bit
    /// 16 on bytes, from bit 32 on offset in the slot.
    pub const PIECES: u64 = 0x90;
    /// Pieces there is room for.
    pub const MOST_PIECES: u64 = 6;

    /// Of [`FLAGS`]: it has returned.
    pub const RETURNED: u64 = 1;
    /// Of [`FLAGS`]: calls that came before it were not written.
    pub const AFTER_GAP: u64 = 2;
    /// Of [`FLAGS`]: page faults are told.
    pub const HAS_FAULTS: u64 = 4;
    /// Of [`FLAGS`]: waiting is told from working.
    pub const HAS_WAITED: u64 = 8;
    /// Of [`FLAGS`]: something it points to found no room, for a handler's calls took it meanwhile.
    pub const NO_ROOM: u64 = 16;
    /// Of [`FLAGS`]: it is a look, see [`crate::layout::look`]; for how many calls it stands is told from
    /// [`LOOK_SHIFT`] on.
    pub const LOOK: u64 = 32;
    /// Of [`FLAGS`]: it stands alone, and what came before and after it is not told.
    pub const ALONE: u64 = 64;
    /// Of [`FLAGS`]: what the descriptor that it returned is behind follows from its arguments, see
    /// [`crate::layout::capture::OPENS_BELOW`] and [`crate::layout::capture::COPIES_FD`].
    pub const NAMES: u64 = 128;
    /// Bit of [`FLAGS`] from which on a byte says how many calls a look stands for, as a power of two.
    pub const LOOK_SHIFT: u32 = 8;

    /// Of a piece: read when the call had returned.
    pub const AT_RETURN: u64 = 1 << 8;
    /// Of a piece: what the descriptor in the argument is behind.
    pub const NAME: u64 = 1 << 9;
}

const _: () = assert!(call::PIECES + 8 * call::MOST_PIECES == CALL);
