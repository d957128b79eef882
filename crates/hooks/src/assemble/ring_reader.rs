//! Reads windows that threads have written, see [`crate::layout::ring`]. All that stands there may be a
//! program's own invention.

use crate::layout::ring::{self, call};
use crate::layout::{look, slot};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which argument, from 0.
    pub argument: u8,
    /// When it was read.
    pub read: Read,
    /// What was there, from the argument's address on.
    pub bytes: Vec<u8>,
}

/// A call as its thread has written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCall {
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
    pub pieces: Vec<Piece>,
}

/// The calls in a slot's buffer `index`, all of whose bytes are `buffer`; `len` is the header's [`ring::LEN`]. They
/// end before the first of which something that it points to found no room.
#[must_use]
pub fn written_calls(buffer: &[u8], index: u64, len: u64) -> Vec<WrittenCall> {
    let flags = word(buffer, call::FLAGS);
    let most = if flags & call::ALONE != 0 { look::CALLS } else { ring::CALLS };
    (0..len.min(most)).map_while(|n| written_call(buffer, index, (n, most))).collect()
}

/// The word at an offset, zero outside.
fn word(bytes: &[u8], offset: u64) -> u64 {
    let there = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)?.first_chunk());
    there.map_or(0, |word| u64::from_le_bytes(*word))
}

fn written_call(buffer: &[u8], index: u64, (n, most): (u64, u64)) -> Option<WrittenCall> {
    let start = usize::try_from(n * ring::CALL).ok()?;
    let own = buffer.get(start..start + ring::CALL as usize)?;
    let word = |offset: u64| word(own, offset);
    let has = |flag: u64| word(call::FLAGS) & flag != 0;
    if has(call::NO_ROOM) {
        return None;
    }
    let returned = has(call::RETURNED);
    let shift = ((word(call::FLAGS) >> call::LOOK_SHIFT) as u8).min(look::MOST_SHIFT as u8);
    let pieces = (0..word(call::PIECE_COUNT).min(call::MOST_PIECES))
        .filter_map(|i| piece(buffer, (index, most * ring::CALL), word(call::PIECES + 8 * i)))
        .collect();
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

fn piece(buffer: &[u8], (index, data): (u64, u64), word: u64) -> Option<Piece> {
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
    let bytes = buffer.get(start as usize..(start + len) as usize)?.to_vec();
    Some(Piece { argument, read, bytes })
}
