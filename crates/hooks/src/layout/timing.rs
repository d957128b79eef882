//! Which calls are timed, where not all are.
//!
//! A thread times each call at a node until it has timed [`SETTLED`] of them. From then on it cuts the
//! calls there into blocks of [`BLOCK`] and times one of each, at a place drawn by chance. A call that the
//! thread was scheduled out in is timed beside, where its kind may wait for somebody: the thread reads the
//! clock before each of these.

/// Calls of a block, 1 << [`BLOCK_BITS`].
pub const BLOCK: u64 = 1 << BLOCK_BITS;
/// See [`BLOCK`].
pub const BLOCK_BITS: u32 = 4;
/// Calls timed before blocks begin.
pub const SETTLED: u64 = 256;
/// A call of more cycles is long: some tens of microseconds. Blocks begin anew behind one.
pub const LONG: u64 = 1 << 17;
/// Bit of [`super::slot::START`]: the call is timed for its block.
pub const SAMPLE_BIT: u32 = 63;
/// Bit of [`super::slot::START`]: the call is timed only if the thread is scheduled out in it.
pub const IF_WAITED_BIT: u32 = 62;
/// Cycles that are squared at most, so that sums have room.
pub const SQUARED_MOST: u64 = (1 << 26) - 1;
/// The generator that draws places: x * this + 1, of which the top bits are used.
pub const MULTIPLIER: u64 = 0x5851_f42d_4c95_7f2d;
