//! Recognises the tool that wrote a trace by its lines.

use crate::perf_script::{self, PerfScript};
use crate::perf_trace::{self, PerfTrace};
use crate::strace::{self, Dialect, Strace};
use crate::trace::Trace;

/// A tool that writes traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `strace`.
    Strace,
    /// `ltrace -S`.
    Ltrace,
    /// `perf trace`.
    PerfTrace,
    /// `perf script` of system calls' tracepoints.
    PerfScript,
    /// Perfetto's own format, as systing writes it too.
    Perfetto,
}

impl Format {
    /// Returns the format's name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strace => "strace",
            Self::Ltrace => "ltrace",
            Self::PerfTrace => "perf trace",
            Self::PerfScript => "perf script",
            Self::Perfetto => "Perfetto",
        }
    }

    /// Returns the tool that wrote a line; `None` if it is no line of a trace, or could be any
    /// tool's.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        if perf_script::recognise(line) {
            return Some(Self::PerfScript);
        }
        if perf_trace::recognise(line) {
            return Some(Self::PerfTrace);
        }
        strace::recognise(line).map(|dialect| match dialect {
            Dialect::Strace => Self::Strace,
            Dialect::Ltrace => Self::Ltrace,
        })
    }
}

/// The reader of one file's lines, by format.
pub(crate) enum Reader {
    Strace(Box<Strace>),
    PerfTrace(PerfTrace),
    PerfScript(PerfScript),
}

impl Reader {
    /// Returns a reader for a file of `format`; `tid` is the thread of lines that do not tell
    /// theirs. Returns `None` if the format has no lines.
    pub(crate) fn new(format: Format, tid: u32) -> Option<Self> {
        match format {
            Format::Strace => Some(Self::Strace(Box::new(Strace::new(Dialect::Strace, tid)))),
            Format::Ltrace => Some(Self::Strace(Box::new(Strace::new(Dialect::Ltrace, tid)))),
            Format::PerfTrace => Some(Self::PerfTrace(PerfTrace::default())),
            Format::PerfScript => Some(Self::PerfScript(PerfScript::default())),
            Format::Perfetto => None,
        }
    }

    pub(crate) fn line(&mut self, trace: &mut Trace, line: &[u8]) {
        match self {
            Self::Strace(reader) => reader.line(trace, line),
            Self::PerfTrace(reader) => reader.line(trace, line),
            Self::PerfScript(reader) => reader.line(trace, line),
        }
    }

    pub(crate) fn finish(self, trace: &mut Trace, whole: bool) {
        match self {
            Self::Strace(reader) => reader.finish(trace, whole),
            Self::PerfTrace(reader) => reader.finish(trace, whole),
            Self::PerfScript(reader) => reader.finish(trace, whole),
        }
    }
}
