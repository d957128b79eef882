//! Watches a program from inside: code and jumps of `systoll-hooks` are written into it, so that it counts its calls
//! itself. The launcher answers the questions of its threads and reads the counts at the end.

pub mod build;
pub mod cache;
mod monitor;

pub use monitor::{InprocBackend, OwnShare, clean, own_share};
#[cfg(any(test, feature = "any-target"))]
pub(crate) use monitor::{use_image, use_proc};
