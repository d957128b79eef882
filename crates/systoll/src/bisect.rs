//! Implements `systoll bisect`: finds the first commit with which a program makes more calls, or
//! fewer.

mod git;
mod hunks;
mod shell_text;
mod steps;
mod trouble;

pub(crate) use trouble::Trouble;

use crate::cli::BisectArgs;
use crate::failure::Failure;
use crate::output::Output;
use git::{Commit, Worktree};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use steps::{Run, Steps};
use systoll_compare::{Tracked, Wanted};
use systoll_model::InertJson;
use systoll_present::{BisectReport, TriedCommit, bisect_json, write_bisect};

/// Exit code if no commit was found.
const NOT_FOUND: u8 = 1;

pub(crate) fn bisect(args: &BisectArgs) -> Result<ExitCode, Failure> {
    let mut output = Output::open(args.output.as_deref(), Output::Stdout)?;
    let style = output.style(args.color.when);
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
            serde_json::to_writer_pretty(InertJson(&mut *w), &bisect_json(&report, env!("CARGO_PKG_VERSION")))?;
            writeln!(w)
        } else {
            write_bisect(w, &report, &style)
        }
    })?;
    Ok(ExitCode::from(if report.first.is_some() { 0 } else { NOT_FOUND }))
}

fn tried(commit: &Commit, calls: Option<u64>) -> TriedCommit {
    TriedCommit {
        id: commit.id.clone(),
        subject: commit.subject.clone(),
        author: commit.author.clone(),
        date: commit.date.clone(),
        calls,
    }
}

/// Checks and returns both ends; nothing has been created yet.
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
