//! A target's memory, read in pages that are kept while one stack is read.
//!
//! Of the pages read for an earlier stack only the addresses are kept: the pages are read anew, in one request.

use foldhash::{HashMap, HashMapExt};
use std::ops::Range;
use systoll_binfile::{half, word};

/// Function that copies equally long pieces of a target's memory, one from each address, into consecutive parts of a
/// buffer. Returns the number of bytes copied, up to the first that is not mapped.
pub type ReadMemory<'r> = dyn FnMut(&[u64], &mut [u8]) -> usize + 'r;

const PAGE: usize = 4096;
/// Pages read for one stack, at most.
const MAX_PAGES: usize = 1024;
/// Pages read at once before they are needed, at most.
const MAX_AHEAD: usize = 64;

/// Memory of a waiting thread, as far as it was read.
pub(crate) struct Memory<'r, 'f> {
    read: &'r mut ReadMemory<'f>,
    room: Room,
    pages: HashMap<u64, Page>,
    /// Page that was read from last. Most fields lie close together, so it is mostly the next one too.
    last: Option<Page>,
    /// Addresses of the pages that were needed, in the order of first use.
    needed: Vec<u64>,
}

/// A page, as far as it is mapped.
#[derive(Clone, Copy, Debug)]
struct Page {
    address: u64,
    /// Offset of its contents in the room.
    start: usize,
    len: usize,
    needed: bool,
}

/// Buffer for pages. The next stack uses it again without clearing it: a page's length says how many of its bytes
/// were read, so older contents are never seen.
#[derive(Debug, Default)]
pub(crate) struct Room {
    bytes: Vec<u8>,
    /// Number of bytes in use.
    used: usize,
}

impl Room {
    /// Takes `len` more bytes. Returns their range.
    fn more(&mut self, len: usize) -> Range<usize> {
        let range = self.used..self.used + len;
        if self.bytes.len() < range.end {
            self.bytes.resize(range.end, 0);
        }
        self.used = range.end;
        range
    }

    fn free(mut self) -> Self {
        self.used = 0;
        // Stacks that need more pages are rare, so memory for them is not kept.
        self.bytes.truncate(2 * MAX_AHEAD * PAGE);
        self.bytes.shrink_to(2 * MAX_AHEAD * PAGE);
        self
    }
}

impl<'r, 'f> Memory<'r, 'f> {
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn new(read: &'r mut ReadMemory<'f>) -> Self {
        Self::ahead(read, Room::default(), &[])
    }

    /// Returns a memory whose pages at `wanted` are likely to be needed: they are read at once. If one of them is not
    /// mapped, it and the pages after it are read when they are needed, as all others.
    pub(crate) fn ahead(read: &'r mut ReadMemory<'f>, mut room: Room, wanted: &[u64]) -> Self {
        let wanted = wanted.get(..MAX_AHEAD).unwrap_or(wanted);
        let mut pages = HashMap::with_capacity(wanted.len());
        if !wanted.is_empty() {
            let all = room.more(wanted.len() * PAGE);
            let got = room.bytes.get_mut(all.clone()).map_or(0, |buffer| read(wanted, buffer));
            for (n, address) in wanted.iter().enumerate().take(got / PAGE) {
                pages.insert(
                    *address,
                    Page { address: *address, start: all.start + n * PAGE, len: PAGE, needed: false },
                );
            }
        }
        Self { read, room, pages, last: None, needed: Vec::with_capacity(wanted.len()) }
    }

    /// Ends the reading of a stack. Returns the pages that the next one is likely to need, and the room for them.
    pub(crate) fn end(mut self) -> Ended {
        let is_whole = |address: &u64| self.pages.get(address).is_some_and(|p| p.len == PAGE);
        self.needed.retain(is_whole);
        self.needed.truncate(MAX_AHEAD);
        // Neighbouring pages can be read as one piece if they are in order.
        self.needed.sort_unstable();
        Ended { needed: self.needed, room: self.room.free() }
    }

    fn page(&mut self, address: u64) -> Option<&[u8]> {
        let page = match self.last.filter(|last| last.address == address) {
            Some(last) => last,
            None => self.another(address)?,
        };
        self.room.bytes.get(page.start..page.start + page.len)
    }

    /// Returns a page other than the last one, and reads it if it is new.
    fn another(&mut self, address: u64) -> Option<Page> {
        let known = self.pages.get(&address).copied();
        if known.is_none_or(|p| !p.needed) {
            if self.needed.len() >= MAX_PAGES {
                return None;
            }
            self.needed.push(address);
        }
        let page = match known {
            Some(known) => Page { needed: true, ..known },
            None => {
                let range = self.room.more(PAGE);
                let len = (self.read)(&[address], self.room.bytes.get_mut(range.clone())?).min(PAGE);
                Page { address, start: range.start, len, needed: true }
            }
        };
        self.pages.insert(address, page);
        self.last = Some(page);
        Some(page)
    }

