//! Files in which there is nothing to hook: their identity, and the arguments with which a loader maps them.
//!
//! The launcher tells all programs of a run, so that a thread that maps such a file again need not ask. There are up
//! to [`super::global::NO_CALLS_LEN`] entries of [`SIZE`] bytes; the list ends at an entry whose [`INODE`] is zero.
//! The inode is written last, and an entry never changes after that.

/// Inode of the file according to `fstat`. If all fields agree, the file is unchanged: no call can set [`CHANGED`].
pub const INODE: u64 = 0x00;
/// Device of the file according to `fstat`.
pub const DEVICE: u64 = 0x08;
/// Size of the file, bytes.
pub const FILE_SIZE: u64 = 0x10;
/// Seconds and nanoseconds of the last change of its contents.
pub const MODIFIED: u64 = 0x18;
/// Seconds and nanoseconds of the last change of its contents or status.
pub const CHANGED: u64 = 0x28;
/// Length argument of the `mmap` that mapped it.
pub const LEN: u64 = 0x38;
/// Protection of that `mmap`, and its flags in the upper half.
pub const HOW: u64 = 0x40;
/// Offset argument of that `mmap`.
pub const OFFSET: u64 = 0x48;
/// Bytes of an entry.
pub const SIZE: u64 = 0x50;

/// Returns [`HOW`] for an `mmap` with these arguments.
#[must_use]
pub const fn how(protection: u64, flags: u64) -> u64 {
    protection & 0xffff_ffff | flags << 32
}
