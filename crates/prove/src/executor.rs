//! How programs are run: the seam that lets tests do without.

use crate::{Answered, Digest, ProveError};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use systoll_cure::{RunError, Spec, Streams, Usage, run_unwatched};
use systoll_model::{EnvChange, Exit};

/// What becomes of a run's standard output and error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// It is not read: /dev/null.
    Discarded,
    /// Kept for comparison; and what this command then says of it, where one is given.
    Digested(Option<OsString>),
}

/// What is kept of an output, to show where two differ, bytes.
pub(crate) const KEPT: usize = 256 << 10;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// How it ended and what it used.
    pub usage: Usage,
    /// Fingerprint of standard output, where it was digested.
    pub stdout: Option<Digest>,
    /// Fingerprint of standard error, where it was digested.
    pub stderr: Option<Digest>,
    /// Fingerprint of what the comparing command said, and how it ended, where there is one.
    pub by: Option<(Digest, Exit)>,
    /// The beginnings of standard output and error, where they were digested.
    pub wrote: [Vec<u8>; 2],
}

/// What runs programs.
pub trait Executor {
    /// Runs `spec` to its end, for no longer than `limit`.
    ///
    /// # Errors
    /// Where it can't be started or takes too long. A program that fails is no error.
    fn run(&mut self, spec: &Spec, output: &Output, limit: Option<Duration>) -> Result<Run, ProveError>;

    /// What became of calls that were to be answered in place, over all runs so far that had any to be.
    fn answered(&self) -> Option<Answered> {
        None
    }

    /// Whether runs are watched, both sides' alike: their times hold what watching costs.
    fn watches(&self) -> bool {
        false
    }
}

/// Runs programs as processes of this box.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// How long one run may take; for ever where `None`.
    pub limit: Option<Duration>,
    /// A shell command before each run; one that fails ends the comparison.
    pub prepare: Option<OsString>,
    /// What the program reads from standard input; nothing where `None`.
    pub input: Option<PathBuf>,
}

impl Processes {
    fn stdin(&self) -> Result<File, ProveError> {
        let path = self.input.as_deref().unwrap_or(Path::new("/dev/null"));
        File::open(path).map_err(|source| ProveError::Input { path: path.to_owned(), source })
    }

    pub(crate) fn shortest(&self, limit: Option<Duration>) -> Option<Duration> {
        self.limit.into_iter().chain(limit).min()
    }
}

/// Where a run's streams come from and go to.
pub(crate) struct Files {
    pub(crate) stdin: File,
    pub(crate) stdout: File,
    pub(crate) stderr: File,
}

impl Processes {
    /// Prepares, has `start` run the program, and looks at what it wrote.
    pub(crate) fn around(
        &self,
        output: &Output,
        start: impl FnOnce(Files) -> Result<Usage, ProveError>,
    ) -> Result<Run, ProveError> {
        if let Some(prepare) = &self.prepare {
            shell(prepare, Vec::new())?;
        }
        let Output::Digested(by) = output else {
            let null = || OpenOptions::new().write(true).open("/dev/null").map_err(ProveError::Output);
            let usage = start(Files { stdin: self.stdin()?, stdout: null()?, stderr: null()? })?;
            return Ok(Run { usage, stdout: None, stderr: None, by: None, wrote: Default::default() });
        };
        // Files, not pipes: a process left behind that holds the stream open must not hold us up.
        let keep = || systoll_cure::Temporary::new().map_err(ProveError::Output);
        let (out, err) = (keep()?, keep()?);
        let stream = |file: &File| file.try_clone().map_err(ProveError::Output);
        let usage =
            start(Files { stdin: self.stdin()?, stdout: stream(out.as_file())?, stderr: stream(err.as_file())? })?;
        let by = by.as_ref().map(|by| {
            let set = |name: &str, value: OsString| EnvChange::Set(name.into(), value);
            let exit = match usage.exit {
                Exit::Code(code) => code.to_string(),
                Exit::Signal(signal) => (128 + signal).to_string(),
            };
            let env = vec![
                set("SYSTOLL_STDOUT", out.path().into()),
                set("SYSTOLL_STDERR", err.path().into()),
                set("SYSTOLL_EXIT", exit.into()),
            ];
            said_by(by, env)
        });
        let looked_at = |mut file: File| digest(&mut file).map_err(ProveError::Output);
        let (out, err) = (stream(out.as_file())?, stream(err.as_file())?);
        let ((stdout, out), (stderr, err)) = (looked_at(out)?, looked_at(err)?);
        Ok(Run { usage, stdout: Some(stdout), stderr: Some(stderr), by: by.transpose()?, wrote: [out, err] })
    }
}

