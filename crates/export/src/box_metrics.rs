//! Counters of a whole box for Prometheus, by service, system call and cause, over any number of recordings.
//!
//! Invariants: the number of series is bounded, and a counter never goes down: what once has a series keeps it, and what
//! comes when there is no room is counted as [`OTHER`]. The text that is written can be read again, so that counters go on
//! where another process left them.

mod otlp;

use crate::error::ExportError;
use crate::judged_recording::JudgedRecording;
use crate::open_metrics::label;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

/// Services, system calls of one, and causes of one that have series of their own, at most: some 5,000 series in all.
const SERVICES: usize = 50;
const CALLS: usize = 24;
const CAUSES: usize = 8;
/// The label of all others.
const OTHER: &str = "other";

/// A format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's own format, as for node_exporter's textfile collector.
    Prometheus,
}

impl MetricsFormat {
    /// Returns the type for HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Declares the families, one row each: name, kind, description. Those whose names end in `_seconds` are kept in ns.
macro_rules! families {
    ($($family:ident = $name:literal, $counts:literal, $help:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        enum Family { $($family,)* }

        impl Family {
            const ALL: &[Self] = &[$(Self::$family,)*];

            fn name(self) -> &'static str {
                match self { $(Self::$family => $name,)* }
            }

            /// Returns true for a counter, false for a gauge.
            fn counts(self) -> bool {
                match self { $(Self::$family => $counts,)* }
            }

            fn help(self) -> &'static str {
                match self { $(Self::$family => $help,)* }
            }
        }
    };
}

families! {
    Calls = "systoll_box_calls", true, "System calls made while the box was watched.";
    Errors = "systoll_box_errors", true, "System calls that failed while the box was watched.";
    Toll = "systoll_box_toll_seconds", true, "Processor time of system calls while the box was watched.";
    Cpu = "systoll_box_cpu_seconds", true, "Processor time of a service while the box was watched.";
    NeedlessCalls = "systoll_box_needless_calls", true, "Needless system calls while the box was watched, an estimate.";
    Needless = "systoll_box_needless_toll_seconds", true, "Processor time of needless system calls, an estimate.";
    Watched = "systoll_agent_watched_seconds", true, "Time for which the box was watched, with samples or counts only.";
    Elapsed = "systoll_agent_elapsed_seconds", true, "Time for which the agent ran.";
    Spent = "systoll_agent_cpu_seconds", true, "Processor time that the agent took: its own, and in others' calls.";
    Spans = "systoll_agent_spans", true, "Spans in which calls were sampled and counted, or counted only.";
    Lost = "systoll_agent_lost_calls", true, "Calls that are known not to have been counted.";
    Troubles = "systoll_agent_troubles", true, "What went wrong: watching, keeping files, a clock that was set.";
    Dropped = "systoll_agent_dropped_messages", true, "Messages that no receiver took in time, or that it refused.";
    Since = "systoll_agent_counting_since_seconds", false, "Time since 1970 at which the counters began.";
    Budget = "systoll_agent_budget_ratio", false, "Share of the box's processors that the agent may take.";
    Processors = "systoll_agent_processors", false, "Processors of the box.";
}

/// The labels that a service has series for.
#[derive(Clone, Debug, Default)]
struct Known {
    calls: BTreeSet<String>,
    causes: BTreeSet<String>,
}

/// The counters.
#[derive(Clone, Debug, Default)]
pub struct BoxMetrics {
    /// By family and labels, as they are written: a number; of a time, ns; of a share, millionths.
    values: BTreeMap<(Family, String), u64>,
    services: BTreeMap<String, Known>,
}

/// The part of a second, and of one, in which times and shares are kept.
const NS: u64 = 1_000_000_000;
const MILLION: u64 = 1_000_000;

impl BoxMetrics {
    /// Adds the calls of a service.
    pub fn add(&mut self, service: &str, judged: &JudgedRecording<'_>) {
        let service = admitted(&label(service), &self.services, SERVICES);
        let cpu_ns = judged.recording.processes.iter().filter_map(|p| p.cpu_ns).fold(0, u64::saturating_add);
        self.count(Family::Cpu, format!("service=\"{service}\""), cpu_ns);
        // The most expensive rows come first, and get what room there is.
        let mut rows: Vec<_> = judged.rows().filter(|of| of.row.counts.calls > 0).collect();
        rows.sort_by_key(|of| std::cmp::Reverse(of.row.counts.toll_ns));
        for judged in rows {
            let known = self.services.entry(service.clone()).or_default();
            let call = among(&label(&judged.row.syscall.to_string()), &mut known.calls, CALLS);
            let cause = judged.cause.map(|cause| among(&label(cause), &mut known.causes, CAUSES));
            let (labels, counts) = (format!("service=\"{service}\",syscall=\"{call}\""), &judged.row.counts);
            if let Some(cause) = cause {
                let labels = format!("{labels},cause=\"{cause}\"");
                self.count(Family::NeedlessCalls, labels.clone(), judged.needless_calls);
                self.count(Family::Needless, labels, judged.needless_ns);
            }
            self.count(Family::Errors, labels.clone(), counts.failed());
            self.count(Family::Toll, labels.clone(), counts.toll_ns.unwrap_or(0));
            self.count(Family::Calls, labels, counts.calls);
        }
    }

