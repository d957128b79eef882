//! A target's memory, read in pages that are remembered while one stack is looked at.

use std::collections::HashMap;
use systoll_binfile::{half, word};

/// Reads a target's memory into a buffer and returns how many bytes there were.
pub type ReadMemory<'r> = dyn FnMut(u64, &mut [u8]) -> usize + 'r;

const PAGE: u64 = 4096;
/// Most pages read for one stack.
const MAX_PAGES: usize = 1024;

/// What has been read of a thread's memory while it waits.
pub(crate) struct Memory<'r, 'f> {
    read: &'r mut ReadMemory<'f>,
    pages: HashMap<u64, Vec<u8>>,
}

impl<'r, 'f> Memory<'r, 'f> {
    pub(crate) fn new(read: &'r mut ReadMemory<'f>) -> Self {
        Self { read, pages: HashMap::new() }
    }

    fn page(&mut self, at: u64) -> Option<&[u8]> {
        if !self.pages.contains_key(&at) {
            if self.pages.len() >= MAX_PAGES {
                return None;
            }
            let mut page = vec![0; PAGE as usize];
            let got = (self.read)(at, &mut page);
            page.truncate(got);
            self.pages.insert(at, page);
        }
        self.pages.get(&at).map(Vec::as_slice)
    }

    /// Fills `buffer` with what is at `address`, all of it or `None`.
    pub(crate) fn fill(&mut self, address: u64, buffer: &mut [u8]) -> Option<()> {
        let mut at = address;
        let mut rest = buffer;
        while !rest.is_empty() {
            let into = (at % PAGE) as usize;
            let page = self.page(at - at % PAGE)?.get(into..).filter(|p| !p.is_empty())?;
            let n = page.len().min(rest.len());
            let (now, later) = rest.split_at_mut_checked(n)?;
            now.copy_from_slice(page.get(..n)?);
            rest = later;
            at = at.checked_add(n as u64)?;
        }
        Some(())
    }

    /// `len` bytes at `address`; `None` where there are fewer or `len` is more than `most`.
    pub(crate) fn bytes(&mut self, address: u64, len: u64, most: u64) -> Option<Vec<u8>> {
        let len = usize::try_from(len).ok().filter(|l| *l as u64 <= most)?;
        let mut bytes = vec![0; len];
        self.fill(address, &mut bytes)?;
        Some(bytes)
    }

    /// The 8-byte word at `address`.
    pub(crate) fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.fill(address, &mut bytes)?;
        word(&bytes, 0)
    }

    /// The pointer at `address`, `None` where it is null.
    pub(crate) fn pointer(&mut self, address: u64) -> Option<u64> {
        self.word(address).filter(|p| *p != 0)
    }

    /// The 4-byte word at `address`.
    pub(crate) fn half(&mut self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.fill(address, &mut bytes)?;
        half(&bytes, 0)
    }

    /// The byte at `address`.
    pub(crate) fn byte(&mut self, address: u64) -> Option<u8> {
        let mut byte = [0];
        self.fill(address, &mut byte)?;
        Some(byte[0])
    }

    /// Whether there are these bytes at `address`.
    pub(crate) fn starts_with(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.bytes(address, bytes.len() as u64, bytes.len() as u64).is_some_and(|b| b == bytes)
    }
}

/// Text of a target's. Bytes that are no UTF-8 stand as `\xNN`.
pub(crate) fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|b| text.push_str(&format!("\\x{b:02x}")));
    }
    text
}
