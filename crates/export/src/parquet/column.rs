//! Writes a column of one row group: its pages.
//!
//! Each different text is written once and referred to by number; numbers are written plainly.
//! Run-length encoding says which values are known. A column is compressed (gzip, which all readers
//! have) if that makes it smaller. Layout and codes are those of
//! <https://parquet.apache.org/docs/file-format/>.

use super::thrift::{Struct, varint};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::io::{self, Write};

/// The values of a column, one for each row.
pub(super) enum Values<'a> {
    /// Texts, which are known in every row.
    Texts(Vec<&'a str>),
    /// Numbers; `None` if one is not known.
    Numbers(Vec<Option<i64>>),
}

/// Codes of the encodings of values.
pub(super) mod encoding {
    pub(crate) const PLAIN: i32 = 0;
    pub(crate) const RLE: i32 = 3;
    pub(crate) const RLE_DICTIONARY: i32 = 8;
}

/// Compression of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    None = 0,
    Gzip = 2,
}

const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

/// The pages of a column as they are in the file.
pub(super) struct Pages {
    pub(super) codec: Codec,
    /// The dictionary's page; numbers have none.
    pub(super) dictionary: Option<Vec<u8>>,
    pub(super) data: Vec<u8>,
    /// Size of all pages before compression, with their headers, in bytes.
    pub(super) uncompressed: usize,
}

/// Makes the pages of a column.
///
/// # Errors
///
/// A page has 2 GiB, which rows of bounded names never make.
pub(super) fn pages(values: &Values<'_>) -> io::Result<Pages> {
    let (dictionary, data) = match values {
        Values::Texts(texts) => {
            let (entries, body, indices) = by_dictionary(texts);
            let dictionary = Page { body, kind: Kind::Dictionary { entries } };
            (
                Some(dictionary),
                Page { body: indices, kind: Kind::Data { values: texts.len(), how: encoding::RLE_DICTIONARY } },
            )
        }
        Values::Numbers(numbers) => {
            let kind = Kind::Data { values: numbers.len(), how: encoding::PLAIN };
            (None, Page { body: plain(numbers), kind })
        }
    };
    let written = |codec| -> io::Result<Pages> {
        Ok(Pages {
            codec,
            dictionary: dictionary.as_ref().map(|page| page.write(codec)).transpose()?,
            data: data.write(codec)?,
            uncompressed: 0,
        })
    };
    let size = |pages: &Pages| pages.data.len() + pages.dictionary.as_ref().map_or(0, Vec::len);
    let (plain, small) = (written(Codec::None)?, written(Codec::Gzip)?);
    let uncompressed = size(&plain);
    Ok(Pages { uncompressed, ..if size(&small) < uncompressed { small } else { plain } })
}

enum Kind {
    Dictionary { entries: usize },
    Data { values: usize, how: i32 },
}

struct Page {
    body: Vec<u8>,
    kind: Kind,
}

impl Page {
    fn write(&self, codec: Codec) -> io::Result<Vec<u8>> {
        let compressed = match codec {
            Codec::None => self.body.clone(),
            Codec::Gzip => {
                let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
                gzip.write_all(&self.body)?;
                gzip.finish()?
            }
        };
        let size = |n: usize| i32::try_from(n).map_err(io::Error::other);
        let kind = if matches!(self.kind, Kind::Dictionary { .. }) { DICTIONARY_PAGE } else { DATA_PAGE };
        let header = Struct::default().i32(1, kind).i32(2, size(self.body.len())?).i32(3, size(compressed.len())?);
        let header = match self.kind {
            Kind::Data { values, how } => {
                let levels = Struct::default().i32(1, size(values)?).i32(2, how).i32(3, encoding::RLE);
                header.nested(5, levels.i32(4, encoding::RLE))
            }
            Kind::Dictionary { entries } => {
                header.nested(7, Struct::default().i32(1, size(entries)?).i32(2, encoding::PLAIN))
            }
        };
        let mut bytes = header.end();
        bytes.extend(compressed);
        Ok(bytes)
    }
}

/// Returns the number of different texts, the texts one after the other, and each row's index.
fn by_dictionary(texts: &[&str]) -> (usize, Vec<u8>, Vec<u8>) {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut entries = Vec::new();
    let mut indices = Vec::with_capacity(texts.len());
    for text in texts {
        let next = numbers.len();
        let number = *numbers.entry(text).or_insert_with(|| {
            entries.extend((text.len() as u32).to_le_bytes());
            entries.extend(text.as_bytes());
            next
        });
        indices.push(number as u64);
    }
    let width = (u64::BITS - (numbers.len().saturating_sub(1) as u64).leading_zeros()).max(1);
    let mut body = vec![width as u8];
    runs(&mut body, &indices, width);
    (numbers.len(), entries, body)
}

/// Returns marks of the numbers that are known, then the known numbers.
fn plain(numbers: &[Option<i64>]) -> Vec<u8> {
    let known: Vec<u64> = numbers.iter().map(|n| u64::from(n.is_some())).collect();
    let mut levels = Vec::new();
    runs(&mut levels, &known, 1);
    let mut body = (levels.len() as u32).to_le_bytes().to_vec();
    body.extend(levels);
    body.extend(numbers.iter().flatten().flat_map(|n| n.to_le_bytes()));
    body
}

/// Appends the run-length encoding of `values`: length and value of each run, in whole bytes of
/// `width` bits.
fn runs(out: &mut Vec<u8>, values: &[u64], width: u32) {
    for run in values.chunk_by(|a, b| a == b) {
        varint(out, (run.len() as u64) << 1);
        let value = run.first().copied().unwrap_or_default().to_le_bytes();
        out.extend(value.iter().take(width.div_ceil(8) as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_long_as_values_stay() {
        let mut out = Vec::new();
        runs(&mut out, &[1, 1, 1, 0, 300], 9);
        assert_eq!(out, [6, 1, 0, 2, 0, 0, 2, 44, 1]);
    }

    #[test]
    fn an_unknown_value_takes_a_level_only() {
        assert_eq!(plain(&[None, Some(-1)]), [4, 0, 0, 0, 2, 0, 2, 1, 255, 255, 255, 255, 255, 255, 255, 255]);
    }

    #[test]
    fn texts_are_written_once() {
        let (entries, body, indices) = by_dictionary(&["a", "b", "b", "a"]);
        assert_eq!((entries, body), (2, vec![1, 0, 0, 0, b'a', 1, 0, 0, 0, b'b']));
        assert_eq!(indices, [1, 2, 0, 4, 1, 2, 0]);
    }

    #[test]
    fn incompressible_pages_stay_uncompressed() {
        assert!(pages(&Values::Numbers(vec![Some(1)])).unwrap().codec == Codec::None);
        assert!(pages(&Values::Numbers(vec![Some(1); 1000])).unwrap().codec == Codec::Gzip);
    }
}
