//! Where a file's system calls can be hooked: a static look at its machine code.
//!
//! The `syscall` instruction stays where it is. A hook is a jump of five bytes over whole
//! instructions before it (to count) and behind it (to time), led to code that runs the
//! displaced instructions elsewhere. Invariant: a [`Span`] has no known branch target strictly
//! inside, and no two hooks' spans share a byte.

mod types;

pub use types::{CfaOffset, Entry, Plan, PlanError, Segment, Site, Span, Unplanned, VdsoFunction, Why};
