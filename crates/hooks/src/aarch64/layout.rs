//! The memory in which the threads of a process count: a head, and a slot for each thread.
//!
//! All words have 8 bytes unless they say otherwise. The tracer writes a slot only while its thread is stopped.

/// u32, a robust futex word: the tracer's thread id, with [`OWNER_DIED`] once that thread has ended.
pub const OWNER: u64 = 0;
/// Number of the bit that the kernel sets when the owner has died (FUTEX_OWNER_DIED of include/uapi/linux/futex.h).
pub const OWNER_DIED: u32 = 30;
/// Offset of the first slot.
pub const SLOTS: u64 = 0x1000;
/// Number of slots. Only pages that are touched take memory; the address space is 134 MB.
pub const SLOT_COUNT: u64 = 256;
/// Bytes of the memory.
pub const SIZE: u64 = SLOTS + SLOT_COUNT * slot::SIZE;

/// Distance of a thread's slot pointer from its thread pointer (TPIDR_EL0).
pub const POINTER: u64 = 8;

/// A thread's slot.
pub mod slot {
    /// Not zero: the thread asks at each call.
    pub const WANT: u64 = 0x00;
    /// Address of the entry of the call that the thread is in; zero between calls.
    pub const PENDING: u64 = 0x08;
    /// Clock at the entry of that call (CNTVCT_EL0).
    pub const START: u64 = 0x10;
    /// Lower bound of the thread's stack.
    pub const STACK_LOW: u64 = 0x18;
    /// Address from which on no frame record of the thread's stack begins.
    pub const STACK_HIGH: u64 = 0x20;
    /// Number of frame records that are part of a context's key, at most.
    pub const LEVELS: u64 = 0x28;
    /// [`super::MULTIPLIER`].
    pub const MULTIPLIER: u64 = 0x30;
    /// Address of a word like [`super::OWNER`]: of the memory's, or of [`LEFT`].
    pub const HEAD: u64 = 0x38;
    /// The thread's process, and the thread, as they number themselves.
    pub const PID: u64 = 0x40;
    /// See [`PID`].
    pub const TID: u64 = 0x48;
    /// A word with [`super::OWNER_DIED`], for a thread that is let go.
    pub const LEFT: u64 = 0x50;
    /// Entries, found by their key: [`ENTRIES`] and [`PROBES`] more, since a context's entry is one of the [`PROBES`] that
    /// begin at the index that the key's upper bits say.
    pub const TABLE: u64 = 0x100;
    /// Number of indexes.
    pub const ENTRIES: u64 = 1 << INDEX_BITS;
    /// log2 of [`ENTRIES`].
    pub const INDEX_BITS: u32 = 8;
    /// Entries that are tried for a key.
    pub const PROBES: u64 = 8;
    /// Bytes of a slot.
    pub const SIZE: u64 = (TABLE + (ENTRIES + PROBES) * super::entry::SIZE).next_multiple_of(0x1000);
}

/// An entry of a slot's table: the calls of a context.
pub mod entry {
    /// The context's key; zero: the entry is free.
    pub const KEY: u64 = 0x00;
    /// Number of calls from which on the thread asks.
    pub const ASK_AT: u64 = 0x08;
    /// Calls that have returned.
    pub const RETURNED: u64 = 0x10;
    /// Ticks of the clock within them.
    pub const TICKS: u64 = 0x18;
    /// Ticks of the longest.
    pub const LONGEST: u64 = 0x20;
    /// Complement of the ticks of the shortest; zero: there is none.
    pub const SHORTEST: u64 = 0x28;
    /// Bits of a positive result that count as bytes moved: all or none.
    pub const MOVES: u64 = 0x30;
    /// Bytes moved.
    pub const BYTES: u64 = 0x38;
    /// Calls by the number of leading zeros of their ticks (or of one tick): [`BUCKETS`] words.
    pub const HISTOGRAM: u64 = 0x80;
    /// Number of words in [`HISTOGRAM`].
    pub const BUCKETS: u64 = 64;
    /// Failed calls by errno: [`ERRNOS`] u32; the first is for larger errnos.
    pub const ERRORS: u64 = HISTOGRAM + 8 * BUCKETS;
    /// Number of words in [`ERRORS`]. Programs see errnos up to 133 (EHWPOISON).
    pub const ERRNOS: u64 = 256;
    /// Bytes of an entry.
    pub const SIZE: u64 = 1 << SHIFT;
    /// log2 of [`SIZE`].
    pub const SHIFT: u32 = 11;
}

/// Multiplier of a key's hash, 2^64 divided by the golden ratio.
pub const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

const _: () = {
    assert!(entry::ERRORS + 4 * entry::ERRNOS <= entry::SIZE);
    assert!(SIZE < 1 << 28);
};
