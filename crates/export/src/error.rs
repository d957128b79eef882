//! Holds the reasons why a recording can't be written in a format.

use std::io;
use systoll_model::FileError;

/// The reason why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Writing to the output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The picture would be empty: no row has a value.
    #[error("there is nothing to draw: no {0} in this recording")]
    Nothing(&'static str),
    /// The recording's parts do not fit together, or it is too large.
    #[error(transparent)]
    Recording(FileError),
}
