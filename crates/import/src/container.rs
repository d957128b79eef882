//! Opens the containers of traces: packed files, and text in other encodings than UTF-8.

use crate::error::ImportError;
use std::io::{self, BufRead, BufReader, Read};

/// Largest number of bytes unpacked of one file. The rest is left out, so that a small file can't
/// keep us busy for ever.
const MOST_UNPACKED: u64 = 4 << 30;
/// Largest dictionary of an xz stream, KiB: the size that `xz -9` uses.
const MOST_DICTIONARY_KIB: u32 = 64 << 10;
/// Number of bytes of a file from which its encoding is guessed.
const TELLING: usize = 64;

/// Returns the text of a file: unpacked, in UTF-8, with line feeds between its lines.
///
/// # Errors
///
/// If the file can't be read, or is of a kind that is not read.
pub(crate) fn text<'a>(mut reader: impl BufRead + 'a) -> Result<Box<dyn BufRead + 'a>, ImportError> {
    let head = reader.fill_buf()?;
    // The magic numbers are those of RFC 1952, the .xz format, RFC 8878, PKWARE's APPNOTE, DuckDB's storage and Parquet's.
    match head {
        [0x1f, 0x8b, ..] => unpacked(flate2::bufread::MultiGzDecoder::new(reader), "gzip"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            let reader = lzma_rust2::XzReader::new_mem_limit(reader, true, MOST_DICTIONARY_KIB);
            unpacked(reader, "xz")
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let reader = ruzstd::decoding::StreamingDecoder::new(reader)
                .map_err(|e| ImportError::Damaged { tool: "zstd", why: e.to_string() })?;
            unpacked(reader, "zstd")
        }
        [b'P', b'K', 3, 4, ..] => unpacked(first_of_zip(reader)?, "zip"),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Err(ImportError::Packed { tool: "bzip2" }),
        [b'P', b'A', b'R', b'1', ..] => Err(ImportError::Table { kind: "Parquet file" }),
        [_, _, _, _, _, _, _, _, b'D', b'U', b'C', b'K', ..] => Err(ImportError::Table { kind: "DuckDB database" }),
        _ => Ok(plain(reader)?),
    }
}

/// Returns the text that `tool` packed.
///
/// # Errors
///
/// If the beginning can't be unpacked: a decoder reports that once, and takes the file for empty
/// afterwards.
fn unpacked<'a>(reader: impl Read + 'a, tool: &'static str) -> Result<Box<dyn BufRead + 'a>, ImportError> {
    let mut reader = BufReader::with_capacity(1 << 18, reader.take(MOST_UNPACKED));
    reader.fill_buf().map_err(|e| ImportError::Damaged { tool, why: e.to_string() })?;
    Ok(plain(reader)?)
}

fn plain<'a>(mut reader: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    Ok(match Encoding::of(reader.fill_buf()?) {
        Encoding::Utf8 => Box::new(reader),
        other => Box::new(BufReader::new(Utf8 { reader, encoding: other, unread: Vec::new() })),
    })
}

/// Returns a reader of the first file in a zip, found by its local header alone (APPNOTE 4.3.7): a
/// trace in a report is the only file of its zip.
fn first_of_zip<'a>(mut reader: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>, ImportError> {
    let mut header = [0; 30];
    reader.read_exact(&mut header)?;
    let short = |at: usize| header.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_le_bytes);
    let skipped = u64::from(short(26)) + u64::from(short(28));
    io::copy(&mut (&mut reader).take(skipped), &mut io::sink())?;
    let stored = header.get(18..22).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
    match short(8) {
        0 if stored > 0 => Ok(Box::new(reader.take(u64::from(stored)))),
        8 => Ok(Box::new(flate2::bufread::DeflateDecoder::new(reader))),
        _ => Err(ImportError::Packed { tool: "unzip" }),
    }
}

/// The encoding of a file's characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// UTF-8, or bytes of any kind, which are read as they are.
    Utf8,
    /// UTF-8 with a byte order mark in front.
    Marked,
    /// Two bytes each, the lower one first.
    Utf16Le,
    /// Two bytes each, the higher one first.
    Utf16Be,
    /// UTF-8 whose lines end with a carriage return.
    Returns,
}

impl Encoding {
    fn of(head: &[u8]) -> Self {
        let telling = head.get(..TELLING.min(head.len())).unwrap_or_default();
        // ASCII text in two-byte units has a zero in each; a few other characters may be among it.
        let zeroes = |first: usize| telling.iter().skip(first).step_by(2).filter(|b| **b == 0).count();
        let half = telling.len() / 2;
        match telling {
            [0xef, 0xbb, 0xbf, ..] => Self::Marked,
            [0xff, 0xfe, ..] => Self::Utf16Le,
            [0xfe, 0xff, ..] => Self::Utf16Be,
            _ if half >= 8 && zeroes(1) * 4 > half * 3 && zeroes(0) * 8 < half => Self::Utf16Le,
            _ if half >= 8 && zeroes(0) * 4 > half * 3 && zeroes(1) * 8 < half => Self::Utf16Be,
            _ if head.contains(&b'\r') && !head.contains(&b'\n') => Self::Returns,
            _ => Self::Utf8,
        }
    }
}

