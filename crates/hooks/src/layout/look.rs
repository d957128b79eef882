//! Looks: calls that name an object, one at a time, written at random places over the whole run.
//!
//! A thread's calls at a node are divided into parts, each with one look at a random place of it: parts of a
//! single call up to [`ALL`] calls, and beyond of as many as leave about [`OF_OCTAVE`] looks for each octave of the
//! count. So how many calls a look stands for is known, and written beside it ([`super::ring::call`]). Of what is
//! looked at from the beginning each repeat is known for one, however far apart: the first part is as long as most
//! lists of files that programs go through.
//! Looks fill buffers of the ring one after the other, which are read like windows.

use super::ring::Share;

/// Of a thread's calls at a node the first are all looked at, up to this many, a power of two.
pub const ALL: u64 = 1 << 13;
/// Looks in each octave from there on.
pub const OF_OCTAVE: u64 = 1 << OF_OCTAVE_BITS;
/// See [`OF_OCTAVE`].
pub const OF_OCTAVE_BITS: u32 = 10;
/// Looks are rarer by this power of two up to [`super::image::FAMILIAR`] calls: what those ask was seen of earlier programs
/// of the same file.
pub const FAMILIAR_SHIFT: u32 = 4;
/// A look stands for no more calls than this power of two.
pub const MOST_SHIFT: u32 = 30;
/// Calls until the next look of those that are never looked at.
pub const NEVER: u64 = i64::MAX as u64;
/// Buffers of the ring that looks fill; the others are left to windows.
pub const SHARE: Share = Share { of_first: 38, of_new: 38, of_old: 34 };
/// Looks in a buffer: what their arguments point to is less than windows' calls have.
pub const CALLS: u64 = 80;
/// Where in such a buffer begins what arguments point to.
pub const DATA: u64 = CALLS * super::ring::CALL;
/// Where the launcher sleeps it is woken for each buffer beyond so many that it has not read yet.
pub const WAKE_FROM: u64 = 6;
