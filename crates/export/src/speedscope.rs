//! Writes speedscope's own JSON: a profile for each value, and for each thread the calls that
//! windows saw, in the order of time.
//!
//! The format: <https://www.speedscope.app/file-format-schema.json>.

use crate::error::ExportError;
use crate::judged_recording::{JudgedRecording, Link, Value};
use crate::lanes::{Lane, lanes};
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;
use systoll_model::{InertJson, shares};

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared<'a>,
    profiles: Vec<Profile>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Profile {
    Sampled {
        name: String,
        unit: &'static str,
        #[serde(rename = "startValue")]
        start: u64,
        #[serde(rename = "endValue")]
        end: u64,
        /// Indices of each stack's frames, outermost first.
        samples: Vec<Vec<usize>>,
        weights: Vec<u64>,
    },
    Evented {
        name: String,
        unit: &'static str,
        #[serde(rename = "startValue")]
        start: u64,
        #[serde(rename = "endValue")]
        end: u64,
        events: Vec<Event>,
    },
}

#[derive(Serialize)]
struct Event {
    /// The kind of event: `O` opens a frame, `C` closes it.
    r#type: char,
    frame: usize,
    at: u64,
}

/// All frames, each once.
#[derive(Default)]
struct Frames<'a> {
    all: Vec<Link<'a>>,
    index: HashMap<Link<'a>, usize>,
}

impl<'a> Frames<'a> {
    fn index(&mut self, link: Link<'a>) -> usize {
        *self.index.entry(link).or_insert_with_key(|link| {
            self.all.push(link.clone());
            self.all.len() - 1
        })
    }
}

/// Writes the file.
pub(crate) fn write(value: Value, judged: &JudgedRecording<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut frames = Frames::default();
    let mut stacks: Vec<Vec<Weighed>> = Vec::new();
    for told in judged.rows() {
        let program = judged.program(told.row);
        let mut of_row = Vec::new();
        for whole in judged.stacks(&told) {
            let links = std::iter::once(plain(program)).chain(whole.links.into_iter().rev());
            of_row.push(Weighed { weight: whole.weight, frames: links.map(|link| frames.index(link)).collect() });
        }
        stacks.push(of_row);
    }
    let mut profiles: Vec<Profile> = Value::ALL.into_iter().map(|value| sampled(value, judged, &stacks)).collect();
    profiles.extend(lanes(judged.recording).iter().map(|lane| evented(lane, &mut frames)));
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: format!("systoll {}", env!("CARGO_PKG_VERSION")),
        name: judged.command(),
        active: Value::ALL.iter().position(|v| *v == value).unwrap_or(0),
        shared: Shared {
            frames: frames.all.iter().map(|l| Frame { name: &l.function, file: l.file, line: l.line }).collect(),
        },
        profiles,
    };
    serde_json::to_writer(InertJson(out), &file).map_err(std::io::Error::from)?;
    Ok(())
}

fn plain(name: &str) -> Link<'_> {
    Link { function: name.into(), module: "", file: None, line: None }
}

/// A whole stack of a row: its frames' indices, outermost first, and its weight among the row's
/// stacks.
struct Weighed {
    frames: Vec<usize>,
    weight: u64,
}

fn sampled(value: Value, judged: &JudgedRecording<'_>, stacks: &[Vec<Weighed>]) -> Profile {
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    for told in judged.rows() {
        let of_row = stacks.get(told.index).map_or(&[][..], Vec::as_slice);
        let parts = shares(told.value(value), &of_row.iter().map(|s| s.weight).collect::<Vec<_>>());
        for (stack, part) in of_row.iter().zip(parts).filter(|(_, part)| *part > 0) {
            samples.push(stack.frames.clone());
            weights.push(part);
        }
    }
    Profile::Sampled {
        name: value.name().into(),
        unit: if value.is_time() { "nanoseconds" } else { "none" },
        start: 0,
        end: judged.total(value),
        samples,
        weights,
    }
}

/// Returns the calls that windows saw of one thread. Between windows there are no calls.
fn evented<'a>(lane: &Lane<'a>, frames: &mut Frames<'a>) -> Profile {
    let mut events = Vec::new();
    for call in &lane.calls {
        let name = call.syscall.name().map_or_else(|| call.syscall.to_string().into(), Into::into);
        let frame = frames.index(Link { function: name, ..plain("") });
        events.push(Event { r#type: 'O', frame, at: call.start_ns });
        events.push(Event { r#type: 'C', frame, at: call.end_ns });
    }
    Profile::Evented {
        name: format!("windows of {}", lane.name()),
        unit: "nanoseconds",
        start: lane.calls.first().map_or(0, |c| c.start_ns),
        end: lane.calls.last().map_or(0, |c| c.end_ns),
        events,
    }
}
