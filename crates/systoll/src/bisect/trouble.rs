//! Holds the errors of `bisect`.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a bisection is not possible.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// git can't be started.
    #[error("git can't be run: {0}")]
    NoGit(io::Error),
    /// The folder is in no repository.
    #[error("{} is in no git repository: {}", .0.display(), first_line(.1))]
    NoRepository(PathBuf, String),
    /// Another user owns the repository, and git refuses to use its configuration.
    #[error("{}: git refuses: {said}. If you trust who owns it: {command}", .at.display())]
    NotOurs { at: PathBuf, said: String, command: String },
    /// There is no commit of this name.
    #[error("there is no commit {0}")]
    NoCommit(String),
    /// Both names mean one commit.
    #[error("{0} and {1} are the same commit")]
    Same(String, String),
    /// The good commit is not an ancestor of the bad one.
    #[error("{good} is no ancestor of {bad}{}", if *.swapped { ": they are in the wrong order" } else { "" })]
    Order { good: String, bad: String, swapped: bool },
    /// The folder for the worktree can't be created.
    #[error("no folder can be made for a worktree: {0}")]
    Folder(io::Error),
    /// A git command failed.
    #[error("git would not {}: {}", .0, first_line(.1))]
    Git(&'static str, String),
    /// The commit at one end can't be run.
    #[error("{0} {1}")]
    End(String, String),
}

impl Trouble {
    /// Makes the error for a folder in which git finds no repository, or none that it will use.
    /// `said` is git's message, in English.
    pub(super) fn outside(at: &Path, said: String) -> Self {
        let line = said.lines().find(|line| line.contains("dubious ownership")).map(first_line);
        let Some(line) = line else { return Self::NoRepository(at.to_owned(), said) };
        // Git's message has the command with the folder; older versions lack it.
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
    fn git_refusals_differ_from_missing_repositories() {
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
