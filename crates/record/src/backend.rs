//! The trait every backend stands behind.

use crate::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use systoll_model::{BackendKind, Elision, EnvChange, Recording, Spread};

/// How windows are opened; see [`systoll_model::Window`].
#[derive(Clone, Debug)]
pub struct WindowPolicy {
    /// Calls in a window.
    pub calls: usize,
    /// Windows kept of each row: the first, the newest, two of the newest octave.
    pub kept_per_row: usize,
    /// Windows kept in all.
    pub kept: usize,
    /// What all windows together may cost beside `share`, of the observer's time.
    pub allowance: Duration,
    /// The share of the run's time windows may cost on top.
    pub share: f64,
    /// Bytes read of one argument, at most.
    pub bytes: usize,
}

impl Default for WindowPolicy {
    fn default() -> Self {
        Self { calls: 32, kept_per_row: 8, kept: 2_048, allowance: Duration::from_millis(20), share: 0.01, bytes: 256 }
    }
}

/// How closely calls are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closely {
    /// Counted, timed, and looked at in windows.
    #[default]
    All,
    /// Counted only, by code that can answer calls in place whether it is asked to or not: for
    /// comparing a run in which it does with one in which it does not. A backend that has no such
    /// code watches as ever.
    CountsOnly,
}

/// What to start, and how to watch it.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The command: program first.
    pub command: Vec<OsString>,
    /// Changes to its environment.
    pub env: Vec<EnvChange>,
    /// Its standard output and error go to /dev/null instead of ours.
    pub discard_output: bool,
    /// Its standard input, output and error, each ours where `None`. Goes before `discard_output`.
    pub streams: [Option<Arc<File>>; 3],
    /// Its working directory, ours if none.
    pub cwd: Option<PathBuf>,
    /// Calls to be answered in place; a backend that can't refuses before it starts anything.
    pub elisions: Vec<Elision>,
    /// How closely calls are watched.
    pub closely: Closely,
    /// How windows are opened.
    pub windows: WindowPolicy,
    /// Keep every call that takes so long one by one, among [`systoll_model::Recording::longest`], as far as there
    /// is room. `None`: as each backend does unasked.
    pub longer: Option<Duration>,
    /// Read the clock around some of the calls that are alike, where a backend can tell the rest by them. Not where
    /// [`Launch::longer`] asks for single calls.
    pub sampled_time: bool,
    /// Seed of the windows' random places.
    pub seed: u64,
    /// How long processes the command leaves behind are watched after its own end once it has
    /// been told to end (SIGTERM, SIGINT).
    pub linger: Duration,
    /// Whether this process stands for the command: signals sent to it are the command's. Else they
    /// end this process, as they do without a run.
    pub forward_signals: bool,
    /// How long the command may take to end once SIGTERM was forwarded to it; then it runs on unwatched.
    /// `None`: as long as leaves this process two seconds in all.
    pub grace: Option<Duration>,
    /// Whether this process ends soon after the run: what a backend has gathered is then given back by that, which takes
    /// less than to give it back piece by piece.
    pub ends_process: bool,
}

/// Processes that run, and how to watch them.
#[derive(Clone, Debug, Default)]
pub struct Running {
    /// The processes.
    pub pids: Vec<i32>,
    /// How to watch them: all of a launch that is not about starting.
    pub how: Launch,
    /// For how long; `None`: until all have ended, or this process is told to end.
    pub limit: Option<Duration>,
    /// Until so many calls have been counted, or a few more: counts are looked at every tenth of a second.
    pub calls: Option<u64>,
}

/// What a backend tells while it watches, and asks of its caller.
pub trait Control {
    /// Called now and then with the number of calls counted, of processes alive, and whether
    /// the command itself has ended.
    fn progress(&mut self, calls: u64, processes: usize, command_ended: bool);
    /// How often [`Control::snapshot`] is wanted unasked; SIGUSR1 asks for one at any time.
    fn every(&self) -> Option<Duration>;
    /// The recording so far.
    fn snapshot(&mut self, recording: &Recording);
}

/// A control that wants nothing.
#[derive(Debug, Default)]
pub struct Quiet;

impl Control for Quiet {
    fn progress(&mut self, _: u64, _: usize, _: bool) {}
    fn every(&self) -> Option<Duration> {
        None
    }
    fn snapshot(&mut self, _: &Recording) {}
}

/// Whether a backend can serve here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Which backend.
    pub kind: BackendKind,
    /// Whether it can watch a program it starts.
    pub can_run: bool,
    /// What was tried and what came of it, one line each.
    pub found: Vec<String>,
    /// What is missing, with the one command that would help where there is one.
    pub missing: Vec<(String, Option<String>)>,
}

/// One way of watching a program.
pub trait Backend {
    /// Which one.
    fn kind(&self) -> BackendKind;

    /// Finds out by doing whether it can serve here.
    fn probe(&self) -> Probe;

    /// What being watched adds to the cheapest call, in ns of wall time.
    ///
    /// # Errors
    /// When it can't serve here.
    fn cost(&self) -> Result<Spread, Error>;

    /// Starts `launch`, watches it and everything it starts to the end, and returns what was seen.
    /// Set-id programs deeper in the tree are let go unwatched before they could lose their
    /// privilege, and are named among the recording's problems.
    ///
    /// # Errors
    /// Where nothing was started: no such program, not executable, a set-id or 32-bit program,
    /// elisions it can't do, no permission to watch.
    fn run(&mut self, launch: &Launch, control: &mut dyn Control) -> Result<Recording, Error>;

    /// Watches processes that run, for a while, and leaves them running as they were.
    ///
    /// # Errors
    /// Where none of them could be entered: nothing was done to any then.
    fn attach(&mut self, _running: &Running, _control: &mut dyn Control) -> Result<Recording, Error> {
        Err(Error::refused(self.kind(), "it watches what it starts, not what runs already".into()))
    }
}
