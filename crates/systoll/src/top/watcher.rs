//! Takes recordings so far from the backend, and tells it when to leave.

use super::judging::{Judging, Snapshot};
use super::pace::Pace;
use super::viewer::{Shared, Viewer, Viewing};
use crate::failure::Failure;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use systoll_judge::Catalogue;
use systoll_model::{Exit, Recording};
use systoll_record::Control;

/// Longest time between two checks if a snapshot is due; also the time to the first snapshot.
const LOOK: Duration = Duration::from_millis(250);
/// Time by which a snapshot may be taken before it is due.
const EARLY: Duration = Duration::from_millis(30);
/// Number of parts of the time of which snapshots may take one.
const PARTS: u32 = 150;

/// The stage of the threads that judge and show.
enum Stage {
    /// The threads are not started: the program to watch is started by a process of one thread.
    Before(Box<(Viewer, Catalogue)>),
    /// The threads are at work.
    Running(Judging, Viewing),
    /// The threads could not be started, or have ended.
    Over(Option<io::Error>),
}

/// Controls the backend.
pub(super) struct Watcher {
    every: Duration,
    window: Option<Duration>,
    began: Instant,
    pace: Pace,
    shared: Arc<Shared>,
    stage: Stage,
}

impl Watcher {
    pub(super) fn new(every: Duration, window: Option<Duration>, viewer: Viewer, catalogue: Catalogue) -> Self {
        let began = Instant::now();
        let first = if viewer.is_impatient() { every.min(LOOK) } else { every };
        Self {
            every,
            window,
            began,
            pace: Pace::new(every, PARTS, began + first),
            shared: Arc::clone(&viewer.shared),
            stage: Stage::Before(Box::new((viewer, catalogue))),
        }
    }

    /// Starts the threads, if they are not started yet.
    fn start(&mut self) {
        let stage = match std::mem::replace(&mut self.stage, Stage::Over(None)) {
            Stage::Before(both) => {
                let (viewer, catalogue) = *both;
                started(viewer, catalogue).map_or_else(|e| Stage::Over(Some(e)), |(j, v)| Stage::Running(j, v))
            }
            other => other,
        };
        self.stage = stage;
    }

    /// Shows the last recording, and waits until the user leaves. Without a recording, nothing
    /// could be watched.
    ///
    /// # Errors
    ///
    /// The terminal failed, or no thread could be started.
    pub(super) fn end(mut self, last: Option<&Recording>) -> Result<(), Failure> {
        if last.is_none() && matches!(self.stage, Stage::Before(_)) {
            return Ok(());
        }
        let stays = last.is_some_and(ended_by_itself) && !self.shared.leaves();
        // The run's own handling of signals is over.
        systoll_record::let_signals_through();
        let _ = systoll_cure::catch_interrupts();
        self.start();
        match self.stage {
            Stage::Running(judging, viewing) => {
                judging.end(last);
                self.shared.end(stays);
                viewing.join()
            }
            Stage::Over(Some(e)) => Err(Failure::Terminal(e)),
            Stage::Over(None) | Stage::Before(_) => Ok(()),
        }
    }
}

fn started(viewer: Viewer, catalogue: Catalogue) -> io::Result<(Judging, Viewing)> {
    let (judging, snapshots): (Judging, Receiver<Snapshot>) = Judging::start(catalogue)?;
    Ok((judging, viewer.start(snapshots)?))
}

/// Returns true if the watched processes have ended, and not by a signal that tells them to.
fn ended_by_itself(recording: &Recording) -> bool {
    let header = &recording.header;
    let is_told = |signal| [nix::libc::SIGINT, nix::libc::SIGTERM, nix::libc::SIGHUP].contains(&signal);
    match (header.attached, header.exit) {
        (Some(attached), _) => !attached.left_running,
        (None, Some(Exit::Signal(signal))) => !is_told(signal),
        (None, exit) => exit.is_some(),
    }
}

impl Control for Watcher {
    fn progress(&mut self, _: u64, _: usize, _: bool) {
        self.start();
    }

    fn every(&self) -> Option<Duration> {
        Some(self.every.min(LOOK))
    }

    fn wants_snapshot(&mut self) -> bool {
        self.start();
        self.pace.begin(Instant::now() + EARLY)
    }

    fn snapshot(&mut self, recording: Recording) {
        self.pace.end();
        if let Stage::Running(judging, _) = &self.stage {
            judging.so_far(recording);
        }
    }

    fn leaves(&self) -> bool {
        let failed = matches!(self.stage, Stage::Over(_));
        failed || self.shared.leaves() || self.window.is_some_and(|window| self.began.elapsed() >= window)
    }
}
