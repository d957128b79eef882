//! Holds excerpts of source files.

/// The lines of a source file around one that makes calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Number of the first line, from 1.
    pub first: u32,
    /// The lines, without their ends.
    pub text: Vec<String>,
}

/// Number of lines that are shown before that line, and after it.
pub const AROUND: u32 = 3;