/// A reader that converts another encoding to UTF-8. It is written by hand: a library would bring
/// the tables of forty encodings for these two.
struct Utf8<R> {
    reader: R,
    encoding: Encoding,
    /// UTF-8 that did not fit into the caller's buffer.
    unread: Vec<u8>,
}

impl<R: BufRead> Utf8<R> {
    /// Takes in some bytes, in whole units. Returns true if there were any.
    fn more(&mut self) -> io::Result<bool> {
        let bytes = self.reader.fill_buf()?;
        let length = bytes.len();
        if length == 0 {
            return Ok(false);
        }
        let used = match self.encoding {
            Encoding::Returns => {
                self.unread.extend(bytes.iter().map(|b| if *b == b'\r' { b'\n' } else { *b }));
                length
            }
            Encoding::Utf16Le | Encoding::Utf16Be => {
                let unit = |pair: &[u8]| match (pair, self.encoding) {
                    ([a, b], Encoding::Utf16Le) => u16::from_le_bytes([*a, *b]),
                    ([a, b], _) => u16::from_be_bytes([*a, *b]),
                    _ => 0,
                };
                let units: Vec<u16> = bytes.chunks_exact(2).map(unit).collect();
                let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
                let mut utf8 = [0; 4];
                for character in text.filter(|c| *c != '\u{feff}') {
                    self.unread.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
                }
                // The last byte of the buffer, or of the file, may be half of a unit.
                if length == 1 { 1 } else { length & !1 }
            }
            Encoding::Marked | Encoding::Utf8 => {
                let text = if self.encoding == Encoding::Marked { bytes.get(3..).unwrap_or_default() } else { bytes };
                self.unread.extend_from_slice(text);
                length
            }
        };
        if self.encoding == Encoding::Marked {
            self.encoding = Encoding::Utf8;
        }
        self.reader.consume(used);
        Ok(true)
    }
}

impl<R: BufRead> Read for Utf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.unread.is_empty() {
            if !self.more()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.unread.len());
        for (to, from) in buffer.iter_mut().zip(self.unread.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    const TEXT: &str = "close(3) = 0\nopen(\"/tmp/ä€😀\") = 3\n";

    fn read(bytes: &[u8]) -> Option<String> {
        let mut all = Vec::new();
        text(bytes).ok()?.read_to_end(&mut all).ok()?;
        String::from_utf8(all).ok()
    }

    fn utf16(bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        TEXT.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn encodings() {
        let whole = || Some(TEXT.to_owned());
        assert_eq!(read(TEXT.as_bytes()), whole());
        assert_eq!(read(&[b"\xef\xbb\xbf", TEXT.as_bytes()].concat()), whole());
        assert_eq!(read(&utf16(u16::to_le_bytes)), whole());
        assert_eq!(read(&utf16(u16::to_be_bytes)), whole());
        assert_eq!(read(&[vec![0xff, 0xfe], utf16(u16::to_le_bytes)].concat()), whole());
        assert_eq!(read(TEXT.replace('\n', "\r").as_bytes()), whole());
    }

    #[test]
    fn packed() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(TEXT.as_bytes()).unwrap();
        assert_eq!(read(&gzip.finish().unwrap()), Some(TEXT.to_owned()));
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        deflate.write_all(TEXT.as_bytes()).unwrap();
        let mut header = [0; 30];
        header[..4].copy_from_slice(b"PK\x03\x04");
        (header[8], header[26]) = (8, 5);
        let zip = [&header[..], b"a.txt", &deflate.finish().unwrap()].concat();
        assert_eq!(read(&zip), Some(TEXT.to_owned()));
        assert!(matches!(text(&b"BZh91AY"[..]), Err(ImportError::Packed { tool: "bzip2" })));
        for (magic, named) in
            [(&b"\x1f\x8b\x07no packer's bytes"[..], "gzip"), (b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff", "zstd")]
        {
            assert!(matches!(text(magic), Err(ImportError::Damaged { tool, .. }) if tool == named), "{named}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(kind in 0..7usize, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let magic: &[u8] = [b"\x1f\x8b\x08" as &[u8], b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\xff\xfe", b"\xfe\xff", b""][kind];
            read(&[magic, &bytes].concat());
        }
    }
}
