//! Runs a thread that adds up and judges recordings, so that neither watching nor keys wait for it.

use super::pace::Pace;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use systoll_judge::{Catalogue, Options, judge};
use systoll_model::Recording;
use systoll_top::{Judged, Tally};

/// Number of parts of the time of which judging may take one.
const PARTS: u32 = 150;

/// A snapshot that is ready to be shown.
pub(super) struct Snapshot {
    pub(super) tally: Tally,
    /// The judgement of the snapshot, if it was time for one.
    pub(super) judged: Option<Judged>,
}

/// The recordings that the thread is given.
enum Work {
    SoFar(Recording),
    Last(Recording),
}

/// The handle of the thread.
pub(super) struct Judging {
    work: SyncSender<Work>,
    thread: JoinHandle<()>,
}

impl Judging {
    /// Starts the thread. Returns its handle and the channel of its snapshots.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(super) fn start(catalogue: Catalogue) -> io::Result<(Self, Receiver<Snapshot>)> {
        let (work, recordings) = sync_channel(1);
        let (snapshots, ready) = channel();
        let thread = std::thread::Builder::new().name("systoll-judge".into());
        let thread = thread.spawn(move || judge_all(&recordings, &snapshots, &catalogue))?;
        Ok((Self { work, thread }, ready))
    }

    /// Hands over a recording. While the thread is still at work on others, the recording is left
    /// out: the next one holds all of it.
    pub(super) fn so_far(&self, recording: Recording) {
        let _ = self.work.try_send(Work::SoFar(recording));
    }

    /// Hands over the last recording, if there is one, and waits for the thread's end.
    pub(super) fn end(self, last: Option<&Recording>) {
        if let Some(last) = last {
            // A thread that has ended by a panic has printed a message.
            let _ = self.work.send(Work::Last(last.clone()));
        }
        drop(self.work);
        let _ = self.thread.join();
    }
}

fn judge_all(recordings: &Receiver<Work>, snapshots: &Sender<Snapshot>, catalogue: &Catalogue) {
    let mut pace = Pace::new(Duration::ZERO, PARTS, Instant::now());
    for work in recordings {
        let (recording, is_last) = match work {
            Work::SoFar(recording) => (recording, false),
            Work::Last(recording) => (recording, true),
        };
        let tally = Tally::of(&recording);
        let judged = (is_last || pace.begin(Instant::now())).then(|| {
            let judgement = judge(&recording, catalogue, &Options::default());
            Judged::new(recording, judgement)
        });
        pace.end();
        if snapshots.send(Snapshot { tally, judged }).is_err() {
            return;
        }
    }
}
