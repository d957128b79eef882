//! Problems: gaps and uncertainties of a recording.

use std::fmt;

/// The kind of a gap or an uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// A program was let go unwatched (set-id, file capabilities, another architecture).
    Unwatched,
    /// Calls were made that were not counted.
    Lost,
    /// Our counts and the kernel's, of the audit against /proc/PID/io, do not agree.
    Audit,
    /// A name could not be found.
    Name,
    /// A price or time is less sure than usual.
    Price,
    /// Windows, contexts or processes were folded to stay within bounds.
    Bounded,
    /// The file lost part of itself on the way (another tool rewrote it).
    Stripped,
    /// Watching ended before the program did.
    CutShort,
    /// Calls were sampled only in part or not timed, so findings that rest on them are less sure.
    Partial,
    /// Calls were counted for much of the run, but not sampled: what they were is not known.
    Unsampled,
    /// Another fact worth knowing.
    Note,
}

impl ProblemKind {
    /// Returns true if a recording with such a problem can't be called exact.
    pub fn spoils_exactness(self) -> bool {
        matches!(self, Self::Unwatched | Self::Lost | Self::Audit | Self::CutShort | Self::Stripped)
    }

    /// Returns true if findings from a recording with such a problem are less sure than they look.
    pub fn weakens_findings(self) -> bool {
        self == Self::Partial
    }
}

/// A problem, in one line for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// The problem in one line, without a full stop at its end.
    pub text: String,
}

impl Problem {
    /// Creates a problem of this kind, with this text.
    pub fn new(kind: ProblemKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
