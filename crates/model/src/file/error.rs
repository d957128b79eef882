//! The reasons why a recording could not be read or written.

use std::io;

/// The reason why a recording could not be read or written. Its text names the cause but not the
/// file, which the caller knows.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The reader or writer failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It has no bytes.
    #[error("it is empty")]
    Empty,
    /// It does not begin as gzip does.
    #[error("not a recording: recordings are gzipped pprof profiles, this is not gzip")]
    NotGzip,
    /// It ends too early.
    #[error("it is cut short")]
    Truncated,
    /// Its gzip, or the message inside, is broken.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// A profile that another kind of tool made.
    #[error("not a recording of systoll's: {0}")]
    Foreign(String),
    /// A later version wrote it.
    #[error("it was written by a newer systoll (recording format {file}, this one reads up to {ours})")]
    Newer {
        /// Version of the file's format.
        file: u32,
        /// The newest version this reader knows.
        ours: u32,
    },
    /// It holds more than any recording does, or more than a reader accepts.
    #[error("it holds too much: {0}")]
    TooLarge(String),
    /// The recording to be written contradicts itself.
    #[error("the recording is not whole: {0}")]
    Invalid(String),
}

/// Makes the error of a message that contradicts itself, e.g. by an index without an entry.
pub(super) fn damaged(what: &str) -> FileError {
    FileError::Damaged(what.to_owned())
}
