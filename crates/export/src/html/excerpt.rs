//! Excerpts of source files.

/// Lines of a source file around one that makes calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Number of the first line, from 1.
    pub first: u32,
    /// The lines, without their ends.
    pub text: Vec<String>,
}

/// Lines before and after it that are shown.
pub const AROUND: u32 = 3;
