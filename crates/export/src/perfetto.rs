//! Writes JSON trace events, which Perfetto and chrome://tracing open. Calls that windows saw are
//! slices on their thread; the exact totals of each process image and system call are counters.
//!
//! JSON stands in place of Perfetto's own packets: both can express all of it, and JSON needs
//! neither a schema in the build nor a special reader. Times are in microseconds; three decimals
//! keep the ns.
//!
//! The format: "Trace Event Format", linked from
//! <https://perfetto.dev/docs/getting-started/other-formats>.

use crate::error::ExportError;
use crate::judged_recording::{JudgedRecording, short};
use crate::lanes::lanes;
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::Write;
use systoll_model::{ProcessId, Recording, Sysno, inert_json};
use systoll_present::{call_text, clean};

#[derive(Serialize)]
struct Event {
    /// The kind of event: `X` for a slice, `C` for a counter, `M` for a name.
    ph: char,
    name: String,
    /// The process image's number, from 1. Several images may have one pid: each `execve` begins a
    /// new one.
    pid: u64,
    tid: u64,
    ts: Micros,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<Micros>,
    args: Json,
}

/// A time in ns, written as microseconds.
struct Micros(u64);

impl Serialize for Micros {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // This is exact up to 2^53 ns, a hundred days.
        serializer.serialize_f64(self.0 as f64 / 1e3)
    }
}

#[derive(Default)]
struct Totals {
    calls: u64,
    toll_ns: u64,
    waited_ns: u64,
    needless_ns: u64,
}

/// Writes the trace, one event a line.
pub(crate) fn write(judged: &JudgedRecording<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut events = names(judged.recording);
    events.extend(counters(judged));
    events.extend(slices(judged.recording));
    writeln!(out, "{{\"displayTimeUnit\": \"ns\", \"traceEvents\": [")?;
    for (at, event) in events.iter().enumerate() {
        let line = inert_json(&serde_json::to_string(event).map_err(std::io::Error::from)?);
        writeln!(out, "{line}{}", if at + 1 < events.len() { "," } else { "" })?;
    }
    writeln!(
        out,
        "], \"otherData\": {}}}",
        inert_json(&json!({"systoll": env!("CARGO_PKG_VERSION"), "command": judged.command()}).to_string())
    )?;
    Ok(())
}

fn image(process: ProcessId) -> u64 {
    u64::from(process.0) + 1
}

/// Returns the id of a thread, which differs between all threads of all images.
fn tid(process: ProcessId, thread: u32) -> u64 {
    image(process) * 1_000_000 + u64::from(thread)
}

fn names(rec: &Recording) -> Vec<Event> {
    let event = |name: &str, pid, tid, text: String| Event {
        ph: 'M',
        name: name.into(),
        pid,
        tid,
        ts: Micros(0),
        dur: None,
        args: json!({"name": text}),
    };
    let process = |(i, p): (usize, &systoll_model::Process)| {
        event("process_name", i as u64 + 1, 0, format!("{} (pid {})", clean(short(p.name())), p.pid))
    };
    let processes = rec.processes.iter().enumerate().map(process);
    let threads = lanes(rec)
        .into_iter()
        .map(|lane| event("thread_name", image(lane.process), tid(lane.process, lane.thread), clean(&lane.name())));
    processes.chain(threads).collect()
}

/// Returns counters that are zero at a process's start and the total at its end.
fn counters(judged: &JudgedRecording<'_>) -> Vec<Event> {
    let mut totals: BTreeMap<(ProcessId, Sysno), Totals> = BTreeMap::new();
    for told in judged.rows() {
        let counts = &told.row.counts;
        let total = totals.entry((told.row.process, told.row.syscall)).or_default();
        total.calls = total.calls.saturating_add(counts.calls);
        total.toll_ns = total.toll_ns.saturating_add(counts.toll_ns.unwrap_or(0));
        total.waited_ns = total.waited_ns.saturating_add(counts.waited_ns.unwrap_or(0));
        total.needless_ns = total.needless_ns.saturating_add(told.needless_ns);
    }
    let mut events = Vec::new();
    for ((id, syscall), total) in &totals {
        let process = judged.recording.process(*id);
        let end = process.end_ns.max(process.start_ns);
        let figures = [
            ("calls", total.calls),
            ("cost ns", total.toll_ns),
            ("waited ns", total.waited_ns),
            ("needless ns", total.needless_ns),
        ];
        for (what, value) in figures.into_iter().filter(|(_, value)| *value > 0) {
            for (at, value) in [(process.start_ns, 0), (end, value)] {
                events.push(Event {
                    ph: 'C',
                    name: format!("{what} of {syscall}"),
                    pid: image(*id),
                    tid: 0,
                    ts: Micros(at),
                    dur: None,
                    args: json!({"total": value}),
                });
            }
        }
    }
    events
}

fn slices(rec: &Recording) -> Vec<Event> {
    let mut events = Vec::new();
    for lane in lanes(rec) {
        for seen in &lane.calls {
            events.push(Event {
                ph: 'X',
                name: seen.syscall.to_string(),
                pid: image(lane.process),
                tid: tid(lane.process, lane.thread),
                ts: Micros(seen.start_ns),
                dur: Some(Micros(seen.end_ns.saturating_sub(seen.start_ns))),
                args: json!({"call": call_text(seen.call, seen.syscall), "nth": seen.call.nth}),
            });
        }
    }
    events
}
