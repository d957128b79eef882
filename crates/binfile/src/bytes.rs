//! Access to the bytes of a file, and to fields of tables in it.

use std::borrow::Cow;

/// The bytes of a file, in memory or read piece by piece.
pub trait Bytes {
    /// Returns the number of bytes.
    fn size(&self) -> u64;

    /// Returns `len` bytes from `offset` on; `None` if there are fewer.
    fn piece(&self, offset: u64, len: u64) -> Option<Cow<'_, [u8]>>;
}

impl Bytes for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn piece(&self, offset: u64, len: u64) -> Option<Cow<'_, [u8]>> {
        stored(self, offset, len).map(Cow::Borrowed)
    }
}

/// Returns `len` bytes of a file from `offset` on; `None` if there are fewer.
pub(crate) fn stored(file: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let (start, end) = (usize::try_from(offset).ok()?, usize::try_from(offset.checked_add(len)?).ok()?);
    file.get(start..end)
}

/// Returns the bytes of a NUL-terminated string.
#[must_use]
pub fn c_str(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    memchr::memchr(0, rest).and_then(|end| rest.get(..end))
}

/// Returns the 8-byte little-endian word at `at`.
#[must_use]
pub fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// Returns the 4-byte little-endian word at `at`.
#[must_use]
pub fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}
