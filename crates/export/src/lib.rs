//! Recordings in the formats of other tools: one room a format, each behind [`export`]; and the page that opens in
//! a browser ([`html`]).
//!
//! Invariants: totals are the report's, whatever the format; names that a watched program chose are data in all of
//! them and can't become a formula, a script, a line or a label; nothing is read but what is given (clippy.toml
//! holds it).
//!
//! ```
//! use systoll_export::{Format, Judged, Value, export};
//! use systoll_judge::Judgement;
//! use systoll_model::{Counts, Process, ProcessId, Recording, Row, Stack, StackId, Sysno};
//!
//! // `Recording::read` gives a recording, `systoll_judge::judge` the judgement of it.
//! let (mut recording, judgement) = (Recording::default(), Judgement::default());
//! recording.processes.push(Process { exe: "/bin/app".into(), ..Process::default() });
//! recording.stacks.push(Stack::default());
//! let counts = Counts { calls: 3, toll_ns: Some(600), ..Counts::default() };
//! let syscall = Sysno::from_name("getpid").unwrap();
//! let (process, context, outer) = (ProcessId(0), StackId(0), StackId(0));
//! let api = Some("getpid".into());
//! recording.rows.push(Row { process, syscall, context, outer, api, api_module: None, user: None, lines: vec![], counts });
//! let mut text = Vec::new();
//! export(Format::Collapsed, Value::Toll, &Judged::new(&recording, &judgement), &mut text)?;
//! assert_eq!(String::from_utf8_lossy(&text), "app;getpid;getpid 600\n");
//! # Ok::<(), systoll_export::ExportError>(())
//! ```
#![forbid(unsafe_code)]

mod call_text;
mod collapsed;
mod comma_separated;
mod error;
mod firefox;
mod flamegraph;
pub mod html;
mod judged;
mod open_metrics;
mod parquet;
mod perfetto;
mod pprof;
mod seen;
mod speedscope;

pub use comma_separated::answer_csv;
pub use error::ExportError;
pub use flamegraph::compared as flamegraph_compared;
pub use judged::{Judged, Value};
pub use parquet::{Labels, for_fleet};

use std::io::Write;

/// What a recording can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line a stack, frames with `;` between, and a number: what flame graph tools read.
    Collapsed,
    /// A line a row, all values and names.
    Csv,
    /// speedscope's own JSON.
    Speedscope,
    /// A gzipped profile of pprof.
    Pprof,
    /// A picture that browsers open.
    Flamegraph,
    /// Firefox Profiler's processed profile.
    Firefox,
    /// JSON trace events, for Perfetto and chrome://tracing.
    Perfetto,
    /// OpenMetrics text, for Prometheus.
    Openmetrics,
    /// The table of [`Format::Csv`] with what is known of the run, for DuckDB, Spark and others.
    Parquet,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 9] = [
        Self::Collapsed,
        Self::Csv,
        Self::Speedscope,
        Self::Pprof,
        Self::Flamegraph,
        Self::Firefox,
        Self::Perfetto,
        Self::Openmetrics,
        Self::Parquet,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Collapsed => "collapsed",
            Self::Csv => "csv",
            Self::Speedscope => "speedscope",
            Self::Pprof => "pprof",
            Self::Flamegraph => "flamegraph",
            Self::Firefox => "firefox",
            Self::Perfetto => "perfetto",
            Self::Openmetrics => "openmetrics",
            Self::Parquet => "parquet",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether what is written is no text.
    pub fn is_binary(self) -> bool {
        matches!(self, Self::Pprof | Self::Parquet)
    }
}

/// Writes `judged` to `out` in one format. `value` is what is drawn, or shown first; formats that hold all values
/// hold all the same.
///
/// # Errors
/// [`ExportError`] says what can't be written, or why.
pub fn export(format: Format, value: Value, judged: &Judged<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    match format {
        Format::Collapsed => collapsed::write(value, judged, out),
        Format::Csv => comma_separated::write(judged, out),
        Format::Speedscope => speedscope::write(value, judged, out),
        Format::Pprof => pprof::write(value, judged, out),
        Format::Flamegraph => flamegraph::write(value, judged, out),
        Format::Firefox => firefox::write(value, judged, out),
        Format::Perfetto => perfetto::write(judged, out),
        Format::Openmetrics => open_metrics::write(judged, out),
        Format::Parquet => parquet::write(judged, &Labels::default(), out),
    }
}
