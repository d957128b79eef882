//! Reads windows that threads have written, see [`crate::layout::ring`]. All that stands there may be a
//! program's own invention.

use crate::layout::ring::{self, call};
use crate::layout::{look, slot};
use std::ops::Range;

/// When, or what, a piece of memory was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Memory, before the call.
    Entry,
    /// Memory, after the call.
    Return,
    /// What the descriptor is behind, before the call.
    Name,
}

/// What an argument pointed to, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'b> {
    /// Which argument, from 0.
    pub argument: u8,
    /// When it was read.
    pub read: Read,
    /// What was there, from the argument's address on.
    pub bytes: &'b [u8],
}

/// All pieces of a call, in the order they were written.
pub type Pieces<'b> = [Option<Piece<'b>>; call::MOST_PIECES as usize];

/// A call as its thread has written it. What it pointed to lies in the buffer it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCall<'b> {
    /// Address of the node it was counted at.
    pub node: u64,
    /// Which of its thread's calls there it was, from 1.
    pub nth: u64,
    /// The six argument registers.
    pub args: [u64; 6],
    /// What was in eax: the number where the site does not say.
    pub number: u32,
    /// Time stamp counter before the call.
    pub time: u64,
    /// What was in rax after it; `None` where it has not returned.
    pub result: Option<i64>,
    /// Cycles inside the call, zero where it has not returned.
    pub cycles: u64,
    /// Of them, those it was scheduled out for, where that is told.
    pub waited: Option<u64>,
    /// Minor page faults the thread had taken before it, where they were counted.
    pub faults: Option<u64>,
    /// Whether calls that came right before it are missing.
    pub after_gap: bool,
    /// For how many calls it stands, where it is a look ([`crate::layout::look`]); else zero.
    pub stands_for: u64,
    /// Whether it stands alone, and is of no window.
    pub alone: bool,
    /// Whether what the descriptor it returned is behind follows from its arguments ([`call::NAMES`]).
    pub names: bool,
    /// What its arguments pointed to.
    pub pieces: Pieces<'b>,
}

impl<'b> WrittenCall<'b> {
    /// What its arguments pointed to.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece<'b>> {
        self.pieces.iter().flatten()
    }
}

/// Reads what is in use of a slot's buffer `index`: its calls, and what they point to as far as that reaches. `len` is
/// the header's [`ring::LEN`]; `read` copies what lies at an offset in the buffer, and says whether it could. Each byte
/// is read once: the program may write there meanwhile. How many bytes of `into` are what is there now; what lies
/// between calls and data is not read, for nothing is looked up there.
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

/// The calls in a slot's buffer `index`, whose bytes are `buffer`, all or those in use ([`read_used`]); `len` is the
/// header's [`ring::LEN`]. They end before the first of which something that it points to found no room.
#[inline]
pub fn written_calls(buffer: &[u8], index: u64, len: u64) -> impl Iterator<Item = WrittenCall<'_>> + Clone {
    let most = most(buffer);
    let calls = records(buffer).take(len.min(most) as usize);
    calls.map_while(move |own| written_call(buffer, own, (index, most)))
}

/// A call's bytes.
type Record = [u8; ring::CALL as usize];

fn records(buffer: &[u8]) -> impl Iterator<Item = &Record> + Clone {
    buffer.as_chunks().0.iter()
}

/// How many calls there may be in a buffer.
fn most(buffer: &[u8]) -> u64 {
    let alone = records(buffer).next().is_some_and(|first| word(first, call::FLAGS) & call::ALONE != 0);
    if alone { look::CALLS } else { ring::CALLS }
}

/// The word at an offset.
fn word(own: &Record, offset: u64) -> u64 {
    let there = own.get(offset as usize..).and_then(|rest| rest.first_chunk());
    there.map_or(0, |word| u64::from_le_bytes(*word))
}

// Built where it is used: it is a third of a kilobyte, and there are thousands.
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
    for (to, Placed { argument, read, range }) in pieces.iter_mut().zip(placed(own, (index, most))) {
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

/// Where in a buffer a piece is.
struct Placed {
    argument: u8,
    read: Read,
    range: Range<usize>,
}

/// The pieces of a call in buffer `index`, in which there may be `most` calls.
fn placed(own: &Record, (index, most): (u64, u64)) -> impl Iterator<Item = Placed> {
    let words = (0..word(own, call::PIECE_COUNT).min(call::MOST_PIECES)).map(|i| word(own, call::PIECES + 8 * i));
    words.filter_map(move |word| piece(word, (index, most * ring::CALL)))
}

fn piece(word: u64, (index, data): (u64, u64)) -> Option<Placed> {
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
    Some(Placed { argument, read, range: start as usize..(start + len) as usize })
}
