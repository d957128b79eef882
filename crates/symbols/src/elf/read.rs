//! Fields of tables, read within bounds.

/// The bytes of a NUL-terminated string.
pub(crate) fn c_str(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    memchr::memchr(0, rest).and_then(|end| rest.get(..end))
}

/// The 8-byte little-endian word at `at`.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// The 4-byte little-endian word at `at`.
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}
