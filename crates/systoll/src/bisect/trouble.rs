//! What a user of `bisect` can meet.

use std::io;
use std::path::PathBuf;

/// Why there can be no bisection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// git can't be started.
    #[error("git can't be run: {0}")]
    NoGit(io::Error),
    /// No repository there.
    #[error("{} is in no git repository: {}", .0.display(), first_line(.1))]
    NoRepository(PathBuf, String),
    /// No commit of this name.
    #[error("there is no commit {0}")]
    NoCommit(String),
    /// Both are one.
    #[error("{0} and {1} are the same commit")]
    Same(String, String),
    /// The good one does not come before the bad one.
    #[error("{good} is no ancestor of {bad}{}", if *.swapped { ": they are the wrong way round" } else { "" })]
    Order { good: String, bad: String, swapped: bool },
    /// There is no place for the worktree.
    #[error("no folder can be made for a worktree: {0}")]
    Folder(io::Error),
    /// git would not do it.
    #[error("git would not {}: {}", .0, first_line(.1))]
    Git(&'static str, String),
    /// What is to be compared can't be run.
    #[error("{0} {1}")]
    End(String, String),
}

fn first_line(text: &str) -> &str {
    text.lines().find(|l| !l.trim().is_empty()).unwrap_or("it says nothing").trim_start_matches("fatal: ")
}
