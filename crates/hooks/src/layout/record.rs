//! The counters of one thread at one node, as offsets from the record's start.

/// Bytes of a record.
pub const SIZE: u64 = 0x2c0;
/// u64: calls entered.
pub const ENTERED: u64 = 0x00;
/// u64: calls that returned through a hook.
pub const RETURNED: u64 = 0x08;
/// u64: complement of the shortest call's cycles, so that zero means that no call was timed. The first line of the
/// cache holds what every timed call reads: with this at the far end our code took 4.9 % of the processor time of a Node
/// server that makes 30 calls a request, and 4.3 % with it here.
pub const SHORTEST: u64 = 0x10;
/// u64: cycles inside calls.
pub const CYCLES: u64 = 0x18;
/// u64: cycles inside calls during which the thread was scheduled out or received a signal.
pub const WAITED: u64 = 0x20;
/// u64: cycles of the longest call.
pub const LONGEST: u64 = 0x28;
/// u64: sum of positive results of calls that move bytes.
pub const BYTES: u64 = 0x30;
/// i64: calls until the next one is timed, see [`super::timing`]; below zero: it is due.
pub const TIME_LEFT: u64 = 0x38;
/// 64 u64: calls by the power of two of their cycles; a call timed for its block counts for the whole block.
pub const HISTOGRAM: u64 = 0x40;
/// Buckets of the histogram.
pub const BUCKETS: u64 = 64;
/// i64: calls until the next sample, see [`super::look`]; below zero: it is due.
pub const LOOK_LEFT: u64 = HISTOGRAM + 8 * BUCKETS;
/// u64: log2 of the number of calls for which this sample stands.
pub const LOOK_SHIFT: u64 = LOOK_LEFT + 0x08;
/// u64: number of the thread's call with which the next part begins; zero: none was planned yet.
pub const LOOK_NEXT: u64 = LOOK_LEFT + 0x10;
/// u64: calls answered in place; they are not made, and not among [`ENTERED`].
pub const ELIDED: u64 = LOOK_LEFT + 0x18;
/// u64: calls that failed.
pub const FAILED: u64 = LOOK_LEFT + 0x20;
/// u64: timed calls in a row, up to [`super::timing::SETTLED`]: from there on one call of a block is timed.
pub const CALM: u64 = LOOK_LEFT + 0x28;
/// u64: place in its block of the call that is timed.
pub const TIME_AT: u64 = LOOK_LEFT + 0x30;
/// u64: calls timed for their blocks.
pub const SAMPLED: u64 = LOOK_LEFT + 0x38;
/// u64: cycles of those calls, a part of [`CYCLES`].
pub const SAMPLED_CYCLES: u64 = LOOK_LEFT + 0x40;
/// u64: sum of the squares of their cycles, see [`super::timing::SQUARED_MOST`].
pub const SAMPLED_SQUARES: u64 = LOOK_LEFT + 0x48;
/// u64: cycles of those calls during which the thread waited, which [`WAITED`] does not include.
pub const SAMPLED_WAITED: u64 = LOOK_LEFT + 0x50;
/// u64: stack comparisons that found the node's [`super::trunk`].
pub const TRUNK_LOOKS: u64 = LOOK_LEFT + 0x58;
/// u64: calls for which those comparisons stand: each for an octave of the thread's count.
pub const TRUNK_SEEN: u64 = LOOK_LEFT + 0x60;
/// u64: calls for which those comparisons stand that found another stack and did not ask the launcher.
pub const TRUNK_OTHERS: u64 = LOOK_LEFT + 0x68;
/// u64: bytes of the trunk's pairs that were not found, in the comparison that differed at the innermost place.
pub const TRUNK_MISSED: u64 = LOOK_LEFT + 0x70;
