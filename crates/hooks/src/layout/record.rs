//! What is counted of a node by one thread, offsets from the record's start.

/// Bytes of a record.
pub const SIZE: u64 = 0x2c0;
/// u64: calls entered.
pub const ENTERED: u64 = 0x00;
/// u64: calls that returned and were seen to.
pub const RETURNED: u64 = 0x08;
/// u64: calls that failed.
pub const FAILED: u64 = 0x10;
/// u64: cycles inside calls.
pub const CYCLES: u64 = 0x18;
/// u64: cycles inside calls during which the thread was scheduled out or met a signal.
pub const WAITED: u64 = 0x20;
/// u64: cycles of the longest call.
pub const LONGEST: u64 = 0x28;
/// u64: sum of positive results of calls that move bytes.
pub const BYTES: u64 = 0x30;
/// i64: calls until the next one is timed, see [`super::timing`]; below zero: it is due.
pub const TIME_LEFT: u64 = 0x38;
/// 64 u64: calls by the power of two of their cycles; one that was timed for its block counts for all of it.
pub const HISTOGRAM: u64 = 0x40;
/// Buckets of the histogram.
pub const BUCKETS: u64 = 64;
/// i64: calls until the next look, see [`super::look`]; below zero: it is due.
pub const LOOK_LEFT: u64 = HISTOGRAM + 8 * BUCKETS;
/// u64: for how many calls that look stands, as a power of two.
pub const LOOK_SHIFT: u64 = LOOK_LEFT + 0x08;
/// u64: which call of the thread the part after that look's begins with; zero: none was planned yet.
pub const LOOK_NEXT: u64 = LOOK_LEFT + 0x10;
/// u64: calls answered in place, not made; not among [`ENTERED`].
pub const ELIDED: u64 = LOOK_LEFT + 0x18;
/// u64: the complement of the shortest call's cycles, so that zero is no call: none was timed.
pub const SHORTEST: u64 = LOOK_LEFT + 0x20;
/// u64: timed calls in a row, up to [`super::timing::SETTLED`]: from there on one of a block is timed.
pub const CALM: u64 = LOOK_LEFT + 0x28;
/// u64: which call of its block is timed.
pub const TIME_AT: u64 = LOOK_LEFT + 0x30;
/// u64: calls timed for their blocks.
pub const SAMPLED: u64 = LOOK_LEFT + 0x38;
/// u64: how many of [`CYCLES`] are theirs.
pub const SAMPLED_CYCLES: u64 = LOOK_LEFT + 0x40;
/// u64: sum of the squares of their cycles, see [`super::timing::SQUARED_MOST`].
pub const SAMPLED_SQUARES: u64 = LOOK_LEFT + 0x48;
/// u64: like [`WAITED`], of theirs, which are not among that.
pub const SAMPLED_WAITED: u64 = LOOK_LEFT + 0x50;
/// u64: looks at the stack that found the node's [`super::trunk`] there.
pub const TRUNK_LOOKS: u64 = LOOK_LEFT + 0x58;
/// u64: calls for which those looks stand: each for an octave of the thread's count.
pub const TRUNK_SEEN: u64 = LOOK_LEFT + 0x60;
/// u64: the same of looks that found another one, which the launcher was not asked about.
pub const TRUNK_OTHERS: u64 = LOOK_LEFT + 0x68;
/// u64: bytes of the trunk's pairs that were not found by the one of them that differed soonest.
pub const TRUNK_MISSED: u64 = LOOK_LEFT + 0x70;
