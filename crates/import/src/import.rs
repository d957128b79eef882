//! Reads files of a trace, one after the other.

use crate::error::ImportError;
use crate::format::{Format, Reader};
use crate::input::Lines;
use crate::notes::shown;
use crate::recording::recording;
use crate::strace::{self, Dialect, Strace};
use crate::trace::Trace;
use crate::undress::{Head, choose};
use crate::{container, foreign, perfetto};
use std::io::{self, BufRead, Read};
use systoll_model::{ProblemKind, Recording};

/// Largest number of lines, and of their bytes, that are kept until one tells the format.
const UNDECIDED: (usize, usize) = (2_000, 4 << 20);

/// A trace that is being read.
pub struct Import {
    trace: Trace,
    seed: u64,
    formats: Vec<Format>,
}

impl Import {
    /// Returns an import that has read nothing. `seed` decides at which places of long traces
    /// windows open: the same seed gives the same recording.
    pub fn new(seed: u64) -> Self {
        Self { trace: Trace::new(seed), seed, formats: Vec::new() }
    }

    /// Reads a file of the trace to its end. Several files are one trace, as `strace -ff` writes
    /// it: one for each thread, whose id is at the end of `name`. The name has no other meaning.
    ///
    /// # Errors
    ///
    /// If the file can't be read, is empty, or is no trace.
    pub fn read(&mut self, name: &str, reader: impl BufRead) -> Result<(), ImportError> {
        let mut reader = reader;
        let is_gzip = reader.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let mut reader = container::text(reader)?;
        let head = perfetto::head(&mut reader)?;
        if head.is_empty() {
            return self.read_lines(name, reader);
        }
        let all = io::Cursor::new(&head).chain(reader);
        if perfetto::recognise(&head) {
            self.formats.push(Format::Perfetto);
            return Ok(perfetto::read(&mut self.trace, all)?);
        }
        if is_gzip {
            return Err(ImportError::Profile);
        }
        self.read_lines(name, all)
    }

    fn read_lines(&mut self, name: &str, reader: impl BufRead) -> Result<(), ImportError> {
        let mut lines = Lines::new(reader);
        let mut head = Head::default();
        let mut whole = true;
        while let Some(line) = lines.next()? {
            whole = line.whole;
            if head.push(line.text) {
                break;
            }
        }
        let mut undress = choose(head.lines());
        let undressed = undress.fresh().all(head.lines());
        if let Some(refused) = foreign::refused(head.lines()).or_else(|| foreign::refused(&undressed)) {
            return Err(refused);
        }
        let mut file =
            File { trace: &mut self.trace, formats: &mut self.formats, tid: tid_of(name), reading: Reading::default() };
        file.trace.stamped_when_written = undress.stamps();
        head.lines().iter().for_each(|line| undress.line(line, &mut |line| file.line(line)));
        while let Some(line) = lines.next()? {
            whole = line.whole;
            if undress.is_idle() {
                file.line(line.text);
            } else {
                undress.line(line.text, &mut |line| file.line(line));
            }
            if file.is_none() {
                break;
            }
        }
        undress.finish(&mut |line| file.line(line));
        file.finish(whole)?;
        if let Some(told) = undress.told() {
            self.trace.notes.add(ProblemKind::Note, format!("taken off before the trace was read: {told}"));
        }
        Ok(())
    }

    /// Returns the formats of the files read, in order.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// Returns the recording. It has no prices: see [`crate::price`].
    ///
    /// # Errors
    ///
    /// No call was read.
    pub fn finish(self) -> Result<Recording, ImportError> {
        if self.trace.notes.found_nothing() {
            let first = self.trace.notes.first_unknown().map(str::to_owned);
            return Err(first.map_or(ImportError::Empty, |first| ImportError::NoTrace { first }));
        }
        Ok(recording(self.trace, self.seed))
    }
}

/// A file that is being read.
struct File<'a> {
    trace: &'a mut Trace,
    formats: &'a mut Vec<Format>,
    tid: u32,
    reading: Reading,
}

/// The state of finding a file's format.
enum Reading {
    /// No line has told the format: the lines are kept.
    Undecided(Head),
    /// The format is known.
    Known(Reader),
}

impl Default for Reading {
    fn default() -> Self {
        Self::Undecided(Head::default())
    }
}

impl File<'_> {
    fn line(&mut self, line: &[u8]) {
        let kept = match &mut self.reading {
            Reading::Known(reader) => return reader.line(self.trace, line),
            Reading::Undecided(kept) => kept,
        };
        let format = Format::of_line(line);
        let Some((format, mut reader)) = format.and_then(|f| Some((f, Reader::new(f, self.tid)?))) else {
            kept.push(line);
            return;
        };
        self.formats.push(format);
        kept.lines().iter().for_each(|line| reader.line(self.trace, line));
        reader.line(self.trace, line);
        self.reading = Reading::Known(reader);
    }

    /// Returns true if so much was read without a sign of a format that none will come.
    fn is_none(&self) -> bool {
        matches!(&self.reading, Reading::Undecided(kept) if kept.is_beyond(UNDECIDED))
    }

    fn finish(self, whole: bool) -> Result<(), ImportError> {
        match self.reading {
            Reading::Known(reader) => {
                reader.finish(self.trace, whole);
                Ok(())
            }
            Reading::Undecided(kept) if strace::is_bare_table(kept.lines()) => {
                let mut reader = Strace::new(Dialect::Strace, self.tid);
                kept.lines().iter().for_each(|line| reader.line(self.trace, line));
                self.formats.push(Format::Strace);
                reader.finish(self.trace, whole);
                Ok(())
            }
            Reading::Undecided(kept) => {
                let first = kept.lines().iter().find(|line| !line.trim_ascii().is_empty()).ok_or(ImportError::Empty)?;
                Err(ImportError::NoTrace { first: shown(first) })
            }
        }
    }
}

/// Returns the thread that wrote a file of its own: 4882 for `trace.4882`.
fn tid_of(name: &str) -> u32 {
    name.rsplit_once('.').and_then(|(_, tid)| tid.parse().ok()).unwrap_or(0)
}