    /// Adds the time of a span, and the calls that it has lost.
    pub fn watched(&mut self, time: Duration, samples: bool, lost: u64) {
        let kind = if samples { "kind=\"sampled\"" } else { "kind=\"counted\"" };
        self.count(Family::Watched, kind.into(), ns(time));
        self.count(Family::Spans, kind.into(), 1);
        self.count(Family::Lost, String::new(), lost);
    }

    /// Adds what a time has cost, and notes what it may cost.
    pub fn cost(&mut self, elapsed: Duration, own_ns: u64, kernel_ns: u64, budget: f64, processors: f64) {
        self.count(Family::Elapsed, String::new(), ns(elapsed));
        self.count(Family::Spent, "part=\"own\"".into(), own_ns);
        self.count(Family::Spent, "part=\"kernel\"".into(), kernel_ns);
        for (family, share) in [(Family::Budget, budget), (Family::Processors, processors)] {
            self.values.insert((family, String::new()), (share * MILLION as f64) as u64);
        }
    }

    /// Counts a trouble.
    pub fn trouble(&mut self, what: &str) {
        self.count(Family::Troubles, format!("what=\"{}\"", label(what)), 1);
    }

    /// Counts messages for a receiver that were dropped.
    pub fn dropped(&mut self, what: &str, messages: u64) {
        self.count(Family::Dropped, format!("what=\"{}\"", label(what)), messages);
    }

    /// Notes the time since 1970 at which the counters begin, unless they began before. If they began at a time that is still to
    /// come, the clock was wrong then.
    pub fn begin(&mut self, now: Duration) {
        let since = self.values.entry((Family::Since, String::new())).or_insert(ns(now));
        *since = ns(now).min(*since);
    }

    fn count(&mut self, family: Family, labels: String, by: u64) {
        let value = self.values.entry((family, labels)).or_default();
        *value = value.saturating_add(by);
    }

    /// Writes all families.
    ///
    /// # Errors
    /// [`ExportError`] if `out` fails.
    pub fn write(&self, format: MetricsFormat, out: &mut dyn Write) -> Result<(), ExportError> {
        for family in Family::ALL {
            let (name, is_open) = (family.name(), format == MetricsFormat::OpenMetrics);
            let sample = if family.counts() { format!("{name}_total") } else { name.to_owned() };
            let declared = if is_open { name } else { &sample };
            writeln!(out, "# HELP {declared} {}", family.help())?;
            writeln!(out, "# TYPE {declared} {}", if family.counts() { "counter" } else { "gauge" })?;
            if let (true, Some((_, unit @ ("seconds" | "ratio")))) = (is_open, name.rsplit_once('_')) {
                writeln!(out, "# UNIT {declared} {unit}")?;
            }
            for (labels, value) in self.of_family(*family) {
                let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                match family.parts() {
                    1 => writeln!(out, "{sample}{labels} {value}")?,
                    parts => writeln!(
                        out,
                        "{sample}{labels} {}.{:0digits$}",
                        value / parts,
                        value % parts,
                        digits = parts.ilog10() as usize
                    )?,
                }
            }
        }
        if format == MetricsFormat::OpenMetrics {
            writeln!(out, "# EOF")?;
        }
        Ok(())
    }

    /// Returns the labels and values of a family.
    fn of_family(&self, family: Family) -> impl Iterator<Item = (&str, u64)> {
        let all = self.values.range((family, String::new())..).take_while(move |((of, _), _)| *of == family);
        all.map(|((_, labels), value)| (labels.as_str(), *value))
    }

