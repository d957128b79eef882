//! The rseq areas for threads without one of their own, one for each slot.
//!
//! They lie in memory that is private to each process, unlike slots: a forked child keeps its maker's area, and the
//! kernel writes to it until the child has moved to the area of its own slot. In shared memory the kernel would write
//! to the maker's area.

use super::{GLOBAL, image, slot};

/// Address of the first area: right below the global area.
pub const AT: u64 = GLOBAL - SIZE;
/// Bytes of all areas.
pub const SIZE: u64 = image::SLOT_COUNT << SHIFT;
/// Bytes of an area: the minimum of the kernel, and the alignment it demands.
pub const AREA: u64 = 1 << SHIFT;
/// log2 of [`AREA`].
pub const SHIFT: u32 = 5;

/// Returns the address of the area of slot `index`.
#[must_use]
pub const fn area_address(index: u64) -> u64 {
    AT + (index << SHIFT)
}

const _: () = {
    assert!(SIZE.is_multiple_of(4096) && AT.is_multiple_of(AREA) && SHIFT < slot::SHIFT);
};
