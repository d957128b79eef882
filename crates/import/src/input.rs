//! Reads lines of a file or pipe as they come, none longer than a bound.

use std::io::{self, BufRead};

/// Largest number of bytes kept of a line; the rest is read and left out.
const MOST: usize = 1 << 20;

/// A line without its end.
pub(crate) struct InputLine<'a> {
    pub(crate) text: &'a [u8],
    /// True if the line has an end; the last line of a file that is cut has none.
    pub(crate) whole: bool,
}

/// The lines of a reader.
pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, line: Vec::new() }
    }

    /// Returns the next line; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<InputLine<'_>>> {
        self.line.clear();
        let (mut any, mut whole) = (false, false);
        while !whole {
            let bytes = match self.reader.fill_buf() {
                Ok([]) => break,
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            any = true;
            let end = memchr::memchr(b'\n', bytes);
            let used = end.map_or(bytes.len(), |end| end + 1);
            let room = MOST.saturating_sub(self.line.len());
            let text = bytes.get(..end.unwrap_or(bytes.len()).min(room)).unwrap_or_default();
            self.line.extend_from_slice(text);
            whole = end.is_some();
            self.reader.consume(used);
        }
        if !any {
            return Ok(None);
        }
        let text = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(Some(InputLine { text, whole }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn lines_end_and_are_bounded() {
        let long = vec![b'x'; MOST + 10];
        let text = [b"a\r\n\nb\n", &long[..], b"\nlast"].concat();
        let mut lines = Lines::new(Cursor::new(text));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.text.len(), line.whole));
        }
        assert_eq!(all, [(1, true), (0, true), (1, true), (MOST, true), (4, false)]);
    }
}
