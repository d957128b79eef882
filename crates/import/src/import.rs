//! Reads files of a trace, one after the other.

use crate::error::ImportError;
use crate::format::{Format, Reader};
use crate::input::Lines;
use crate::notes::shown;
use crate::recording::recording;
use crate::trace::Trace;
use std::io::BufRead;
use systoll_model::Recording;

/// Lines that are kept until one tells whose they are, and bytes of them.
const UNDECIDED: (usize, usize) = (2_000, 4 << 20);

/// A trace that is being read.
pub struct Import {
    trace: Trace,
    seed: u64,
    formats: Vec<Format>,
}

impl Import {
    /// Nothing read yet. `seed` decides at which places of long traces windows open: the same seed gives the same
    /// recording.
    pub fn new(seed: u64) -> Self {
        Self { trace: Trace::new(seed), seed, formats: Vec::new() }
    }

    /// Reads a file of the trace to its end. Several files are one trace, as `strace -ff` writes it: each thread's own,
    /// its id at the end of `name`, which says nothing else.
    ///
    /// # Errors
    /// That the file can't be read, is empty, or is no trace.
    pub fn read(&mut self, name: &str, reader: impl BufRead) -> Result<(), ImportError> {
        let mut lines = Lines::new(reader);
        let mut undecided: Vec<Vec<u8>> = Vec::new();
        let (mut bytes, mut whole) = (0, true);
        let mut known: Option<Reader> = None;
        while let Some(line) = lines.next()? {
            whole = line.whole;
            if let Some(reader) = &mut known {
                reader.line(&mut self.trace, line.text);
                continue;
            }
            let format = Format::of_line(line.text);
            if format.is_none() {
                bytes += line.text.len();
                undecided.push(line.text.to_vec());
                if undecided.len() >= UNDECIDED.0 || bytes >= UNDECIDED.1 {
                    break;
                }
                continue;
            }
            let Some(format) = format else { continue };
            let mut reader = Reader::new(format, tid_of(name));
            self.formats.push(format);
            undecided.drain(..).for_each(|line| reader.line(&mut self.trace, &line));
            reader.line(&mut self.trace, line.text);
            known = Some(reader);
        }
        match known {
            Some(reader) => reader.finish(&mut self.trace, whole),
            None => {
                let first = undecided.iter().find(|line| !line.trim_ascii().is_empty()).ok_or(ImportError::Empty)?;
                return Err(ImportError::NoTrace { first: shown(first) });
            }
        }
        Ok(())
    }

    /// The formats of the files read, in order.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// The recording. It has no prices: see [`crate::price`].
    ///
    /// # Errors
    /// That nothing was read that is a call.
    pub fn finish(self) -> Result<Recording, ImportError> {
        if self.trace.notes.found_nothing() {
            let first = self.trace.notes.first_unknown().map(str::to_owned);
            return Err(first.map_or(ImportError::Empty, |first| ImportError::NoTrace { first }));
        }
        Ok(recording(self.trace, self.seed))
    }
}

/// The thread whose own file it is: `trace.4882`.
fn tid_of(name: &str) -> u32 {
    name.rsplit_once('.').and_then(|(_, tid)| tid.parse().ok()).unwrap_or(0)
}