    /// Returns the part of the `most` bytes at `address` that lies in one page: at least one byte, or `None`.
    fn some(&mut self, address: u64, most: usize) -> Option<&[u8]> {
        let into = (address % PAGE as u64) as usize;
        let found = self.page(address - into as u64)?.get(into..).filter(|p| !p.is_empty())?;
        found.get(..most.min(found.len()))
    }

    /// Fills `buffer` with the bytes at `address`. Returns `None` if some are not mapped.
    pub(crate) fn fill(&mut self, address: u64, buffer: &mut [u8]) -> Option<()> {
        let mut at = address;
        let mut rest = buffer;
        while !rest.is_empty() {
            let found = self.some(at, rest.len())?;
            let (now, later) = rest.split_at_mut_checked(found.len())?;
            now.copy_from_slice(found);
            rest = later;
            at = at.checked_add(now.len() as u64)?;
        }
        Some(())
    }

    /// Returns `len` bytes at `address`; `None` if fewer are mapped or `len` exceeds `most`.
    pub(crate) fn bytes(&mut self, address: u64, len: u64, most: u64) -> Option<Vec<u8>> {
        let len = usize::try_from(len).ok().filter(|l| *l as u64 <= most)?;
        let mut bytes = vec![0; len];
        self.fill(address, &mut bytes)?;
        Some(bytes)
    }

    /// Returns the 8-byte word at `address`.
    pub(crate) fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.fill(address, &mut bytes)?;
        word(&bytes, 0)
    }

    /// Returns the pointer at `address`; `None` if it is null.
    pub(crate) fn pointer(&mut self, address: u64) -> Option<u64> {
        self.word(address).filter(|p| *p != 0)
    }

    /// Returns the 4-byte word at `address`.
    pub(crate) fn half(&mut self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.fill(address, &mut bytes)?;
        half(&bytes, 0)
    }

    /// Returns the byte at `address`.
    pub(crate) fn byte(&mut self, address: u64) -> Option<u8> {
        let mut byte = [0];
        self.fill(address, &mut byte)?;
        Some(byte[0])
    }

    /// Returns the bytes at `address` up to the first zero byte, at most `most`.
    pub(crate) fn text(&mut self, address: u64, most: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < most {
            let found = self.some(at, most - text.len())?;
            let end = found.iter().position(|b| *b == 0);
            text.extend_from_slice(found.get(..end.unwrap_or(found.len()))?);
            if end.is_some() {
                break;
            }
            at = address.checked_add(text.len() as u64)?;
        }
        Some(text)
    }

    /// Returns true if the memory at `address` holds `bytes`.
    pub(crate) fn holds(&mut self, address: u64, bytes: &[u8]) -> bool {
        let mut at = address;
        let mut rest = bytes;
        while !rest.is_empty() {
            let Some(later) = self.some(at, rest.len()).and_then(|found| rest.strip_prefix(found)) else {
                return false;
            };
            let Some(next) = at.checked_add((rest.len() - later.len()) as u64) else { return false };
            (at, rest) = (next, later);
        }
        true
    }
}

/// Parts of a finished [`Memory`] that the next one uses.
pub(crate) struct Ended {
    pub(crate) needed: Vec<u64>,
    pub(crate) room: Room,
}

/// Returns a [`ReadMemory`] that calls `read` for one piece after the other.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn in_turn(mut read: impl FnMut(u64, &mut [u8]) -> usize) -> impl FnMut(&[u64], &mut [u8]) -> usize {
    move |addresses, buffer| {
        let len = buffer.len() / addresses.len().max(1);
        let mut got = 0;
        for (address, piece) in addresses.iter().zip(buffer.chunks_exact_mut(len.max(1))) {
            let n = read(*address, piece);
            got += n;
            if n < len {
                break;
            }
        }
        got
    }
}

