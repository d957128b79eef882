//! Long calls that a thread keeps one by one: a ring in its slot. Offsets are in bytes from an entry's start.

/// Bytes of an entry.
pub const ENTRY: u64 = 96;
/// Entries in a slot, a power of two; the newest calls are kept.
pub const LEN: u64 = 1 << 10;
/// u64: cycles inside the call.
pub const CYCLES: u64 = 0x00;
/// u64: time stamp counter at the call's entry.
pub const START: u64 = 0x08;
/// u64: the node at which the call was counted.
pub const NODE: u64 = 0x10;
/// u64: the call's result.
pub const RESULT: u64 = 0x18;
/// u64: zero if the thread was scheduled out or received a signal during the call; one if it can't tell.
pub const RAN: u64 = 0x20;
/// Six u64: the argument registers, which a call leaves as they are.
pub const ARGS: u64 = 0x28;
/// u64: calls that the thread had entered at the node's record, the call itself included.
pub const ENTERED: u64 = 0x58;
