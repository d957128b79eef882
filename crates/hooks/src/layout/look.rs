//! Samples of single calls that name an object, written at random places over the whole run.
//!
//! A thread's calls at a node are divided into parts, and each part has one sample at a random place. A part is a
//! single call up to [`ALL`] calls; beyond, parts grow so that each octave of the count has about 2 to the power of [`OF_OCTAVE_BITS`]
//! samples. The number of calls that a sample stands for is therefore known, and written beside it
//! ([`super::ring::call`]). Among the calls that are all sampled, every repeat is recognised however far apart: the
//! first part is as long as most lists of files that programs go through. Samples fill buffers of the ring one after
//! the other, which are read like windows.

use super::ring::Share;

/// Number of a thread's first calls at a node that are all sampled, a power of two.
pub const ALL: u64 = 1 << 13;
/// log2 of the number of samples in each octave after [`ALL`].
pub const OF_OCTAVE_BITS: u32 = 10;
/// log2 of the factor by which a thread's first [`super::image::FAMILIAR`] calls at a node are sampled more rarely,
/// since earlier processes of the same file have shown those calls.
pub const FAMILIAR_SHIFT: u32 = 4;
/// log2 of the number of calls for which one sample stands, at most.
pub const MOST_SHIFT: u32 = 30;
/// Number of calls until the next sample that means never.
pub const NEVER: u64 = i64::MAX as u64;
/// Buffers of the ring that samples may fill; the others are left to windows.
pub const SHARE: Share = Share { of_first: 38, of_new: 38, of_old: 34 };
/// Samples in a buffer; their arguments point to less memory than those of windows' calls.
pub const CALLS: u64 = 80;
/// Offset in such a buffer of the copied memory of arguments.
pub const DATA: u64 = CALLS * super::ring::CALL;
/// Number of unread buffers from which on each further one wakes a sleeping launcher.
pub const WAKE_FROM: u64 = 6;
