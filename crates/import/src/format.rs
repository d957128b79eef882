//! Which tool wrote a trace, told by its lines.

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
    /// Perfetto's own, as systing writes it.
    Perfetto,
}

impl Format {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strace => "strace",
            Self::Ltrace => "ltrace",
            Self::PerfTrace => "perf trace",
            Self::PerfScript => "perf script",
            Self::Perfetto => "Perfetto",
        }
    }

    /// The tool that wrote a line; `None` where it is no line of a trace, or could be any tool's.
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

/// Reads lines of one file.
pub(crate) enum Reader {
    Strace(Box<Strace>),
    PerfTrace(PerfTrace),
    PerfScript(PerfScript),
}

impl Reader {
    /// For a file of `format` whose lines are of thread `tid` where they do not say; `None` where it has no lines.
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
