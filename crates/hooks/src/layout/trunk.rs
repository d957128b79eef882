//! The trunk of a context: the return addresses above it, at their places when it was first seen. It lies behind the
//! context's node if the node says so ([`super::node::TRUNK`]), as long as the program runs, and never changes.
//!
//! When a window is due a thread compares its stack with the trunk ([`super::record::TRUNK_SEEN`]). Whole stacks known
//! from an earlier run are therefore reported only if this run's stacks are the same.

/// u64: bytes of the pairs, and the bit [`FROM_RBP`].
pub const SIZE: u64 = 0;
/// In [`SIZE`]: places are relative to rbp, not to rsp at the hook.
pub const FROM_RBP: u64 = 1 << FROM_RBP_BIT;
/// Number of the bit [`FROM_RBP`].
pub const FROM_RBP_BIT: u32 = 63;
/// Pairs of u64, from the inside outwards: the place of a return address, and the address.
pub const PAIRS: u64 = 8;
/// Bytes of a pair in [`PAIRS`].
pub const PAIR: u64 = 16;
/// Pairs of a trunk, at most. Deeper stacks have no trunk, and threads ask about them: of some 20 programs, compilers
/// have the deepest stacks, 60 frames.
pub const MOST: usize = 128;
/// Bytes from rsp on within which the addresses lie: no other thread unmaps that memory.
pub const REACH: u64 = 1 << 16;

/// Returns the memory for a trunk of `pairs` pairs, in nodes: a little more than it needs, for another one that
/// replaces it.
#[must_use]
pub const fn nodes(pairs: usize) -> u64 {
    if pairs == 0 { 0 } else { (PAIRS + pairs as u64 * PAIR).div_ceil(super::NODE_SIZE) + 1 }
}

/// Returns the number of pairs that fit into the memory that a trunk of `pairs` pairs was given.
#[must_use]
pub const fn room(pairs: usize) -> usize {
    (nodes(pairs) * super::NODE_SIZE).saturating_sub(PAIRS) as usize / PAIR as usize
}
