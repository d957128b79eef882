//! Reads a watched command's stream by a pipe, wherever the output goes. A program asks what it
//! writes to and buffers accordingly: its calls differ between a terminal, a file and a pipe.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Number of bytes at the end of a command's output that are kept.
const KEPT: usize = 1 << 20;
/// Time for which the pipe is read after the command has ended: another process that it left behind
/// may still hold it.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// Time between checks whether everything was read.
const LOOK: Duration = Duration::from_millis(2);

/// A pipe, and the thread that reads it.
pub(crate) struct DrainPipe {
    writer: Arc<File>,
    end: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl DrainPipe {
    /// Makes the pipe. With `shown`, its content also goes to standard error.
    pub(crate) fn new(shown: bool) -> io::Result<Self> {
        let (mut reader, writer) = io::pipe()?;
        let end = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&end);
        let reader = thread::Builder::new().name("systoll-drain".into()).spawn(move || {
            let mut bytes = vec![0; 64 << 10];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                let new = &bytes[..n];
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(new);
                let over = kept.len().saturating_sub(KEPT);
                kept.drain(..over);
                drop(kept);
                if shown {
                    // A reader that went away is no reason to stop the command.
                    let _ = io::stderr().lock().write_all(new);
                }
            }
        })?;
        Ok(Self { writer: Arc::new(File::from(OwnedFd::from(writer))), end, reader })
    }

    /// Returns the end that the command writes to.
    pub(crate) fn writer(&self) -> Arc<File> {
        Arc::clone(&self.writer)
    }

    /// Returns the end of the output. The command must have ended, and no other part of this
    /// process may hold the pipe.
    pub(crate) fn text(self) -> String {
        drop(self.writer);
        let end = Instant::now() + LAST_WORDS;
        while !self.reader.is_finished() && Instant::now() < end {
            thread::sleep(LOOK);
        }
        let kept = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept.iter().copied().collect::<Vec<u8>>()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_output_is_kept_while_the_pipe_stays_open() {
        let drained = DrainPipe::new(false).unwrap();
        let held = drained.writer();
        (&*held).write_all(&vec![b'x'; KEPT]).unwrap();
        (&*held).write_all(b"rows: 7\n").unwrap();
        let text = drained.text();
        assert!(text.len() == KEPT && text.ends_with("xrows: 7\n"));
        drop(held);
    }
}
