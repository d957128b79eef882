//! Watches runs for other commands, without showing anything.

use crate::failure::Failure;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use systoll_cure::{interrupted, interrupted_after};
use systoll_model::{EnvChange, Recording};
use systoll_record::{HowToWatch, Launch, Quiet, automatic, run_with_first};

/// A command to watch, and the destination of its output.
#[derive(Clone, Default)]
pub(crate) struct WatchedRun {
    pub(crate) command: Vec<OsString>,
    pub(crate) env: Vec<EnvChange>,
    pub(crate) cwd: Option<PathBuf>,
    /// Destination of standard output; discarded if `None`.
    pub(crate) output: Option<Arc<File>>,
    pub(crate) errors: Option<Arc<File>>,
    pub(crate) seed: u64,
}

impl WatchedRun {
    /// Watches one run to its end. The command's standard input is empty.
    pub(crate) fn run(&self) -> Result<Recording, Failure> {
        let null = |what: &'static str| {
            let path = std::path::Path::new("/dev/null");
            let opened = if what == "read" { File::open(path) } else { File::options().write(true).open(path) };
            opened.map(Arc::new).map_err(|e| Failure::file(what, path, e))
        };
        let sink = |to: &Option<Arc<File>>| to.clone().map_or_else(|| null("write"), Ok);
        let launch = Launch {
            command: self.command.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            streams: [Some(null("read")?), Some(sink(&self.output)?), Some(sink(&self.errors)?)],
            linger: Duration::from_secs(1),
            how: HowToWatch { seed: self.seed, ..HowToWatch::default() },
            ..Launch::default()
        };
        let watched = run_with_first(&mut automatic(), &launch, &mut Quiet);
        let exit = watched.as_ref().ok().and_then(|r| r.header.exit);
        if let Some(signal) = exit.map_or_else(interrupted, interrupted_after) {
            return Err(Failure::Interrupted(signal));
        }
        Ok(watched?)
    }
}
