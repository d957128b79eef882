//! Files in which there is nothing to be hooked: which they are, and where a loader has mapped them.
//!
//! The launcher tells all programs of a run, so that a thread that maps such a file again need not ask. Entries of
//! [`SIZE`] bytes, the first [`super::global::NO_CALLS_LEN`] at most, up to one whose [`INODE`] is zero. That is
//! written last, and nothing of an entry changes from then on.

/// What `fstat` says of the file. It is as it was: no call sets [`CHANGED`].
pub const INODE: u64 = 0x00;
/// See [`INODE`].
pub const DEVICE: u64 = 0x08;
/// Bytes of the file.
pub const FILE_SIZE: u64 = 0x10;
/// Seconds and nanoseconds: the last change of its contents.
pub const MODIFIED: u64 = 0x18;
/// The same of its contents or status.
pub const CHANGED: u64 = 0x28;
/// The arguments of the `mmap` that mapped it: how much,
pub const LEN: u64 = 0x38;
/// protection and flags, the upper half,
pub const HOW: u64 = 0x40;
/// and from where on.
pub const OFFSET: u64 = 0x48;
/// Bytes of an entry.
pub const SIZE: u64 = 0x50;

/// [`HOW`] of an `mmap` with these arguments.
#[must_use]
pub const fn how(protection: u64, flags: u64) -> u64 {
    protection & 0xffff_ffff | flags << 32
}