impl Executor for Processes {
    fn run(&mut self, spec: &Spec, output: &Output, limit: Option<Duration>) -> Result<Run, ProveError> {
        let limit = self.shortest(limit);
        self.around(output, |files| {
            let Files { stdin, stdout, stderr } = files;
            let streams = Streams { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() };
            Ok(run_unwatched(spec, streams, limit)?)
        })
    }
}

/// How long a command of the user's around the runs may take.
const HOOK_LIMIT: Duration = Duration::from_secs(600);

fn shell_spec(command: &OsString, env: Vec<EnvChange>) -> Spec {
    Spec { env, ..Spec::new("/bin/sh").arg("-c").arg(command) }
}

fn said_by(command: &OsString, env: Vec<EnvChange>) -> Result<(Digest, Exit), ProveError> {
    let mut out = tempfile::tempfile().map_err(ProveError::Output)?;
    let stdout = out.try_clone().map(Stdio::from).map_err(ProveError::Output)?;
    let streams = Streams { stdin: Stdio::null(), stdout, stderr: Stdio::null() };
    let usage = run_unwatched(&shell_spec(command, env), streams, Some(HOOK_LIMIT))?;
    Ok((digest(&mut out).map_err(ProveError::Output)?.0, usage.exit))
}

/// Runs a shell command of the user's, e.g. to prepare a run; what it prints goes nowhere.
///
/// # Errors
/// Where it can't be started, or fails.
pub fn shell(command: &OsString, env: Vec<EnvChange>) -> Result<(), ProveError> {
    let streams = Streams { stdin: Stdio::null(), stdout: Stdio::null(), stderr: Stdio::inherit() };
    match run_unwatched(&shell_spec(command, env), streams, Some(HOOK_LIMIT))?.exit {
        Exit::Code(0) => Ok(()),
        exit => Err(ProveError::Hook { command: command.to_string_lossy().into_owned(), exit }),
    }
}

/// Whether a run was stopped for taking too long.
pub(crate) fn timed_out(error: &ProveError) -> Option<Duration> {
    match error {
        ProveError::Run(RunError::Timeout { limit, .. }) => Some(*limit),
        _ => None,
    }
}

/// A file's fingerprint, and its beginning.
fn digest(file: &mut File) -> io::Result<(Digest, Vec<u8>)> {
    file.rewind()?;
    let (mut digest, mut kept) = (Digest::default(), Vec::new());
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((digest, kept)),
            Ok(n) => {
                let piece = buffer.get(..n).unwrap_or_default();
                digest.update(piece);
                kept.extend(piece.iter().take(KEPT - kept.len()));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Spec {
        Spec::new("/bin/sh").arg("-c").arg(script)
    }

    #[test]
    fn both_streams_are_kept_apart() {
        let spec = sh("echo out; echo err >&2; exit 4");
        let run = Processes::default().run(&spec, &Output::Digested(None), None).unwrap();
        assert_eq!(run.usage.exit, Exit::Code(4));
        assert_eq!(run.stdout, Some(Digest::of(b"out\n")));
        assert_eq!(run.stderr, Some(Digest::of(b"err\n")));
        let run = Processes::default().run(&spec, &Output::Discarded, None).unwrap();
        assert_eq!((run.stdout, run.stderr, run.by), (None, None, None));
    }

    #[test]
    fn a_command_sees_what_the_run_left() {
        let by = Output::Digested(Some("cat $SYSTOLL_STDOUT $SYSTOLL_STDERR; exit $SYSTOLL_EXIT".into()));
        let run = Processes::default().run(&sh("echo out; echo err >&2; exit 3"), &by, None).unwrap();
        assert_eq!(run.by, Some((Digest::of(b"out\nerr\n"), Exit::Code(3))));
    }

    #[test]
    fn runs_are_prepared_and_fed() {
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("input");
        std::fs::write(&input, "fed").unwrap();
        let made = dir.path().join("made");
        let prepare = format!("echo once >> {}", made.display());
        let mut processes = Processes { prepare: Some(prepare.into()), input: Some(input), limit: None };
        for _ in 0..2 {
            let run = processes.run(&sh("cat"), &Output::Digested(None), None).unwrap();
            assert_eq!(run.stdout, Some(Digest::of(b"fed")));
        }
        assert_eq!(std::fs::read_to_string(made).unwrap(), "once\nonce\n");
        processes.prepare = Some("exit 7".into());
        let failed = processes.run(&sh("true"), &Output::Discarded, None);
        assert!(matches!(failed, Err(ProveError::Hook { exit: Exit::Code(7), .. })));
    }
}
