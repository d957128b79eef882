//! `systoll bisect`: the commit from which on a program makes more calls, or fewer.

mod git;
mod hunks;
mod shell_text;
mod steps;

use crate::cli::BisectArgs;
use crate::failure::Failure;
use crate::output::Output;
use git::{Commit, Worktree};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use steps::{Run, Steps};
use systoll_compare::{Tracked, Wanted};
use systoll_present::{BisectReport, Tried, bisect_json, write_bisect};

/// Nothing was found.
const NOT_FOUND: u8 = 1;

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

pub(crate) fn bisect(args: &BisectArgs) -> Result<ExitCode, Failure> {
    let mut output = Output::open(args.output.as_deref(), Output::Stdout)?;
    let style = output.style(args.color);
    let repository = args.repository.clone().unwrap_or_else(|| PathBuf::from("."));
    let (good, bad) = ends(args, &repository)?;
    let worktree = Worktree::new(&repository, &good)?;
    let mut steps = Steps::new(&worktree, args);
    let (before, after) = (steps.end(&good, &args.good)?, steps.end(&bad, &args.bad)?);
    let wanted = args.calls.as_ref().map_or(Wanted::Largest, |calls| Wanted::Selected(calls.selector.clone()));
    let tracked = Tracked::of(&wanted, &before.recording, &after.recording);
    let mut report = BisectReport {
        good: tried(&good, None),
        bad: tried(&bad, None),
        row: args.calls.as_ref().map(|c| c.text.clone()),
        runs: steps.runs,
        ..BisectReport::default()
    };
    if let Some(tracked) = &tracked {
        report.row = Some(tracked.name(&after.recording));
        (report.good.calls, report.bad.calls) =
            (Some(tracked.count(&before.recording)), Some(tracked.count(&after.recording)));
        let found =
            steps.find(tracked, [&good, &bad], Run { recording: before.recording, exit: before.exit }, after)?;
        if let Some(found) = found {
            let commit = git::describe(&worktree.path(), &found.commit)?;
            report.first = Some(tried(&commit, Some(found.calls)));
            report.calls_before = Some(found.calls_before);
            let places = tracked.places(if found.calls > found.calls_before {
                &found.recording
            } else {
                &found.recording_before
            });
            report.place = places.first().cloned();
            let diff = worktree.git(&[
                "diff",
                "--unified=0",
                "--no-color",
                "--no-ext-diff",
                &format!("{}^", commit.id),
                &commit.id,
            ])?;
            report.hunks = hunks::touching(&diff.out, &places, &worktree.path());
        }
        (report.steps, report.runs, report.skipped) = (steps.steps, steps.runs, steps.skipped.clone());
    }
    output.write("report", |w| {
        if args.json {
            serde_json::to_writer_pretty(&mut *w, &bisect_json(&report, env!("CARGO_PKG_VERSION")))?;
            writeln!(w)
        } else {
            write_bisect(w, &report, &style)
        }
    })?;
    Ok(ExitCode::from(if report.first.is_some() { 0 } else { NOT_FOUND }))
}

fn tried(commit: &Commit, calls: Option<u64>) -> Tried {
    Tried {
        id: commit.id.clone(),
        subject: commit.subject.clone(),
        author: commit.author.clone(),
        date: commit.date.clone(),
        calls,
    }
}

/// Both ends, looked at before anything is made.
fn ends(args: &BisectArgs, repository: &Path) -> Result<(Commit, Commit), Trouble> {
    let (good, bad) = (git::commit(repository, &args.good)?, git::commit(repository, &args.bad)?);
    if good.id == bad.id {
        return Err(Trouble::Same(args.good.clone(), args.bad.clone()));
    }
    if !git::is_ancestor(repository, &good, &bad)? {
        let swapped = git::is_ancestor(repository, &bad, &good)?;
        return Err(Trouble::Order { good: args.good.clone(), bad: args.bad.clone(), swapped });
    }
    Ok((good, bad))
}
