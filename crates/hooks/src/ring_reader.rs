//! Reads windows that threads have written, see [`crate::layout::ring`]. The program can overwrite them, so every byte
//! may be wrong.

use crate::layout::ring::{self, call};
use crate::layout::{look, slot};
use std::ops::Range;

/// The moment at which a piece of memory was read, or that the piece is a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Memory read before the call.
    Entry,
    /// Memory read after the call.
    Return,
    /// Name of the file behind the descriptor, read before the call.
    Name,
}

/// Memory to which an argument pointed, or the name of the descriptor in the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'b> {
    /// Index of the argument, from 0.
    pub argument: u8,
    /// Moment at which the bytes were read.
    pub read: Read,
    /// Bytes from the argument's address on, or the name.
    pub bytes: &'b [u8],
}

/// All pieces of a call, in the order in which they were written.
pub type Pieces<'b> = [Option<Piece<'b>>; call::MOST_PIECES as usize];

/// A call as its thread has written it. Its pieces borrow from the buffer from which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCall<'b> {
    /// Address of the node that counted the call.
    pub node: u64,
    /// The thread's count of calls at the node when the call was written, from 1: the call's number, unless a handler
    /// made calls there meanwhile.
    pub nth: u64,
    /// The six argument registers.
    pub args: [u64; 6],
    /// Value of eax before the call: the call's number, if the site does not determine it.
    pub number: u32,
    /// Time stamp counter before the call, in cycles.
    pub time: u64,
    /// Value of rax after the call; `None` if it has not returned.
    pub result: Option<i64>,
    /// Cycles inside the call; zero if it has not returned.
    pub cycles: u64,
    /// Cycles of the call during which the thread was scheduled out, if that is known.
    pub waited: Option<u64>,
    /// Minor page faults that the thread had taken before the call, if they were counted.
    pub faults: Option<u64>,
    /// True if the calls right before this one are missing.
    pub after_gap: bool,
    /// Number of calls for which this one stands, if it is a sample ([`crate::layout::look`]); otherwise zero.
    pub stands_for: u64,
    /// True if the call is part of no window.
    pub alone: bool,
    /// True if the name of the descriptor that the call returned follows from its arguments ([`call::NAMES`]).
    pub names: bool,
    /// Pieces of memory to which the call's arguments pointed.
    pub pieces: Pieces<'b>,
}

impl<'b> WrittenCall<'b> {
    /// Returns the pieces of memory to which the call's arguments pointed.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece<'b>> {
        self.pieces.iter().flatten()
    }
}

/// Reads the used part of a slot's buffer `index`: its calls, and the memory to which they refer. `len` is the
/// header's [`ring::LEN`]; `read` copies the bytes at an offset in the buffer and returns true on success. Each byte
/// is read once, because the program may write there meanwhile. Returns the number of bytes of `into` that are valid.
/// The bytes between calls and data are not read, because nothing refers to them.
pub fn read_used(index: u64, len: u64, into: &mut [u8], mut read: impl FnMut(u64, &mut [u8]) -> bool) -> usize {
    let calls = (len.min(look::CALLS) * ring::CALL) as usize;
    if !into.get_mut(..calls).is_some_and(|to| read(0, to)) {
        return 0;
    }
    let own = into.get(..calls).unwrap_or_default();
    let most = most(own);
    let pieces = records(own).flat_map(|call| placed(call, (index, most)));
    let end = pieces.map(|piece| piece.range.end).max().unwrap_or(0);
    let from = calls.max((most * ring::CALL) as usize);
    let more = into.get_mut(from..end).filter(|to| !to.is_empty());
    if more.is_some_and(|to| read(from as u64, to)) { end } else { calls }
}

/// Returns the calls in a slot's buffer `index`. `buffer` holds all its bytes, or the used ones ([`read_used`]); `len`
/// is the header's [`ring::LEN`]. The iterator ends before the first call whose memory found no room.
#[inline]
pub fn written_calls(buffer: &[u8], index: u64, len: u64) -> impl Iterator<Item = WrittenCall<'_>> + Clone {
    let most = most(buffer);
    let calls = records(buffer).take(len.min(most) as usize);
    calls.map_while(move |own| written_call(buffer, own, (index, most)))
}

