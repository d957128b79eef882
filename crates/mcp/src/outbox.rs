//! Lines on their way to the client. A thread of its own writes them, so that a client that does not
//! read can't keep the server from ending.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Lines that wait to be written before those who have more must wait too.
const WAITING: usize = 64;
/// How often it is looked whether there is room again.
const LOOK: Duration = Duration::from_millis(5);
/// How long a client may take no line before it is taken to be gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where lines go.
#[derive(Clone)]
pub(crate) struct Outbox(SyncSender<Vec<u8>>);

/// The client reads no more.
#[derive(Debug)]
pub(crate) struct Gone;

/// The end of the writing, to be waited for.
pub(crate) struct Written(Receiver<()>);

impl Outbox {
    /// Begins to write to `to`.
    ///
    /// # Errors
    /// Where there can be no thread for it.
    pub(crate) fn new(mut to: impl Write + Send + 'static) -> io::Result<(Self, Written)> {
        let (lines, waiting) = sync_channel::<Vec<u8>>(WAITING);
        let (end, ended) = sync_channel(1);
        thread::Builder::new().name("systoll-say".into()).spawn(move || {
            for line in waiting {
                if to.write_all(&line).and_then(|()| to.flush()).is_err() {
                    break;
                }
            }
            // No thread waits where the process ends at once.
            let _ = end.send(());
        })?;
        Ok((Self(lines), Written(ended)))
    }

    /// Hands a line to the writer.
    ///
    /// # Errors
    /// Where the client is gone, or reads nothing for a long time.
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
    /// Waits until all is written that was handed over, no longer than `limit`. The last [`Outbox`] has to
    /// be dropped before.
    pub(crate) fn wait(&self, limit: Duration) {
        let _ = self.0.recv_timeout(limit);
    }
}
