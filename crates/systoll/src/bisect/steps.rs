//! Carries out the steps of a bisection: each checks a commit out, builds it and runs it once.

use super::git::{Commit, Worktree};
use super::shell_text;
use super::trouble::Trouble;
use crate::cli::BisectArgs;
use crate::failure::Failure;
use crate::output::{shown_time, to_stderr};
use crate::watched_run::WatchedRun;
use indicatif::ProgressBar;
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use systoll_compare::Tracked;
use systoll_cure::{interrupted, interrupted_after, settle};
use systoll_model::{EnvChange, Exit, Recording};

/// Number of a commit id's digits that are shown.
const SHOWN: usize = 12;
/// Largest number of steps, skipped commits included: no history takes more.
const MOST: usize = 10_000;
/// Number of characters that are shown of a failed build's last line.
const TOLD: usize = 300;

/// Variable that stops Python from caching bytecode. Python identifies a source by its size and
/// time in seconds: two commits checked out within one second look the same.
const NO_BYTECODE: &str = "PYTHONDONTWRITEBYTECODE";

/// One run of a commit.
pub(super) struct Run {
    pub(super) recording: Recording,
    pub(super) exit: Option<Exit>,
}

/// The result of a bisection.
pub(super) struct Found {
    pub(super) commit: String,
    pub(super) calls: u64,
    pub(super) calls_before: u64,
    pub(super) recording: Recording,
    pub(super) recording_before: Recording,
}

/// A bisection in progress.
pub(super) struct Steps<'a> {
    worktree: &'a Worktree,
    build: Option<OsString>,
    command: Vec<OsString>,
    progress: ProgressBar,
    began: Instant,
    pub(super) steps: usize,
    pub(super) runs: usize,
    /// Commits that can't be built or run.
    pub(super) skipped: Vec<String>,
}

/// The result of trying a commit.
enum CommitRun {
    Ran(Box<Run>),
    Failed(String),
}

impl<'a> Steps<'a> {
    pub(super) fn new(worktree: &'a Worktree, args: &BisectArgs) -> Self {
        let (build, command) = commands(args);
        let progress = crate::output::progress_line(args.quiet);
        let began = Instant::now();
        Self { worktree, build, command, progress, began, steps: 0, runs: 0, skipped: Vec::new() }
    }

    /// Runs the commit at one of the ends, which has to succeed.
    pub(super) fn end(&mut self, commit: &Commit, name: &str) -> Result<Run, Failure> {
        self.progress.set_message(format!("running {name}"));
        self.progress.tick();
        self.worktree.check_out(&commit.id)?;
        match self.run()? {
            CommitRun::Ran(run) => Ok(*run),
            CommitRun::Failed(why) => Err(Trouble::End(name.to_owned(), why).into()),
        }
    }

    /// Lets git choose commits until one is left. Returns `None` if the commits that are left can't
    /// be built.
    pub(super) fn find(
        &mut self,
        tracked: &Tracked,
        [good, bad]: [&Commit; 2],
        mut before: Run,
        mut after: Run,
    ) -> Result<Option<Found>, Failure> {
        let (low, high) = (tracked.count(&before.recording), tracked.count(&after.recording));
        let exits = [before.exit, after.exit];
        let mut said = self.worktree.git(&["bisect", "start", &bad.id, &good.id])?;
        while self.steps < MOST {
            if let Some(commit) = first_bad(&said.out) {
                let (calls, calls_before) = (tracked.count(&after.recording), tracked.count(&before.recording));
                let (recording, recording_before) = (after.recording, before.recording);
                self.progress.finish_and_clear();
                return Ok(Some(Found { commit, calls, calls_before, recording, recording_before }));
            }
            if !said.ok {
                self.progress.finish_and_clear();
                let only_skipped =
                    said.out.contains("only 'skip'ped commits") || said.err.contains("only 'skip'ped commits");
                return if only_skipped { Ok(None) } else { Err(Trouble::Git("bisect", said.err).into()) };
            }
            self.steps += 1;
            self.tell_step(steps_left(&said.out));
            let head = self.worktree.git(&["rev-parse", "HEAD"])?.out.trim().to_owned();
            // A build may have changed files that the next commit changes too.
            self.worktree.git(&["reset", "--quiet", "--hard"])?;
            let tried = self.run().map_err(|e| e.knowing(|| self.known()))?;
            let word = match tried {
                CommitRun::Ran(run) if exits.contains(&run.exit) => {
                    let calls = tracked.count(&run.recording);
                    if calls.abs_diff(low) < calls.abs_diff(high) {
                        before = *run;
                        "good"
                    } else {
                        after = *run;
                        "bad"
                    }
                }
                CommitRun::Ran(_) | CommitRun::Failed(_) => {
                    self.skipped.push(head);
                    "skip"
                }
            };
            self.worktree.git(&["reset", "--quiet", "--hard"])?;
            said = self.worktree.git(&["bisect", word])?;
        }
        Ok(None)
    }

