//! The recording's file: a gzipped pprof profile with one field of our own.
//!
//! Invariants: domain types are not serialised, only the wire types in `pprof` and `wire`. For any bytes, the reader
//! neither panics nor takes more than some hundred MiB.

mod blobs;
mod codes;
mod column;
mod decode;
mod encode;
mod error;
mod fields;
mod fit;
mod intern;
mod ledger;
mod pprof;
mod profile;
mod stripped;
mod waits;
mod window;
mod wire;

pub use column::PprofColumn;
pub use error::FileError;

use crate::recording::Recording;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use prost::Message;
use std::io::{self, Read, Write};

/// Bytes of an uncompressed file at most.
const MAX_FILE: u64 = 64 << 20;

/// Bytes of a message that is decoded as a whole, at most.
const MAX_MESSAGE: usize = 16 << 20;

/// Entries of all tables of a message at most, together. An entry of two bytes becomes some hundred bytes of memory.
const MAX_ENTRIES: usize = 1 << 19;

/// Compression level. The default, 6, takes half as much time again and does not make recordings smaller.
const LEVEL: Compression = Compression::new(4);

impl Recording {
    /// Writes the recording as a gzipped pprof profile (docs/reference/recording.md). If our part of it would exceed 1
    /// MiB before compression, or leave less than a fourth of that to windows, these are thinned, and the file says so.
    ///
    /// # Errors
    /// [`FileError::Io`] if `out` fails; [`FileError::Invalid`] if [`Recording::check`] fails;
    /// [`FileError::TooLarge`] if [`Recording::read`] would refuse the file.
    pub fn write(&self, out: impl Write) -> Result<(), FileError> {
        self.check().map_err(FileError::Invalid)?;
        let mut profile = profile::profile(self, &[]);
        profile.private = fit::message(self, fit::BOUND);
        bounded(&profile.private)?;
        packed(&profile, out)
    }

    /// Writes a gzipped pprof profile for other tools, without the part that only
    /// [`Recording::read`] understands. It has `more` values for each row, and shows the column
    /// `shown` by default (one of `more`, or one that every profile has).
    ///
    /// # Errors
    /// The errors of [`Recording::write`].
    pub fn write_pprof(&self, out: impl Write, more: &[PprofColumn<'_>], shown: &str) -> Result<(), FileError> {
        self.check().map_err(FileError::Invalid)?;
        let mut profile = profile::profile(self, more);
        if let Some(name) = profile.string_table.iter().position(|s| s == shown) {
            profile.default_sample_type = i64::try_from(name).unwrap_or_default();
        }
        packed(&profile, out)
    }

    /// Reads a recording that [`Recording::write`] wrote, on this box or another. If another tool rewrote the file, the
    /// remaining data is read, and a problem of kind [`crate::ProblemKind::Stripped`] names the missing data.
    ///
    /// # Errors
    /// A [`FileError`] that describes the fault of the bytes. Every recording returned passes [`Recording::check`].
    pub fn read(input: impl Read) -> Result<Recording, FileError> {
        let bytes = unpack(input)?;
        let Some(private) = fields::find(&bytes, pprof::PRIVATE).map_err(FileError::Damaged)? else {
            bounded(&bytes)?;
            return stripped::rebuild(&pprof::Profile::decode(bytes.as_slice()).map_err(undecodable)?);
        };
        let file = wire::Versioned::decode(private).map_err(undecodable)?.version;
        if file > wire::VERSION {
            return Err(FileError::Newer { file, ours: wire::VERSION });
        }
        bounded(private)?;
        decode::decode(wire::Recording::decode(private).map_err(undecodable)?)
    }
}

impl Recording {
    /// Returns true if [`Recording::write`] made the file `input` and our part of it is still
    /// there.
    pub fn is_in(input: impl Read) -> bool {
        unpack(input).is_ok_and(|bytes| fields::find(&bytes, pprof::PRIVATE).is_ok_and(|found| found.is_some()))
    }
}

fn packed(profile: &pprof::Profile, out: impl Write) -> Result<(), FileError> {
    let bytes = profile.encode_to_vec();
    if bytes.len() as u64 > MAX_FILE {
        return Err(too_large());
    }
    let mut gzip = GzEncoder::new(out, LEVEL);
    gzip.write_all(&bytes)?;
    gzip.finish()?.flush()?;
    Ok(())
}

/// Decompresses the bytes of a gzip file.
fn unpack(mut input: impl Read) -> Result<Vec<u8>, FileError> {
    let mut magic = Vec::new();
    input.by_ref().take(2).read_to_end(&mut magic)?;
    match magic.as_slice() {
        [] => return Err(FileError::Empty),
        [0x1f] => return Err(FileError::Truncated),
        [0x1f, 0x8b] => {}
        _ => return Err(FileError::NotGzip),
    }
    let mut source = Source { inner: magic.as_slice().chain(input), failed: false };
    let mut bytes = Vec::new();
    let outcome = GzDecoder::new(&mut source).take(MAX_FILE + 1).read_to_end(&mut bytes);
    if let Err(e) = outcome {
        return Err(match e.kind() {
            _ if source.failed => FileError::Io(e),
            io::ErrorKind::UnexpectedEof => FileError::Truncated,
            _ => FileError::Damaged(e.to_string()),
        });
    }
    if bytes.len() as u64 > MAX_FILE { Err(too_large()) } else { Ok(bytes) }
}

/// A reader of `inner` that remembers if reading failed. Any other error is the fault of the file.
struct Source<R> {
    inner: R,
    failed: bool,
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let outcome = self.inner.read(buf);
        self.failed = outcome.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::Interrupted);
        outcome
    }
}

/// Checks that `message` is small enough to decode as a whole.
fn bounded(message: &[u8]) -> Result<(), FileError> {
    if message.len() > MAX_MESSAGE {
        return Err(FileError::TooLarge(format!("a message of {} bytes", message.len())));
    }
    let entries = fields::count(message).map_err(FileError::Damaged)?;
    if entries > MAX_ENTRIES {
        return Err(FileError::TooLarge(format!("{entries} entries")));
    }
    Ok(())
}

fn too_large() -> FileError {
    FileError::TooLarge(format!("more than {MAX_FILE} bytes"))
}

fn undecodable(error: prost::DecodeError) -> FileError {
    FileError::Damaged(error.to_string())
}
