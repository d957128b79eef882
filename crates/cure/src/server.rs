//! Runs servers: programs that run until they are told to end.

use crate::tree::{kill_tree, signal};
use crate::unwatched::{ends_within, usage_of, wait};
use crate::{RunError, Spec, Streams, Usage};
use std::process::Child;
use std::time::{Duration, Instant};
use systoll_model::Exit;

/// A server that was started and has not been waited for. Dropping it kills it and everything it
/// started.
#[derive(Debug)]
pub struct Running {
    child: Option<Child>,
    program: String,
    started: Instant,
}

impl Running {
    /// Starts the server.
    ///
    /// # Errors
    ///
    /// The server can't be started.
    pub fn start(spec: &Spec, streams: Streams) -> Result<Self, RunError> {
        let program = spec.program.display().to_string();
        let mut command = spec.to_command();
        command.stdin(streams.stdin).stdout(streams.stdout).stderr(streams.stderr);
        let started = Instant::now();
        match command.spawn() {
            Ok(child) => Ok(Self { child: Some(child), program, started }),
            Err(source) => Err(RunError::Start { program, source }),
        }
    }

    /// Waits up to `limit` for the server to end. Returns its exit and the resources it used, if it
    /// has ended.
    ///
    /// # Errors
    ///
    /// If the server can't be waited for.
    pub fn ended_within(&mut self, limit: Duration) -> Result<Option<Usage>, RunError> {
        let Some(child) = &self.child else { return Ok(None) };
        let failed = |source| RunError::Start { program: self.program.clone(), source };
        if !ends_within(child, limit).map_err(failed)? {
            return Ok(None);
        }
        let (status, usage) = wait(child).map_err(failed)?;
        self.child = None;
        Ok(Some(usage_of(status, &usage, self.started)))
    }

    /// Tells the server to end (SIGTERM) and waits for it. If that takes longer than `limit`, kills
    /// it and everything it started. Returns the resources it used, and true if it ended by itself.
    ///
    /// # Errors
    ///
    /// If the server can't be waited for.
    pub fn stop(mut self, limit: Duration) -> Result<(Usage, bool), RunError> {
        let Some(child) = &self.child else {
            let gone =
                Usage { exit: Exit::Code(0), wall_ns: 0, user_ns: 0, sys_ns: 0, max_rss: 0, switches: 0, faults: 0 };
            return Ok((gone, true));
        };
        let pid = child.id();
        signal(pid, libc::SIGTERM);
        if let Some(usage) = self.ended_within(limit)? {
            return Ok((usage, true));
        }
        kill_tree(pid);
        // A killed process ends as soon as the kernel lets it.
        match self.ended_within(Duration::from_secs(60))? {
            Some(usage) => Ok((usage, false)),
            None => Err(RunError::Timeout { program: self.program.clone(), limit }),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &self.child {
            kill_tree(child.id());
            let _ = wait(child);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Running {
        Running::start(&Spec::new("/bin/sh").arg("-c").arg(script), Streams::null()).unwrap()
    }

    #[test]
    fn a_server_ends_when_told_and_one_that_will_not_is_killed() {
        let mut willing = sh("exec sleep 100");
        assert!(willing.ended_within(Duration::from_millis(1)).unwrap().is_none());
        let (usage, by_itself) = willing.stop(Duration::from_secs(60)).unwrap();
        assert_eq!((usage.exit, by_itself), (Exit::Signal(libc::SIGTERM), true));
        let file = tempfile::NamedTempFile::new().unwrap();
        let stubborn = sh(&format!("trap '' TERM; echo x > {}; while :; do sleep 1; done", file.path().display()));
        while std::fs::read(file.path()).unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (usage, by_itself) = stubborn.stop(Duration::from_millis(50)).unwrap();
        assert_eq!((usage.exit, by_itself), (Exit::Signal(libc::SIGKILL), false));
    }

    #[test]
    fn one_that_dies_is_seen_to() {
        let mut dying = sh("exit 7");
        assert_eq!(dying.ended_within(Duration::from_secs(60)).unwrap().map(|u| u.exit), Some(Exit::Code(7)));
        assert!(dying.ended_within(Duration::ZERO).unwrap().is_none());
    }
}
