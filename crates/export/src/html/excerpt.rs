//! What of a source file is shown.

/// Lines of a source file around one that calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Number of the first line, from 1.
    pub first: u32,
    /// The lines, without their ends.
    pub text: Vec<String>,
}

/// How many lines before and after one are shown of a source.
pub const AROUND: u32 = 3;
