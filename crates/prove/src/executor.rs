//! How programs are run: the seam that lets tests do without.

use crate::{Digest, ProveError};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::Stdio;
use std::time::Duration;
use systoll_cure::{Spec, Usage, run_unwatched};

/// What becomes of a run's standard output and error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nobody reads it: /dev/null.
    Discarded,
    /// Kept for comparison.
    Digested,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How it ended and what it used.
    pub usage: Usage,
    /// Fingerprint of standard output, where it was digested.
    pub stdout: Option<Digest>,
    /// Fingerprint of standard error, where it was digested.
    pub stderr: Option<Digest>,
}

/// Whoever runs programs.
pub trait Executor {
    /// Runs `spec` to its end.
    ///
    /// # Errors
    /// Where it can't be started or takes too long. A program that fails is no error.
    fn run(&mut self, spec: &Spec, output: Output) -> Result<Run, ProveError>;
}

/// Runs programs as processes of this box, standard input empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Processes {
    /// How long one run may take; for ever where `None`.
    pub limit: Option<Duration>,
}

impl Executor for Processes {
    fn run(&mut self, spec: &Spec, output: Output) -> Result<Run, ProveError> {
        if output == Output::Discarded {
            let usage = run_unwatched(spec, Stdio::null(), Stdio::null(), self.limit)?;
            return Ok(Run { usage, stdout: None, stderr: None });
        }
        // Files, not pipes: a process left behind that holds the stream open must not hold us up.
        let keep = || tempfile::tempfile().map_err(ProveError::Output);
        let (out, err) = (keep()?, keep()?);
        let stream = |file: &File| file.try_clone().map(Stdio::from).map_err(ProveError::Output);
        let usage = run_unwatched(spec, stream(&out)?, stream(&err)?, self.limit)?;
        let digest = |file| digest(file).map(Some).map_err(ProveError::Output);
        Ok(Run { usage, stdout: digest(out)?, stderr: digest(err)? })
    }
}

fn digest(mut file: File) -> io::Result<Digest> {
    file.rewind()?;
    let mut digest = Digest::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(digest),
            Ok(n) => digest.update(buffer.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::Exit;

    #[test]
    fn both_streams_are_kept_apart() {
        let spec = Spec::new("/bin/sh").arg("-c").arg("echo out; echo err >&2; exit 4");
        let run = Processes::default().run(&spec, Output::Digested).unwrap();
        assert_eq!(run.usage.exit, Exit::Code(4));
        assert_eq!(run.stdout, Some(Digest::of(b"out\n")));
        assert_eq!(run.stderr, Some(Digest::of(b"err\n")));
        let run = Processes::default().run(&spec, Output::Discarded).unwrap();
        assert_eq!((run.stdout, run.stderr), (None, None));
    }
}
