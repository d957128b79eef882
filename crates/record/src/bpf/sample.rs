//! Reads the calls that the programs send: `struct sample` of `bpf/sample.h`.

use std::ops::Range;
use systoll_hooks::ring_reader::{Piece, Read};

/// Flags of a sample.
pub(super) const IS_UNKNOWN: u32 = 1;
pub(super) const OPENS_WINDOW: u32 = 2;
pub(super) const IN_WINDOW: u32 = 4;
pub(super) const ENDS_WINDOW: u32 = 8;
pub(super) const IS_SAMPLED: u32 = 16;
pub(super) const IS_LONG: u32 = 32;

/// Bytes of a sample before its pieces, or before its registers and stack; bytes of these registers.
const HEAD: usize = 152;
pub(super) const REGISTERS: usize = 34 * 8;
/// Bytes of a piece with its head, and of that head.
const PIECE: usize = 264;
const PIECE_HEAD: usize = 8;

/// The part of a call that a sample shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The stack, from which the call is about to be made.
    Stack,
    Entry,
    Return,
}

/// A part of a sampled call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'b> {
    pub(super) part: Part,
    /// Time of the call's entry, ns of the clock that [`crate::sys::now`] reads.
    pub(super) at: u64,
    pub(super) image: u64,
    /// Image that made the address space.
    pub(super) space: u64,
    pub(super) place: u64,
    /// The call's number in its row; at its return, the number in its thread.
    pub(super) nth: u64,
    pub(super) flags: u32,
    pub(super) number: u32,
    /// Addresses of the place.
    pub(super) depth: usize,
    pub(super) tid: i32,
    pub(super) process: i32,
    pub(super) result: i64,
    /// Time of the call, ns; at its entry, its number in its thread.
    pub(super) took: u64,
    /// Time of the call for which the thread was without a processor, ns.
    pub(super) waited: u64,
    /// Number that changes when the descriptor may have become another file: the one that the call uses, or at the return
    /// of a call that opens one, that.
    pub(super) changes: u64,
    pub(super) args: [u64; 6],
    /// Of an entry: number of calls for which it stands among those that name an object.
    pub(super) stands_for: u64,
    pieces: u32,
    /// The bytes behind the head.
    rest: &'b [u8],
}

impl<'b> Sample<'b> {
    /// Reads a sample; `None` if it is none of the programs'.
    pub(super) fn read(bytes: &'b [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        let long = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        let word = |at: usize| head.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let part = match word(40)? {
            1 => Part::Stack,
            2 => Part::Entry,
            3 => Part::Return,
            _ => return None,
        };
        let mut args = [0; 6];
        for (at, arg) in args.iter_mut().enumerate() {
            *arg = long(96 + 8 * at)?;
        }
        Some(Self {
            part,
            at: long(0)?,
            image: long(8)?,
            space: long(16)?,
            place: long(24)?,
            nth: long(32)?,
            flags: word(44)?,
            number: word(48)?,
            depth: word(52)? as usize,
            tid: word(56)? as i32,
            process: word(60)? as i32,
            result: long(64)? as i64,
            took: long(72)?,
            waited: long(80)?,
            changes: long(88)?,
            args,
            stands_for: word(148)?.into(),
            pieces: word(144)?,
            rest,
        })
    }

    pub(super) fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Returns the thread's registers, and the bytes of its stack from the stack pointer on.
    pub(super) fn stack(&self) -> (&'b [u8], &'b [u8]) {
        self.rest.split_at_checked(REGISTERS).unwrap_or_default()
    }

    /// Returns the memory to which the call's arguments pointed.
    pub(super) fn memory(&self) -> impl Iterator<Item = Piece<'b>> {
        let read = if self.part == Part::Return { Read::Return } else { Read::Entry };
        let (all, _) = self.rest.as_chunks::<PIECE>();
        all.iter().take(self.pieces as usize).filter_map(move |piece| {
            let word = |range: Range<usize>| piece.get(range)?.try_into().ok().map(u32::from_ne_bytes);
            let bytes = piece.get(PIECE_HEAD..)?.get(..word(4..8)? as usize).filter(|bytes| !bytes.is_empty())?;
            Some(Piece { argument: u8::try_from(word(0..4)?).ok().filter(|at| *at < 6)?, read, bytes })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_and_others_are_not() {
        let mut bytes = vec![0; HEAD + PIECE];
        bytes[40] = 2;
        bytes[44] = 5;
        bytes[96 + 8] = 9;
        bytes[144] = 1;
        bytes[HEAD] = 1;
        bytes[HEAD + 4] = 3;
        bytes[HEAD + 8..HEAD + 11].copy_from_slice(b"/a\0");
        let sample = Sample::read(&bytes).unwrap();
        assert!(sample.is(IS_UNKNOWN) && sample.is(IN_WINDOW) && !sample.is(OPENS_WINDOW));
        assert_eq!((sample.part, sample.args[1]), (Part::Entry, 9));
        let piece = Piece { argument: 1, read: Read::Entry, bytes: b"/a\0" };
        assert_eq!(sample.memory().collect::<Vec<_>>(), [piece]);
        // A piece that says more than there is, and an argument that no call has.
        (bytes[HEAD + 5], bytes[144]) = (2, 9);
        assert_eq!(Sample::read(&bytes).unwrap().memory().count(), 0);
        (bytes[HEAD + 5], bytes[HEAD]) = (0, 6);
        assert_eq!(Sample::read(&bytes).unwrap().memory().count(), 0);
        assert!(Sample::read(&bytes[..HEAD - 1]).is_none());
        bytes[40] = 4;
        assert!(Sample::read(&bytes).is_none());
    }
}
