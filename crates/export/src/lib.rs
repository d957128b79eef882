//! Writes recordings in the formats of other tools: one module for each format, behind [`export`];
//! and makes the page that opens in a browser ([`html`]).
//!
//! Invariants: totals are the report's, whatever the format; names that a watched program chose are data in all of
//! them and can't become a formula, a script, a line or a label; nothing is read but what is given (clippy.toml
//! holds it).
//!
//! ```
//! use systoll_export::{Format, JudgedRecording, Value, export};
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
//! recording.rows.push(Row { context, outer, api, ..Row::new(process, syscall, counts) });
//! let mut text = Vec::new();
//! export(Format::Collapsed, Value::Toll, &JudgedRecording::new(&recording, &judgement), &mut text)?;
//! assert_eq!(String::from_utf8_lossy(&text), "app;getpid;getpid 600\n");
//! # Ok::<(), systoll_export::ExportError>(())
//! ```
#![forbid(unsafe_code)]

mod box_metrics;
mod collapsed;
mod comma_separated;
mod error;
mod firefox;
mod flamegraph;
pub mod html;
mod judged_recording;
mod lanes;
mod open_metrics;
mod otlp;
mod parquet;
mod perfetto;
mod pprof;
mod speedscope;
#[cfg(test)]
mod test_recordings;

pub use box_metrics::{BoxMetrics, MetricsFormat};
pub use comma_separated::answer_csv;
pub use error::ExportError;
pub use flamegraph::compared as flamegraph_compared;
pub use judged_recording::{JudgedRecording, Value};
pub use otlp::OtlpProfiles;
pub use parquet::{Labels, SummedRuns, day, for_fleet};

use std::io::Write;

/// Declares the formats, one row each: name, kind of bytes, writer.
macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $name:literal, $bytes:ident, $write:expr;)*) => {
        /// A format that a recording can be written in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $($(#[$doc])* $format,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$format),*];

            fn row(self) -> Row {
                match self {
                    $(Self::$format => Row { name: $name, bytes: Bytes::$bytes, write: $write },)*
                }
            }
        }
    };
}

formats! {
    /// One line for each stack, frames separated by `;`, and a number, for flame graph tools.
    Collapsed = "collapsed", Text, |value, judged, out| collapsed::write(value, judged, out);
    /// One line for each row, with all values and names.
    Csv = "csv", Text, |_, judged, out| comma_separated::write(judged, out);
    /// speedscope's own JSON.
    Speedscope = "speedscope", Text, |value, judged, out| speedscope::write(value, judged, out);
    /// A gzipped profile of pprof.
    Pprof = "pprof", Binary, |value, judged, out| pprof::write(value, judged, out);
    /// A picture that browsers open.
    Flamegraph = "flamegraph", Text, |value, judged, out| flamegraph::write(value, judged, out);
    /// Firefox Profiler's processed profile.
    Firefox = "firefox", Text, |value, judged, out| firefox::write(value, judged, out);
    /// JSON trace events, for Perfetto and chrome://tracing.
    Perfetto = "perfetto", Text, |_, judged, out| perfetto::write(judged, out);
    /// OpenMetrics text, for Prometheus.
    Openmetrics = "openmetrics", Text, |_, judged, out| open_metrics::write(judged, out);
    /// The table of [`Format::Csv`] with facts about the run, for DuckDB, Spark and others.
    Parquet = "parquet", Binary, |_, judged, out| parquet::write(judged, &Labels::default(), out);
}

/// A format's row of the table.
struct Row {
    name: &'static str,
    bytes: Bytes,
    write: Writer,
}

#[derive(PartialEq)]
enum Bytes {
    Text,
    Binary,
}

type Writer = fn(Value, &JudgedRecording<'_>, &mut dyn Write) -> Result<(), ExportError>;

impl Format {
    /// Returns the format's name on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns true if the format is not text.
    pub fn is_binary(self) -> bool {
        self.row().bytes == Bytes::Binary
    }
}

/// Writes `judged` to `out` in one format. Formats that show one value draw `value`; formats that hold all values
/// show it first or ignore it.
///
/// # Errors
/// [`ExportError`] says what can't be written, or why.
pub fn export(
    format: Format,
    value: Value,
    judged: &JudgedRecording<'_>,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    (format.row().write)(value, judged, out)
}
