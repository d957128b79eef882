//! The calls that are timed, if not all are.

/// Number of calls in a block.
pub const BLOCK: u64 = 1 << BLOCK_BITS;
/// log2 of [`BLOCK`].
pub const BLOCK_BITS: u32 = 4;
/// Number of calls timed before blocks begin.
pub const SETTLED: u64 = 256;
/// Cycles from which on a call is long: some tens of microseconds. After a long sample, calls are timed one by one
/// again when its block ends.
pub const LONG: u64 = 1 << 17;
/// Bit of [`super::slot::START`]: the call is timed for its block.
pub const SAMPLE_BIT: u32 = 63;
/// Bit of [`super::slot::START`]: the call is timed only if the thread is scheduled out in it.
pub const IF_WAITED_BIT: u32 = 62;
/// Cycles that are squared, at most, so that sums do not overflow.
pub const SQUARED_MOST: u64 = (1 << 26) - 1;
/// Multiplier m of the generator x → m·x + c that draws places; the top bits of x are used.
pub const MULTIPLIER: u64 = 0x5851_f42d_4c95_7f2d;
