//! Why a recording could not be read or written.

use std::io;

/// Why a recording could not be read or written. The texts name the cause and not the file,
/// which the caller knows.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The reader or writer failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It does not begin as gzip does.
    #[error("not a recording: recordings are gzipped pprof profiles, this is not gzip")]
    NotGzip,
    /// It ends too early.
    #[error("it is cut short")]
    Truncated,
    /// Its gzip or what that holds is broken.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// A profile of another kind of tool.
    #[error("not a recording of systoll's: {0}")]
    Foreign(String),
    /// Written by a later version.
    #[error("it was written by a newer systoll (recording format {file}, this one reads up to {ours})")]
    Newer {
        /// Version of the file's format.
        file: u32,
        /// The newest version this reader knows.
        ours: u32,
    },
    /// More than any recording holds, or than a reader is willing to take in.
    #[error("it holds too much: {0}")]
    TooLarge(String),
    /// The recording to be written contradicts itself.
    #[error("the recording is not whole: {0}")]
    Invalid(String),
}

/// An index of a message that has no such entry, or the like.
pub(super) fn damaged(what: &str) -> FileError {
    FileError::Damaged(what.to_owned())
}
