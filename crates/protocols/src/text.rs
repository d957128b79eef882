//! Splits received bytes into lines and words.

/// Bytes that are looked at, at most.
pub const HEAD: usize = 256;

/// Returns the first line without its end, and the bytes behind it; `None` if no line ends here.
pub(crate) fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = (bytes.get(..end)?, bytes.get(end + 1..)?);
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest))
}

/// Returns the bytes up to the first NUL as text, and the bytes behind it. Without a NUL, all bytes are the text.
pub(crate) fn until_nul(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (bytes.get(..end).unwrap_or_default(), bytes.get(end + 1..).unwrap_or_default()),
        None => (bytes, &[]),
    }
}

/// Returns the decimal number that `text` is, if it has 1 to 9 digits and nothing else.
pub(crate) fn number(text: &[u8]) -> Option<usize> {
    let plain = (1..=9).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    plain.then(|| text.iter().fold(0, |sum, digit| 10 * sum + usize::from(digit - b'0')))
}

/// Returns the entry of `known` that `word` is, whatever the case of its letters.
pub(crate) fn known(word: &[u8], known: &[&'static str]) -> Option<&'static str> {
    known.iter().find(|name| name.as_bytes().eq_ignore_ascii_case(word)).copied()
}
