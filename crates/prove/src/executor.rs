//! The interface through which programs are run. Tests replace it.

use crate::{Answered, Digest, ProveError};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use systoll_cure::{RunError, Spec, Streams, Usage, run_unwatched};
use systoll_model::{EnvChange, Exit};

/// The destination of a run's standard output and error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Both streams go to /dev/null.
    Discarded,
    /// Both streams are fingerprinted, and this command, if given, examines the result.
    Digested(Option<OsString>),
}

/// Number of bytes of an output that are kept, to show the first difference.
pub(crate) const KEPT: usize = 256 << 10;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The exit of the run, and the resources that it used.
    pub usage: Usage,
    /// Fingerprint of standard output, if it was taken.
    pub stdout: Option<Digest>,
    /// Fingerprint of standard error, if it was taken.
    pub stderr: Option<Digest>,
    /// Fingerprint of the comparing command's output, and its exit, if there is one.
    pub by: Option<(Digest, Exit)>,
    /// The start of standard output and error, if fingerprints were taken.
    pub wrote: [Vec<u8>; 2],
}

/// Runs programs.
pub trait Executor {
    /// Runs `spec` to its end, for at most `limit`.
    ///
    /// # Errors
    /// The program can't be started or takes too long. A program that fails is no error.
    fn run(&mut self, spec: &Spec, output: &Output, limit: Option<Duration>) -> Result<Run, ProveError>;

    /// Returns the counts of the calls that were to be answered in place, over all runs so far.
    fn answered(&self) -> Option<Answered> {
        None
    }

    /// Returns true if runs are watched, on both sides alike: their times include the cost of
    /// watching.
    fn watches(&self) -> bool {
        false
    }
}

/// Runs programs as processes of this box.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// Time that a run may take; no limit if `None`.
    pub limit: Option<Duration>,
    /// A shell command before each run; its failure ends the comparison.
    pub prepare: Option<OsString>,
    /// The program's standard input; empty if `None`.
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

/// The standard streams of a run.
pub(crate) struct Files {
    pub(crate) stdin: File,
    pub(crate) stdout: File,
    pub(crate) stderr: File,
}

impl Processes {
    /// Prepares a run, calls `start`, and examines the output.
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
        // The streams are files, not pipes: a process left behind that holds a stream open must not
        // hold us up.
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

/// Time that the user's command before or after a run may take.
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

/// Runs a shell command of the user's, e.g. to prepare a run; its output is discarded.
///
/// # Errors
/// Fails if the command can't be started, or fails.
pub fn shell(command: &OsString, env: Vec<EnvChange>) -> Result<(), ProveError> {
    let streams = Streams { stdin: Stdio::null(), stdout: Stdio::null(), stderr: Stdio::inherit() };
    match run_unwatched(&shell_spec(command, env), streams, Some(HOOK_LIMIT))?.exit {
        Exit::Code(0) => Ok(()),
        exit => Err(ProveError::Hook { command: command.to_string_lossy().into_owned(), exit }),
    }
}

/// Returns the limit, if the run was ended for taking too long.
pub(crate) fn timed_out(error: &ProveError) -> Option<Duration> {
    match error {
        ProveError::Run(RunError::Timeout { limit, .. }) => Some(*limit),
        _ => None,
    }
}

/// Returns a file's fingerprint, and the start of its contents.
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
    fn a_command_sees_the_files_of_the_run() {
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
