//! The trait that every backend implements.

use crate::error::Error;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use systoll_model::{BackendKind, Elision, EnvChange, InPlace, Recording, Spread, Sysno};

/// Limits for the number and the cost of windows ([`systoll_model::Window`]).
#[derive(Clone, Debug)]
pub struct WindowPolicy {
    /// Number of calls that a window contains.
    pub calls: usize,
    /// Largest number of windows kept of each row; the first one and those of the newest octaves stay.
    pub kept_per_row: usize,
    /// Largest number of windows kept over all rows.
    pub kept: usize,
    /// Time that all windows together may cost the observer, beside `share`.
    pub allowance: Duration,
    /// Share of the run's time that windows may cost, added to `allowance`.
    pub share: f64,
    /// Time that unwinding the first stacks of places may take where the kernel samples, and that time as a share of the
    /// run's, added to it.
    pub first_stacks: (Duration, f64),
    /// Bytes read of one argument, at most.
    pub bytes: usize,
    /// True if some windows open where threads receive, to tell requests. What calls read and write is not kept then.
    pub tells_requests: bool,
}

impl Default for WindowPolicy {
    fn default() -> Self {
        Self {
            calls: 32,
            kept_per_row: 8,
            kept: 2_048,
            allowance: Duration::from_millis(20),
            share: 0.01,
            first_stacks: (Duration::from_millis(300), 0.1),
            bytes: 256,
            tells_requests: false,
        }
    }
}

/// Detail in which a run's calls are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closely {
    /// Calls are counted, timed, and sampled in windows.
    #[default]
    All,
    /// Calls are counted and timed by system call, for a table of totals: no contexts, no windows, no time of the
    /// command's own. A backend that can't leave these out watches as usual.
    Totals,
    /// Calls are counted only, by code that could also answer calls in place. A run that answers calls is compared with
    /// a run of this kind. A backend without such code watches as usual.
    CountsOnly,
}

/// A moment of a run that the command's own calls show. Watching ends there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The command's `main` begins. Of a script that is an argument of the command: its interpreter opens it.
    Main,
    /// The command, or a process that it made, writes these bytes to the file that is the command's standard output or
    /// error. They contain no line feed.
    Line(Vec<u8>),
}

/// The way to watch processes, whether they are started or run already.
#[derive(Clone, Debug, Default)]
pub struct HowToWatch {
    /// Calls to answer in place. A backend that can't do this refuses before it starts or enters anything.
    pub elisions: Vec<Elision>,
    /// Detail in which the calls are measured.
    pub closely: Closely,
    /// Limits for the number and the cost of windows.
    pub windows: WindowPolicy,
    /// Duration from which on each single call is kept in [`systoll_model::Recording::longest`], as far as there is
    /// room. If `None`, each backend keeps its usual number of long calls.
    pub longer: Option<Duration>,
    /// True if the clock is read around only some of a row's calls, provided that the backend can estimate the others
    /// from them. Has no effect if [`HowToWatch::longer`] asks for single calls.
    pub sampled_time: bool,
    /// Seed for the random places of windows.
    pub seed: u64,
    /// The moment at which watching ends; `None` if it is shown by nothing that the command calls. A backend that can't
    /// see it refuses before it starts anything.
    pub until: Option<Moment>,
    /// True if signals sent to this process are forwarded to the command that it has started, or end the watching of
    /// running processes. Otherwise they end this process, as they do when nothing is being watched.
    pub forward_signals: bool,
    /// True if this process ends soon after the run. A backend then leaves its memory to be freed by that end,
    /// which takes less time than freeing it piece by piece.
    pub ends_process: bool,
}

/// A command to start, and the way to watch it.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Words of the command: the program first.
    pub command: Vec<OsString>,
    /// Changes to the command's environment.
    pub env: Vec<EnvChange>,
    /// True if the command's standard output and error go to /dev/null instead of ours.
    pub discard_output: bool,
    /// Standard input, output and error of the command; `None` stands for ours. Takes precedence over `discard_output`.
    pub streams: [Option<Arc<File>>; 3],
    /// Working directory of the command; `None` stands for ours.
    pub cwd: Option<PathBuf>,
    /// Time for which the processes that the command leaves behind are watched, once it was told to end by SIGTERM or
    /// SIGINT.
    pub linger: Duration,
    /// Time the command may take to end after SIGTERM was forwarded to it; then it runs on unwatched. `None`: as
    /// much as lets this process end within two seconds in all.
    pub grace: Option<Duration>,
    /// The way to watch the command.
    pub how: HowToWatch,
}

