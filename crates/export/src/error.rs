//! Why a recording can't be written in a format.

use std::io;
use systoll_model::FileError;

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The place it goes to failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A picture of nothing.
    #[error("there is nothing to draw: no {0} in this recording")]
    Nothing(&'static str),
    /// A recording whose parts do not fit together, or that is too large.
    #[error(transparent)]
    Recording(FileError),
}
