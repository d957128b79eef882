//! Long calls that a thread keeps one by one: a ring in its slot. Offsets are in bytes from an entry's start.

/// Bytes of an entry.
pub const ENTRY: u64 = 24;
/// Entries in a slot, a power of two; the newest calls are kept.
pub const LEN: u64 = 1 << 11;
/// u64: cycles inside the call.
pub const CYCLES: u64 = 0x00;
/// u64: time stamp counter at the call's entry.
pub const START: u64 = 0x08;
/// u64: the node at which the call was counted.
pub const NODE: u64 = 0x10;