/// The bytes of a call.
type Record = [u8; ring::CALL as usize];

fn records(buffer: &[u8]) -> impl Iterator<Item = &Record> + Clone {
    buffer.as_chunks().0.iter()
}

/// Returns the number of calls that a buffer can hold.
fn most(buffer: &[u8]) -> u64 {
    let alone = records(buffer).next().is_some_and(|first| word(first, call::FLAGS) & call::ALONE != 0);
    if alone { look::CALLS } else { ring::CALLS }
}

/// Returns the word at an offset in a call.
fn word(own: &Record, offset: u64) -> u64 {
    let there = own.get(offset as usize..).and_then(|rest| rest.first_chunk());
    there.map_or(0, |word| u64::from_le_bytes(*word))
}

// The function is inlined so that the call is built in place: it takes a third of a kilobyte, and there are
// thousands.
#[inline]
fn written_call<'b>(buffer: &'b [u8], own: &Record, (index, most): (u64, u64)) -> Option<WrittenCall<'b>> {
    let word = |offset: u64| word(own, offset);
    let flags = word(call::FLAGS);
    let has = |flag: u64| flags & flag != 0;
    if has(call::NO_ROOM) {
        return None;
    }
    let returned = has(call::RETURNED);
    let mut pieces = Pieces::default();
    for (to, PiecePosition { argument, read, range }) in pieces.iter_mut().zip(placed(own, (index, most))) {
        *to = buffer.get(range).map(|bytes| Piece { argument, read, bytes });
    }
    let shift = ((flags >> call::LOOK_SHIFT) as u8).min(look::MOST_SHIFT as u8);
    Some(WrittenCall {
        node: word(call::NODE),
        nth: word(call::NTH),
        args: std::array::from_fn(|i| word(call::ARGS + 8 * i as u64)),
        number: word(call::NUMBER) as u32,
        time: word(call::TIME),
        result: returned.then(|| word(call::RESULT) as i64),
        cycles: if returned { word(call::CYCLES) } else { 0 },
        waited: (returned && has(call::HAS_WAITED)).then(|| word(call::WAITED)),
        faults: has(call::HAS_FAULTS).then(|| word(call::FAULTS)),
        after_gap: has(call::AFTER_GAP),
        stands_for: if has(call::LOOK) { 1 << shift } else { 0 },
        alone: has(call::ALONE),
        names: returned && has(call::NAMES),
        pieces,
    })
}

/// Position of a piece in a buffer.
struct PiecePosition {
    argument: u8,
    read: Read,
    range: Range<usize>,
}

/// Returns the positions of the pieces of a call in buffer `index`, which can hold `most` calls.
fn placed(own: &Record, (index, most): (u64, u64)) -> impl Iterator<Item = PiecePosition> {
    let words = (0..word(own, call::PIECE_COUNT).min(call::MOST_PIECES)).map(|i| word(own, call::PIECES + 8 * i));
    words.filter_map(move |word| piece(word, (index, most * ring::CALL)))
}

fn piece(word: u64, (index, data): (u64, u64)) -> Option<PiecePosition> {
    let read = match word & (call::AT_RETURN | call::NAME) {
        0 => Read::Entry,
        call::AT_RETURN => Read::Return,
        call::NAME => Read::Name,
        _ => return None,
    };
    let (argument, len, at) = ((word & 0xff) as u8, word >> 16 & 0xffff, word >> 32);
    let start = at.checked_sub(slot::RINGS + index.checked_mul(ring::BUFFER)?)?;
    let within = start >= data && start.checked_add(len)? <= ring::BUFFER;
    (argument < 6 && len <= ring::MOST && within).then_some(())?;
    Some(PiecePosition { argument, read, range: start as usize..(start + len) as usize })
}
