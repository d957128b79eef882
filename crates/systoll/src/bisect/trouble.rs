//! What a user of `bisect` can meet.

use std::io;
use std::path::{Path, PathBuf};

/// Why there can be no bisection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// git can't be started.
    #[error("git can't be run: {0}")]
    NoGit(io::Error),
    /// No repository there.
    #[error("{} is in no git repository: {}", .0.display(), first_line(.1))]
    NoRepository(PathBuf, String),
    /// Another user owns the repository, and git does not follow what its configuration says.
    #[error("{}: git refuses: {said}. If you trust who owns it: {command}", .at.display())]
    NotOurs { at: PathBuf, said: String, command: String },
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

impl Trouble {
    /// git finds no repository at a folder, or none that it will use; `said` is what it says, in English.
    pub(super) fn outside(at: &Path, said: String) -> Self {
        let line = said.lines().find(|line| line.contains("dubious ownership")).map(first_line);
        let Some(line) = line else { return Self::NoRepository(at.to_owned(), said) };
        // git names the command, with the folder as it wants it; older ones do not.
        let named = said.lines().map(str::trim).find(|line| line.starts_with("git config "));
        let command = named.unwrap_or("git config --global --add safe.directory FOLDER").to_owned();
        Self::NotOurs { at: at.to_owned(), said: line.to_owned(), command }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().find(|l| !l.trim().is_empty()).unwrap_or("it says nothing").trim_start_matches("fatal: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_refuses_is_told_apart_from_what_is_not_there() {
        let said = "fatal: detected dubious ownership in repository at '/r'\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /r\n";
        let told = Trouble::outside(Path::new("."), said.into()).to_string();
        assert_eq!(
            told,
            ".: git refuses: detected dubious ownership in repository at '/r'. If you trust who owns it: \
             git config --global --add safe.directory /r"
        );
        let none = "fatal: not a git repository (or any of the parent directories): .git\n";
        let told = Trouble::outside(Path::new("/tmp"), none.into()).to_string();
        assert_eq!(told, "/tmp is in no git repository: not a git repository (or any of the parent directories): .git");
    }
}
