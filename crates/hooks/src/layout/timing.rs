//! Which calls are timed, if not all are.
//!
//! A thread times each call at a node until it has timed [`SETTLED`] of them. From then on it divides the calls there
//! into blocks of [`BLOCK`] and times one of each, at a random place. In addition, a call that may wait for somebody is
//! timed if the thread is scheduled out in it: the thread reads the clock before each of these.

/// Calls of a block, 1 << [`BLOCK_BITS`].
pub const BLOCK: u64 = 1 << BLOCK_BITS;
/// See [`BLOCK`].
pub const BLOCK_BITS: u32 = 4;
/// Calls timed before blocks begin.
pub const SETTLED: u64 = 256;
/// Cycles from which on a call is long: some tens of microseconds. A new block begins behind it.
pub const LONG: u64 = 1 << 17;
/// Bit of [`super::slot::START`]: the call is timed for its block.
pub const SAMPLE_BIT: u32 = 63;
/// Bit of [`super::slot::START`]: the call is timed only if the thread is scheduled out in it.
pub const IF_WAITED_BIT: u32 = 62;
/// Cycles that are squared, at most, so that sums do not overflow.
pub const SQUARED_MOST: u64 = (1 << 26) - 1;
/// Multiplier of the generator that draws places: x * this + 1, of which the top bits are used.
pub const MULTIPLIER: u64 = 0x5851_f42d_4c95_7f2d;