/// Returns the text of a target. Bytes that are not UTF-8 become `\xNN`.
pub(crate) fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|b| text.push_str(&format!("\\x{b:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the pages that the test's memory has; each byte of a page holds the page's number.
    const MAPPED_PAGES: Range<u64> = 16..24;
    const SIZE: u64 = PAGE as u64;

    fn read(address: u64, buffer: &mut [u8]) -> usize {
        let is_there = |at: &u64| MAPPED_PAGES.contains(&(at / SIZE));
        let there = (address..).zip(buffer.iter_mut()).take_while(|(at, _)| is_there(at));
        there.map(|(at, byte)| *byte = (at / SIZE) as u8).count()
    }

    #[test]
    fn pages_wanted_ahead_are_read_in_one_request() {
        let mut asked = Vec::new();
        let mut one = in_turn(read);
        let mut reader = |addresses: &[u64], buffer: &mut [u8]| {
            asked.push(addresses.to_vec());
            one(addresses, buffer)
        };
        let mut memory = Memory::new(&mut reader);
        assert_eq!(memory.byte(18 * SIZE + 5), Some(18));
        assert_eq!(memory.half(17 * SIZE - 2), Some(0x1111_1010));
        assert_eq!((memory.byte(24 * SIZE), memory.byte(18 * SIZE)), (None, Some(18)));
        let ended = memory.end();
        assert_eq!(ended.needed, [16, 17, 18].map(|p| p * SIZE), "what isn't there is not asked for again");
        let mut memory = Memory::ahead(&mut reader, ended.room, &ended.needed);
        assert_eq!((memory.byte(16 * SIZE), memory.byte(18 * SIZE)), (Some(16), Some(18)));
        assert_eq!(memory.byte(20 * SIZE), Some(20));
        assert_eq!(memory.end().needed, [16, 18, 20].map(|p| p * SIZE), "only what was looked into");
        let pages = |all: &[u64]| all.iter().map(|p| p * SIZE).collect::<Vec<_>>();
        assert_eq!(asked, [&[18][..], &[16], &[17], &[24], &[16, 17, 18], &[20]].map(pages));
    }

    #[test]
    fn what_follows_a_page_that_is_gone_is_read_when_it_is_needed() {
        let mut reader = in_turn(read);
        let mut memory = Memory::new(&mut reader);
        (17..20).for_each(|p| assert_eq!(memory.byte(p * SIZE), Some(p as u8)));
        let room = memory.end().room;
        let mut memory = Memory::ahead(&mut reader, room, &[16, 30, 18].map(|p| p * SIZE));
        assert_eq!((memory.byte(16 * SIZE), memory.byte(18 * SIZE)), (Some(16), Some(18)));
        // Older contents of the room are not taken for the page's.
        assert_eq!((memory.byte(30 * SIZE), memory.byte(30 * SIZE + 9)), (None, None));
        assert_eq!(memory.end().needed, [16, 18].map(|p| p * SIZE));
    }

    #[test]
    fn a_page_that_is_there_in_part_ends_where_it_does() {
        let half = |address: u64, buffer: &mut [u8]| read(address, &mut buffer[..PAGE / 2]);
        let mut reader = in_turn(half);
        for wanted in [&[][..], &[18 * SIZE, 17 * SIZE]] {
            let mut memory = Memory::ahead(&mut reader, Room::default(), wanted);
            assert_eq!(memory.byte(18 * SIZE + SIZE / 2 - 1), Some(18));
            assert_eq!((memory.byte(18 * SIZE + SIZE / 2), memory.word(18 * SIZE + SIZE / 2 - 4)), (None, None));
            assert_eq!(memory.byte(17 * SIZE), Some(17));
            assert!(memory.end().needed.is_empty());
        }
    }

    #[test]
    fn as_many_pages_are_read_as_may_be_whatever_was_wanted() {
        let mut reader = in_turn(|_, buffer: &mut [u8]| buffer.len());
        let wanted: Vec<u64> = (5000..6000).map(|p| p * SIZE).collect();
        for wanted in [&[][..], &wanted] {
            let mut memory = Memory::ahead(&mut reader, Room::default(), wanted);
            let read = (0..2000).filter(|p| memory.byte(p * SIZE).is_some()).count();
            assert_eq!(read, MAX_PAGES);
            let ended = memory.end();
            assert!(ended.needed.len() == MAX_AHEAD && ended.room.bytes.len() <= 2 * MAX_AHEAD * PAGE);
        }
    }

    #[test]
    fn bytes_are_compared_over_pages_and_where_there_are_none() {
        let mut reader = in_turn(read);
        let mut memory = Memory::new(&mut reader);
        assert!(memory.holds(17 * SIZE - 2, &[16, 16, 17, 17]) && memory.holds(5, &[]));
        assert!(!memory.holds(17 * SIZE - 2, &[16, 16, 17, 18]) && !memory.holds(17 * SIZE - 1, &[16, 16]));
        assert!(!memory.holds(24 * SIZE - 1, &[23, 24]) && !memory.holds(u64::MAX, &[0, 0]));
    }
}
