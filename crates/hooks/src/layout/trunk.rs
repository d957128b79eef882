//! The trunk of a context: the return addresses above it, as they lay when it was first met. It stands behind the context's
//! node where that says so ([`super::node::TRUNK`]), as long as the program runs, and is never changed.
//!
//! Where a window is due a thread compares its stack with it ([`super::record::TRUNK_SEEN`]), so that what an earlier run has
//! learnt of whole stacks is told again only where this run's stacks are the same.

/// u64: bytes of the pairs; and [`FROM_RBP`].
pub const SIZE: u64 = 0;
/// In [`SIZE`]: places are told from rbp, not from rsp at the hook.
pub const FROM_RBP: u64 = 1 << FROM_RBP_BIT;
/// See [`FROM_RBP`].
pub const FROM_RBP_BIT: u32 = 63;
/// Pairs of u64, from the inside outwards: where a return address lies, and which it is.
pub const PAIRS: u64 = 8;
/// Bytes of a pair.
pub const PAIR: u64 = 16;
/// Most pairs of a trunk. Deeper stacks have none, and are asked about: of some 20 programs compilers' are deepest, 60 frames.
pub const MOST: usize = 128;
/// Bytes from rsp on within which they lie: no other thread takes that memory away.
pub const REACH: u64 = 1 << 16;

/// Nodes' worth of memory that a trunk of so many pairs is given: some more than it takes, for one that takes its place.
#[must_use]
pub const fn nodes(pairs: usize) -> u64 {
    if pairs == 0 { 0 } else { (PAIRS + pairs as u64 * PAIR).div_ceil(super::NODE_SIZE) + 1 }
}

/// For how many pairs there is room where a trunk of so many was given memory.
#[must_use]
pub const fn room(pairs: usize) -> usize {
    (nodes(pairs) * super::NODE_SIZE).saturating_sub(PAIRS) as usize / PAIR as usize
}
