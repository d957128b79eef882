//! The part of unwinding that differs between machines: registers and their numbers, signal frames, frame records, and
//! code without call frame information.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::Registers;
#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::Registers;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;
