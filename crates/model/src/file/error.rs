//! The reasons why a recording could not be read or written.

use std::io;

/// The reason why a recording could not be read or written. Its text names the cause but not the
/// file, which the caller knows.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The reader or writer failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file has no bytes.
    #[error("it is empty")]
    Empty,
    /// The file does not begin as gzip files do.
    #[error("not a recording: recordings are gzipped pprof profiles, this is not gzip")]
    NotGzip,
    /// The file ends too early.
    #[error("it is cut short")]
    Truncated,
    /// The file's gzip data, or the message inside, is broken.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// The file is a profile that another kind of tool made.
    #[error("not a recording of systoll's: {0}")]
    Foreign(String),
    /// A later version of systoll wrote the file.
    #[error("it was written by a newer systoll (recording format {file}, this one reads up to {ours})")]
    Newer {
        /// Version of the file's format.
        file: u32,
        /// The newest version of the format that this reader knows.
        ours: u32,
    },
    /// The recording was made on a kind of machine that this reader does not know.
    #[error("it was made on a machine of another kind ({0:?}), which this systoll does not know")]
    Machine(String),
    /// The file holds more than any recording does, or more than a reader accepts.
    #[error("it holds too much: {0}")]
    TooLarge(String),
    /// The recording to be written contradicts itself.
    #[error("the recording is not whole: {0}")]
    Invalid(String),
}

/// Creates the error for a message that contradicts itself, e.g. by an index without an entry.
pub(super) fn damaged(what: &str) -> FileError {
    FileError::Damaged(what.to_owned())
}
