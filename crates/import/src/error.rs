//! Why a trace could not be read.

use std::io;

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file can't be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// There is nothing in it.
    #[error("it is empty: nothing was traced, or the trace went elsewhere")]
    Empty,
    /// No line is one of a trace.
    #[error("no line of it is one of strace, ltrace -S, perf trace or perf script; the first is: {first}")]
    NoTrace {
        /// The first line, shortened.
        first: String,
    },
}
