//! Watches a program from inside: code and jumps of `systoll-hooks` are written into it, so that it counts its calls
//! itself. The launcher answers the questions of its threads and reads the counts at the end.

#[cfg(target_arch = "x86_64")]
pub mod build;
#[cfg(target_arch = "x86_64")]
pub mod cache;
#[cfg(not(target_arch = "x86_64"))]
mod declined;
#[cfg(target_arch = "x86_64")]
mod monitor;

#[cfg(not(target_arch = "x86_64"))]
pub use declined::{can_answer, clean};
#[cfg(target_arch = "x86_64")]
pub use monitor::{InprocBackend, OwnShare, clean, own_share};
#[cfg(all(target_arch = "x86_64", any(test, feature = "any-target")))]
pub(crate) use monitor::{use_image, use_proc};

/// Accepts to answer calls in place.
///
/// # Errors
/// None here.
#[cfg(target_arch = "x86_64")]
pub const fn can_answer() -> Result<(), crate::Error> {
    Ok(())
}