/// Running processes, and the way to watch them.
#[derive(Clone, Debug, Default)]
pub struct Running {
    /// Ids of the processes to watch.
    pub pids: Vec<i32>,
    /// True if all processes of the box are watched, except this one and the kernel's own threads; `pids` is empty then. Only
    /// bpf can do this.
    pub whole_box: bool,
    /// The way to watch the processes.
    pub how: HowToWatch,
    /// Time after which watching ends; if `None`, when all processes have ended, or when this process is told to end.
    pub limit: Option<Duration>,
    /// Number of calls after which watching ends. It may be exceeded a little, because counts are read every tenth of a
    /// second.
    pub calls: Option<u64>,
    /// True if processes that the watched ones make from now on are left out of the recording, and the programs that
    /// those execute are not watched.
    pub no_children: bool,
    /// True if [`Control::order`] says when the calls of [`HowToWatch::elisions`] are answered in place and when they
    /// are made; at first they are made. A process in which they can't be answered is then not entered.
    pub in_turns: bool,
}

/// An order for the next turn, where calls are answered in place in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOrder {
    /// From now on calls are answered in place.
    Answer,
    /// From now on calls are made.
    Make,
    /// Nothing changes; only the totals are wanted.
    Read,
}

/// Sums over the watched processes, from the start of watching up to a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnTotals {
    /// The moment, ns since watching began.
    pub at_ns: u64,
    /// Processor time of all processes, ended ones included, ns.
    pub cpu_ns: u64,
    /// Calls that were made, by system call.
    pub made: BTreeMap<Sysno, u64>,
    /// The calls that may be answered in place.
    pub in_place: Vec<InPlace>,
    /// Programs whose calls are not answered, each with the reason.
    pub unanswered: Vec<String>,
    /// Processes that are watched.
    pub processes: usize,
}

/// The user's side of a run: receives a backend's reports while it watches, and answers its questions.
pub trait Control {
    /// Reports progress now and then: the number of calls counted, the number of processes alive, and true if the
    /// command itself has ended.
    fn progress(&mut self, calls: u64, processes: usize, command_ended: bool);
    /// Returns how often [`Control::snapshot`] is to be called without a request; SIGUSR1 requests one at any time.
    fn every(&self) -> Option<Duration>;
    /// Returns true if the recording so far is wanted now that it is time for one: making it takes time.
    fn wants_snapshot(&mut self) -> bool {
        true
    }
    /// Receives the recording so far.
    fn snapshot(&mut self, recording: Recording);
    /// Returns true if watching is to end now. What still runs is left running, unwatched.
    fn leaves(&self) -> bool {
        false
    }
    /// Reports that the command's process exists and is about to run the command.
    fn begins(&mut self) {}
    /// Reports that [`HowToWatch::until`] was seen: [`Control::leaves`] is called next.
    fn seen(&mut self) {}
    /// Returns the next order where calls are answered in turns ([`Running::in_turns`]). Called a hundred times a
    /// second.
    fn order(&mut self) -> Option<TurnOrder> {
        None
    }
    /// Receives the totals right after an order was carried out.
    fn totals(&mut self, _totals: TurnTotals) {}
}

/// A control that wants nothing.
#[derive(Debug, Default)]
pub struct Quiet;

impl Control for Quiet {
    fn progress(&mut self, _: u64, _: usize, _: bool) {}
    fn every(&self) -> Option<Duration> {
        None
    }
    fn snapshot(&mut self, _: Recording) {}
}

/// A backend's report on its ability to work here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The backend that was probed.
    pub kind: BackendKind,
    /// True if the backend can watch a program that it starts.
    pub can_run: bool,
    /// The attempts that the probe made, each with its result, one line each.
    pub found: Vec<String>,
    /// Things that are missing on this machine, each with the command that would help, if there is one.
    pub missing: Vec<(String, Option<String>)>,
}

/// A way of watching a program.
pub trait Backend {
    /// Returns the backend's kind.
    fn kind(&self) -> BackendKind;

    /// Tests if the backend can work on this machine.
    fn probe(&self) -> Probe;

    /// Measures how much wall time watching adds to the cheapest call, in ns.
    ///
    /// # Errors
    /// If the backend can't work here.
    fn cost(&self) -> Result<Spread, Error>;

    /// Starts `launch`, watches it and all its descendants to their end, and returns the recording. A set-id program
    /// among the descendants is let go unwatched before it could lose its privilege, and is named among the recording's
    /// problems.
    ///
    /// # Errors
    /// If nothing was started, because the program does not exist, is not executable, is set-id or 32-bit, asks for
    /// elisions that this backend can't do, or may not be watched.
    fn run(&mut self, launch: &Launch, control: &mut dyn Control) -> Result<Recording, Error>;

    /// Watches running processes for a while, and leaves them running.
    ///
    /// # Errors
    /// If none of the processes could be entered. In that case none has been changed.
    fn attach(&mut self, _running: &Running, _control: &mut dyn Control) -> Result<Recording, Error> {
        Err(Error::refused(self.kind(), "it watches what it starts, not what runs already".into()))
    }
}
