//! Reads lines of bounded length.

use std::io::{self, BufRead};

/// Bytes of a message, at most. A call's arguments are a command and a few words.
pub const MAX_LINE: usize = 1 << 20;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadLine {
    /// A complete line without its end; the last line may lack one.
    Whole(Vec<u8>),
    /// A line that was too long and was skipped.
    TooLong,
    /// The end of the stream.
    End,
}

/// Reads the next line.
///
/// # Errors
/// The errors of the stream.
pub(crate) fn next_line(from: &mut impl BufRead) -> io::Result<ReadLine> {
    let mut line = Vec::new();
    let (mut some, mut too_long) = (false, false);
    loop {
        let bytes = match from.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            break;
        }
        some = true;
        let end = bytes.iter().position(|b| *b == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        too_long |= line.len() + part.len() > MAX_LINE;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let used = end.map_or(bytes.len(), |at| at + 1);
        from.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(match (some, too_long) {
        (false, _) => ReadLine::End,
        (true, true) => ReadLine::TooLong,
        (true, false) => ReadLine::Whole(line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_or_passed_over() {
        let long = vec![b'x'; MAX_LINE + 1];
        let text = [b"one\n\n".as_slice(), &long, b"\n", &long[1..], b"\nlast"].concat();
        // The buffer is small, so that a line is read in parts.
        let mut from = io::BufReader::with_capacity(1000, text.as_slice());
        let mut next = || next_line(&mut from).unwrap();
        assert_eq!(
            [next(), next(), next()],
            [ReadLine::Whole(b"one".into()), ReadLine::Whole(vec![]), ReadLine::TooLong]
        );
        assert_eq!(next(), ReadLine::Whole(long[1..].to_vec()));
        assert_eq!([next(), next()], [ReadLine::Whole(b"last".into()), ReadLine::End]);
    }
}
