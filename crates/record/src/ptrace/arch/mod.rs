//! Counting code in traced processes, which differs between machines: on aarch64 a process counts most of its calls by
//! itself, and its tracer takes the others over.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(not(target_arch = "aarch64"))]
mod absent;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::state::{OfProcess, OfRun, OfThread};
#[cfg(not(target_arch = "aarch64"))]
pub(super) use absent::state::{OfProcess, OfRun, OfThread};
