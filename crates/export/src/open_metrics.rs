//! Writes OpenMetrics text: totals by program and system call, as Prometheus reads them.
//!
//! Samples carry the run's own time: `promtool tsdb create-blocks-from openmetrics` puts them
//! there. Rows and stacks are left out: each would be a series.
//!
//! The format: <https://prometheus.io/docs/specs/om/open_metrics_spec/>.

use crate::error::ExportError;
use crate::judged_recording::JudgedRecording;
use std::collections::BTreeMap;
use std::io::Write;

/// Largest length of a label's value, characters: a series' name is stored as long as the series.
const LABEL: usize = 128;

/// A metric family.
struct Family {
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    /// Values of the samples, by their labels.
    samples: BTreeMap<String, Amount>,
}

/// The value of a counter.
#[derive(Clone, Copy)]
enum Amount {
    Count(u64),
    /// A time in ns, written in seconds.
    Time(u64),
}

impl Amount {
    fn add(&mut self, more: Amount) {
        match (self, more) {
            (Self::Count(a), Self::Count(b)) | (Self::Time(a), Self::Time(b)) => *a = a.saturating_add(b),
            _ => {}
        }
    }
}

impl Family {
    fn new(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, help, samples: BTreeMap::new() }
    }

    fn add(&mut self, labels: &str, amount: Amount) {
        match self.samples.get_mut(labels) {
            Some(sum) => sum.add(amount),
            None => _ = self.samples.insert(labels.to_owned(), amount),
        }
    }
}

/// Writes all families.
pub(crate) fn write(judged: &JudgedRecording<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let header = &judged.recording.header;
    let at = header.started_unix.saturating_add(header.wall_ns / 1_000_000_000);
    for family in families(judged) {
        writeln!(out, "# TYPE {} counter", family.name)?;
        if !family.unit.is_empty() {
            writeln!(out, "# UNIT {} {}", family.name, family.unit)?;
        }
        writeln!(out, "# HELP {} {}", family.name, family.help)?;
        for (labels, amount) in &family.samples {
            let value = match amount {
                Amount::Count(n) => n.to_string(),
                Amount::Time(ns) => format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000),
            };
            writeln!(out, "{}_total{{{labels}}} {value} {at}", family.name)?;
        }
    }
    writeln!(out, "# EOF")?;
    Ok(())
}

fn families(judged: &JudgedRecording<'_>) -> [Family; 6] {
    let mut calls = Family::new("systoll_calls", "", "System calls made.");
    let mut errors = Family::new("systoll_errors", "", "System calls that failed, by errno.");
    let mut toll = Family::new("systoll_toll_seconds", "seconds", "What system calls cost, waiting left out.");
    let mut waited = Family::new("systoll_waited_seconds", "seconds", "Time in system calls without a processor.");
    let mut needless_calls = Family::new("systoll_needless_calls", "", "Needless system calls, an estimate.");
    let mut needless =
        Family::new("systoll_needless_toll_seconds", "seconds", "What needless system calls cost, an estimate.");
    for told in judged.rows() {
        let counts = &told.row.counts;
        let labels = format!(
            "program=\"{}\",syscall=\"{}\"",
            label(judged.program(told.row)),
            label(&told.row.syscall.to_string())
        );
        calls.add(&labels, Amount::Count(counts.calls));
        for (errno, n) in &counts.errors {
            errors.add(&format!("{labels},errno=\"{}\"", label(&errno.to_string())), Amount::Count(*n));
        }
        for (family, ns) in [(&mut toll, counts.toll_ns), (&mut waited, counts.waited_ns)] {
            if let Some(ns) = ns {
                family.add(&labels, Amount::Time(ns));
            }
        }
        if let Some(cause) = told.cause {
            let labels = format!("{labels},cause=\"{}\"", label(cause));
            needless_calls.add(&labels, Amount::Count(told.needless_calls));
            needless.add(&labels, Amount::Time(told.needless_ns));
        }
    }
    [calls, errors, toll, waited, needless_calls, needless]
}

/// Returns a label's value: short, on one line, with `\`, `"` and line ends escaped.
pub(crate) fn label(text: &str) -> String {
    let cut: String = systoll_present::clean(text).chars().take(LABEL).collect();
    cut.replace('\\', "\\\\").replace('"', "\\\"")
}
