//! Groundwork of watching from inside: what can be patched in a file, and keeping what was found.
//!
//! Nothing here touches a process. A [`plan::Plan`] says, in addresses of the file, which
//! instructions around each `syscall` may give way to a jump; who writes jumps and what they
//! lead to is the business of others. Invariant: what can't be shown to be safe is not planned.

pub mod assemble;
pub mod cache;
mod checksum;
mod launch;
pub mod layout;
mod nr;
pub mod plan;

pub use launch::{InprocBackend, OwnShare, own_share};
#[cfg(any(test, feature = "any-target"))]
pub(crate) use launch::{use_image, use_proc};
