//! Reads files of a trace, one after the other.

use crate::error::ImportError;
use crate::format::{Format, Reader};
use crate::input::Lines;
use crate::notes::shown;
use crate::perfetto;
use crate::recording::recording;
use crate::trace::Trace;
use std::io::{self, BufRead, Read};
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
    pub fn read(&mut self, name: &str, mut reader: impl BufRead) -> Result<(), ImportError> {
        if let Some(kept) = kept_as(reader.fill_buf()?) {
            return Err(kept);
        }
        let head = perfetto::head(&mut reader)?;
        if head.is_empty() {
            return self.read_lines(name, reader);
        }
        let all = io::Cursor::new(&head).chain(reader);
        if perfetto::recognise(&head) {
            self.formats.push(Format::Perfetto);
            return Ok(perfetto::read(&mut self.trace, all)?);
        }
        self.read_lines(name, all)
    }

    fn read_lines(&mut self, name: &str, reader: impl BufRead) -> Result<(), ImportError> {
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
            let Some((format, mut reader)) = format.and_then(|f| Some((f, Reader::new(f, tid_of(name))?))) else {
                bytes += line.text.len();
                undecided.push(line.text.to_vec());
                if undecided.len() >= UNDECIDED.0 || bytes >= UNDECIDED.1 {
                    break;
                }
                continue;
            };
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

/// What a file is that begins so, where it is of a kind that traces are kept in and that has to be opened first.
fn kept_as(head: &[u8]) -> Option<ImportError> {
    // The magic numbers are those of RFC 1952, RFC 8878, DuckDB's storage and Parquet's format.
    let packed = |tool| ImportError::Packed { tool };
    match head {
        [0x1f, 0x8b, ..] => Some(packed("gzip")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(packed("zstd")),
        [b'P', b'A', b'R', b'1', ..] => Some(ImportError::Table { kind: "Parquet file" }),
        [_, _, _, _, _, _, _, _, b'D', b'U', b'C', b'K', ..] => Some(ImportError::Table { kind: "DuckDB database" }),
        _ => None,
    }
}

/// The thread whose own file it is: `trace.4882`.
fn tid_of(name: &str) -> u32 {
    name.rsplit_once('.').and_then(|(_, tid)| tid.parse().ok()).unwrap_or(0)
}