    /// Shows the number of this step; `later` is git's guess of the number of steps after it.
    fn tell_step(&self, later: Option<u64>) {
        let left = later.map_or_else(String::new, |later| {
            let step = self.began.elapsed().as_secs_f64() / (self.runs.max(1) as f64);
            let left = shown_time(Duration::from_secs_f64(step * (later + 1) as f64));
            format!(" of about {}, about {left} left", self.steps as u64 + later)
        });
        self.progress.set_message(format!("step {}{left}", self.steps));
        self.progress.tick();
    }

    /// Describes what is known if the bisection is interrupted.
    fn known(&self) -> String {
        // New processes are killed after an interrupt; git must not be.
        settle();
        let done = self.steps.saturating_sub(1);
        let refs = ["rev-list", "refs/bisect/bad", "--not", "--glob=refs/bisect/good-*"];
        let left = self.worktree.git(&refs).ok().filter(|said| said.ok);
        let left: Vec<String> = left.map_or_else(Vec::new, |said| said.out.lines().map(str::to_owned).collect());
        match left.first() {
            Some(newest) => format!(
                " after {done} steps: the commit is one of {}, {} the newest of them",
                left.len(),
                newest.get(..SHOWN).unwrap_or(newest)
            ),
            None => format!(" after {done} steps"),
        }
    }

    /// Builds the commit that is checked out, and runs it once.
    fn run(&mut self) -> Result<CommitRun, Failure> {
        let tree = self.worktree.path();
        if let Some(build) = &self.build {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(build).current_dir(&tree).env(NO_BYTECODE, "1").stdin(Stdio::null());
            // Only the build's error messages are shown.
            shell.stdout(Stdio::null());
            let done = shell.output().map_err(|e| Failure::Exec("/bin/sh".into(), e))?;
            if let Some(signal) = interrupted().or_else(|| interrupted_by(done.status)) {
                return Err(Failure::Interrupted(signal));
            }
            if !done.status.success() {
                let text = String::from_utf8_lossy(&done.stderr);
                let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it says nothing");
                let last: String = last.chars().take(TOLD).collect();
                return Ok(CommitRun::Failed(format!("does not build: {last}")));
            }
        }
        self.runs += 1;
        let watched = WatchedRun {
            command: self.command.clone(),
            env: vec![EnvChange::Set(NO_BYTECODE.into(), "1".into())],
            cwd: Some(tree),
            ..WatchedRun::default()
        };
        match watched.run() {
            Ok(recording) => match recording.header.exit {
                // A shell's exit codes for a program that does not exist or can't be executed.
                Some(Exit::Code(126 | 127)) if self.command.first().is_some_and(|c| c == "/bin/sh") => {
                    Ok(CommitRun::Failed("has no such program to run".into()))
                }
                exit => Ok(CommitRun::Ran(Box::new(Run { recording, exit }))),
            },
            Err(Failure::Record(e)) if matches!(e.exit_code(), 126 | 127) => {
                Ok(CommitRun::Failed(format!("can't be run: {e}")))
            }
            Err(e) => Err(e),
        }
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        self.progress.finish_and_clear();
    }
}

/// Returns the signal from the terminal that ended a build.
fn interrupted_by(status: std::process::ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    status.signal().and_then(|signal| interrupted_after(Exit::Signal(signal)))
}

/// Returns the build command, if there is one, and the command to run.
fn commands(args: &BisectArgs) -> (Option<OsString>, Vec<OsString>) {
    let [text] = args.command.as_slice() else { return (args.build.clone(), args.command.clone()) };
    let shell = |text: &OsStr| vec!["/bin/sh".into(), "-c".into(), text.to_owned()];
    if let Some(build) = &args.build {
        return (Some(build.clone()), shell(text));
    }
    match text.to_str().map(shell_text::parts) {
        Some(shell_text::Parts { build: Some(build), run }) => (Some(build.into()), shell(OsStr::new(run))),
        _ => {
            if text.to_str().is_some_and(|t| t.contains("&&") || t.contains(';')) {
                to_stderr(
                    "systoll: building can't be distinguished from running, so both are counted: --build separates them\n",
                );
            }
            (None, shell(text))
        }
    }
}

/// Returns git's guess of the number of later steps: `(roughly 2 steps)`.
fn steps_left(out: &str) -> Option<u64> {
    out.lines().find_map(|line| line.split_once("(roughly ")?.1.split_once(" step")?.0.parse().ok())
}

/// Returns the commit from git's verdict, a line `ID is the first bad commit`.
fn first_bad(out: &str) -> Option<String> {
    let line = out.lines().find(|line| line.ends_with(" is the first bad commit"))?;
    let id = line.split_whitespace().next()?;
    (id.len() >= 40 && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_owned())
}
