//! The error of a trace that can't be read.

use std::io;

/// The reason for which a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file can't be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// The file is empty.
    #[error("it is empty: nothing was traced, or the trace went elsewhere")]
    Empty,
    /// The file is packed in a form that is not read.
    #[error("it is packed by {tool}: {tool} -dc FILE | systoll import -")]
    Packed {
        /// The tool that packs and unpacks files of this form.
        tool: &'static str,
    },
    /// The file begins like a packed one, but can't be unpacked.
    #[error("it begins as a file of {tool} does, and can't be unpacked: {why}")]
    Damaged {
        /// The tool that packed the file.
        tool: &'static str,
        /// The message of the unpacking program.
        why: String,
    },
    /// The file is a packed message that is no trace: a profile, as `systoll run --save` writes it.
    #[error("it is a profile or a recording, and no trace")]
    Profile,
    /// The file is a table of a database.
    #[error("it is a {kind}, which is not read: of systing's, systing-util convert IN -o OUT.pb makes a trace that is")]
    Table {
        /// The kind of database file, for a sentence.
        kind: &'static str,
    },
    /// Another tool wrote the file, whose traces are not read.
    #[error("{tool} wrote it, and its traces are not read; {instead}")]
    Foreign {
        /// The tool that wrote the file.
        tool: &'static str,
        /// The way to a trace that is read, as advice to the user.
        instead: &'static str,
    },
    /// No line of the file is one of a trace.
    #[error(
        "no line of it is one of strace, ltrace -S, perf trace or perf script, and it is no trace of Perfetto; the first is: {first}"
    )]
    NoTrace {
        /// The first line of the file, shortened.
        first: String,
    },
}