    /// Reads what [`BoxMetrics::write`] wrote; passes over all else.
    pub fn read(text: &str) -> Self {
        let mut read = Self::default();
        for line in text.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let of_name = |family: &&Family| match family {
                Family::Since => name == family.name(),
                _ => family.counts() && name.strip_suffix("_total") == Some(family.name()),
            };
            let Some((family, labels)) = Family::ALL.iter().find(of_name).zip(labels.strip_suffix('}')) else {
                continue;
            };
            let Some(value) = in_parts(value, family.parts()) else { continue };
            read.values.insert((*family, labels.to_owned()), value);
            if let Some(service) = value_of(labels, "service") {
                let known = read.services.entry(service.to_owned()).or_default();
                known.calls.extend(value_of(labels, "syscall").map(str::to_owned));
                known.causes.extend(value_of(labels, "cause").map(str::to_owned));
            }
        }
        read
    }
}

impl Family {
    /// Returns the parts of one in which values are kept.
    fn parts(self) -> u64 {
        match self {
            _ if self.name().ends_with("_seconds") => NS,
            Self::Budget | Self::Processors => MILLION,
            _ => 1,
        }
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns a decimal number in parts of one; `None` if it is none.
fn in_parts(text: &str, parts: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = parts.ilog10() as usize;
    let fraction: u64 = match fraction {
        "" => 0,
        some if some.len() == digits => some.parse().ok()?,
        _ => return None,
    };
    whole.parse::<u64>().ok()?.checked_mul(parts)?.checked_add(fraction)
}

/// Returns a label's value among labels, as it is written.
fn value_of<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    pairs(labels).find(|(of, _)| *of == name).map(|(_, value)| value)
}

/// Returns the names and values of labels, as they are written.
fn pairs(mut labels: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let (name, rest) = labels.split_once("=\"")?;
        let mut is_escaped = false;
        let end = rest.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        })?;
        labels = rest.get(end..)?;
        Some((name.trim_start_matches("\","), rest.get(..end)?))
    })
}

/// Returns a service's label, or [`OTHER`] if there is no room for another one.
fn admitted(service: &str, known: &BTreeMap<String, Known>, most: usize) -> String {
    if known.contains_key(service) || known.len() < most { service.to_owned() } else { OTHER.to_owned() }
}

/// Returns a label among those that have series, or [`OTHER`] if there is no room for another one.
fn among(text: &str, known: &mut BTreeSet<String>, most: usize) -> String {
    if known.contains(text) || known.len() < most {
        known.insert(text.to_owned());
        text.to_owned()
    } else {
        OTHER.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_recordings::recording_of;
    use systoll_judge::Judgement;

    fn text(metrics: &BoxMetrics, format: MetricsFormat) -> String {
        let mut out = Vec::new();
        metrics.write(format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn counters_go_on_after_they_were_read() {
        let mut metrics = BoxMetrics::default();
        let judgement = Judgement::default();
        let recording = recording_of(&[("read", 3), ("write", 1)]);
        metrics.add("shop \"a\",b\\", &JudgedRecording::new(&recording, &judgement));
        metrics.watched(Duration::from_millis(1_500), true, 0);
        metrics.cost(Duration::from_secs(2), 5, 7, 0.005, 2.0);
        metrics.trouble("keeping");
        let kept = text(&metrics, MetricsFormat::Prometheus);
        assert!(kept.contains("systoll_agent_watched_seconds_total{kind=\"sampled\"} 1.500000000\n"), "{kept}");
        assert!(kept.contains("systoll_agent_budget_ratio 0.005000\n"), "{kept}");
        let mut again = BoxMetrics::read(&kept);
        assert_eq!(again.services.len(), 1);
        again.add("shop \"a\",b\\", &JudgedRecording::new(&recording, &judgement));
        let open = text(&again, MetricsFormat::OpenMetrics);
        assert!(open.contains(r#"systoll_box_calls_total{service="shop \"a\",b\\",syscall="read"} 6"#), "{open}");
        assert!(open.contains("# UNIT systoll_box_toll_seconds seconds\n") && open.ends_with("# EOF\n"), "{open}");
        assert_eq!(
            BoxMetrics::read("nonsense 1\nsystoll_box_calls_total{ x\nsystoll_box_calls_total 1.5\n").values.len(),
            0
        );
    }

    #[test]
    fn series_are_bounded_and_nothing_is_lost() {
        let mut metrics = BoxMetrics::default();
        let recording = recording_of(&[("read", 2)]);
        let judgement = Judgement::default();
        for number in 0..1_000 {
            metrics.add(&format!("s{number}"), &JudgedRecording::new(&recording, &judgement));
        }
        let calls = metrics.values.iter().filter(|((family, _), _)| *family == Family::Calls);
        let (series, sum) = calls.fold((0, 0), |(n, sum), (_, value)| (n + 1, sum + value));
        assert_eq!((series, sum), (SERVICES + 1, 2_000));
    }
}
