//! Sends lines to the client. A separate thread writes them, so that a client that does not read
//! can't keep the server from ending.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Lines that may wait to be written. If there are more, senders wait too.
const WAITING: usize = 64;
/// Interval between checks for room in the queue.
const LOOK: Duration = Duration::from_millis(5);
/// Time after which a client that takes no line counts as gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// Queue of lines to the thread that writes them.
#[derive(Clone)]
pub(crate) struct Outbox(SyncSender<Vec<u8>>);

/// The client no longer reads.
#[derive(Debug)]
pub(crate) struct Gone;

/// Receiver of the message that the writer has ended.
pub(crate) struct Written(Receiver<()>);

impl Outbox {
    /// Starts a thread that writes lines to `to`.
    ///
    /// # Errors
    /// If the thread can't be started.
    pub(crate) fn new(mut to: impl Write + Send + 'static) -> io::Result<(Self, Written)> {
        let (lines, waiting) = sync_channel::<Vec<u8>>(WAITING);
        let (end, ended) = sync_channel(1);
        thread::Builder::new().name("systoll-say".into()).spawn(move || {
            for line in waiting {
                if to.write_all(&line).and_then(|()| to.flush()).is_err() {
                    break;
                }
            }
            // This fails if nobody waits, because the process is about to end.
            let _ = end.send(());
        })?;
        Ok((Self(lines), Written(ended)))
    }

    /// Sends a line to the writer.
    ///
    /// # Errors
    /// If the client is gone, or has read nothing for a long time.
    pub(crate) fn put(&self, mut line: Vec<u8>) -> Result<(), Gone> {
        let began = Instant::now();
        loop {
            line = match self.0.try_send(line) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(line)) if began.elapsed() < PATIENCE => line,
                Err(_) => return Err(Gone),
            };
            thread::sleep(LOOK);
        }
    }
}

impl Written {
    /// Waits until all lines are written, at most `limit`. The last [`Outbox`] must have been
    /// dropped.
    pub(crate) fn wait(&self, limit: Duration) {
        let _ = self.0.recv_timeout(limit);
    }
}
