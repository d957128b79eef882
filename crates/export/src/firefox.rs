//! Writes Firefox Profiler's processed profile, by samply's crate: a thread for each process with
//! its calls, and the calls that windows saw as markers.
//!
//! Samples carry the value as their weight and have no time of their own: a row's calls are spread
//! over its process's life, and all stand at its start. Markers have the times that windows saw.

use crate::error::ExportError;
use crate::judged_recording::{JudgedRecording, KERNEL, Link, Value, short};
use crate::lanes::{Lane, SeenCall, lanes};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags, MarkerFieldFormat,
    MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp, WeightType,
};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;
use systoll_model::{InertJson, Process, ProcessId};
use systoll_present::{call_text, clean};

/// A call that a window saw.
struct CallMarker {
    name: StringHandle,
    text: StringHandle,
    nth: f64,
}

impl StaticSchemaMarker for CallMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "systoll-call";
    const DESCRIPTION: Option<&'static str> = Some("A sampled system call");
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.call}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.call}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        StaticSchemaMarkerField {
            key: "call",
            label: "Call",
            format: MarkerFieldFormat::String,
            flags: MarkerFieldFlags::SEARCHABLE,
        },
        StaticSchemaMarkerField {
            key: "nth",
            label: "Which of its row",
            format: MarkerFieldFormat::Integer,
            flags: MarkerFieldFlags::empty(),
        },
    ];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.text
    }

    fn number_field_value(&self, _: u32) -> f64 {
        self.nth
    }
}

/// Writes the profile.
pub(crate) fn write(value: Value, judged: &JudgedRecording<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut builder = Builder::new(value, judged);
    builder.samples();
    for lane in lanes(judged.recording) {
        builder.markers(&lane);
    }
    let mut json = serde_json::to_value(&builder.profile).map_err(std::io::Error::from)?;
    put_weights(&mut json, value, &builder.weights);
    serde_json::to_writer(InertJson(out), &json).map_err(std::io::Error::from)?;
    Ok(())
}

/// A process image's handles in the profile.
struct Handles {
    process: ProcessHandle,
    /// The image's first thread, which has the samples.
    thread: ThreadHandle,
}

struct Builder<'a> {
    judged: &'a JudgedRecording<'a>,
    value: Value,
    profile: Profile,
    /// The handles of each process image.
    processes: Vec<Handles>,
    /// Process images whose first thread has markers.
    marked: BTreeSet<ProcessId>,
    /// Weights of samples. The crate's weights have 32 bits, so that a sample's weight is an index
    /// into these, from 1.
    weights: Vec<u64>,
}

impl<'a> Builder<'a> {
    fn new(value: Value, judged: &'a JudgedRecording<'a>) -> Self {
        let header = &judged.recording.header;
        let started = Duration::from_secs(header.started_unix);
        let started = ReferenceTimestamp::from_duration_since_unix_epoch(started);
        let mut profile = Profile::new(&clean(&judged.command()), started, SamplingInterval::from_millis(1));
        profile.set_symbolicated(true);
        let mut handles = |process: &Process| {
            let start = Timestamp::from_nanos_since_reference(process.start_ns);
            let name = clean(short(process.name()));
            let handle = profile.add_process(&name, process.pid, start);
            let thread = profile.add_thread(handle, process.pid, start, true);
            profile.set_thread_name(thread, &name);
            let kind = if value.is_time() { WeightType::TracingMs } else { WeightType::Samples };
            profile.set_thread_samples_weight_type(thread, kind);
            Handles { process: handle, thread }
        };
        let processes = judged.recording.processes.iter().map(&mut handles).collect();
        Self { judged, value, profile, processes, marked: BTreeSet::new(), weights: Vec::new() }
    }

    fn samples(&mut self) {
        let kernel = self.profile.add_category("System call", CategoryColor::Orange);
        let user = self.profile.add_category("User", CategoryColor::Yellow);
        let (judged, value) = (self.judged, self.value);
        for told in judged.rows().filter(|told| told.value(value) > 0) {
            let process = told.row.process;
            let Some(thread) = self.processes.get(process.0 as usize).map(|p| p.thread) else { continue };
            let start = Timestamp::from_nanos_since_reference(judged.recording.process(process).start_ns);
            for (whole, part) in judged.parts(&told, told.value(value)) {
                let links = whole.links.iter().rev();
                let frames: Vec<FrameInfo> = links.map(|link| self.frame(link, kernel, user)).collect();
                let stack = self.profile.intern_stack_frames(thread, frames.into_iter());
                self.weights.push(part);
                let which = i32::try_from(self.weights.len()).unwrap_or(i32::MAX);
                self.profile.add_sample(thread, start, stack, CpuDelta::ZERO, which);
            }
        }
        self.ends();
    }

    /// Adds a sample without weight at each end: the viewer shows the time from the first sample to
    /// the last.
    fn ends(&mut self) {
        let rec = self.judged.recording;
        for (process, handles) in rec.processes.iter().zip(&self.processes) {
            let last = if process.end_ns == 0 { rec.header.wall_ns } else { process.end_ns };
            let end = Timestamp::from_nanos_since_reference(last.max(process.start_ns));
            self.profile.add_sample(handles.thread, end, None, CpuDelta::ZERO, 0);
        }
    }

    fn frame(&mut self, link: &Link<'_>, kernel: CategoryHandle, user: CategoryHandle) -> FrameInfo {
        let category = if link.module == KERNEL { kernel } else { user };
        let name = clean(&link.function);
        let name = match (link.file, link.line) {
            (Some(file), Some(line)) => format!("{name} ({}:{line})", clean(file)),
            _ => name,
        };
        let frame = Frame::Label(self.profile.intern_string(&name));
        FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() }
    }

    fn markers(&mut self, lane: &Lane<'_>) {
        let Some(handles) = self.processes.get(lane.process.0 as usize) else { return };
        let thread = if self.marked.insert(lane.process) {
            handles.thread
        } else {
            let process = self.judged.recording.process(lane.process);
            let start = Timestamp::from_nanos_since_reference(process.start_ns);
            let tid = process.pid.wrapping_add(lane.thread);
            let thread = self.profile.add_thread(handles.process, tid, start, false);
            self.profile.set_thread_name(thread, &clean(&lane.name()));
            thread
        };
        for seen in &lane.calls {
            self.marker(thread, seen);
        }
    }

    fn marker(&mut self, thread: ThreadHandle, seen: &SeenCall<'_>) {
        let name = self.profile.intern_string(&seen.syscall.to_string());
        let text = self.profile.intern_string(&call_text(seen.call, seen.syscall));
        let [start, end] = [seen.start_ns, seen.end_ns].map(Timestamp::from_nanos_since_reference);
        let marker = CallMarker { name, text, nth: seen.call.nth as f64 };
        self.profile.add_marker(thread, MarkerTiming::Interval(start, end), marker);
    }
}

/// Replaces the samples' indices by their weights: calls, or milliseconds.
fn put_weights(json: &mut Json, value: Value, weights: &[u64]) {
    let threads = json.get_mut("threads").and_then(Json::as_array_mut).into_iter().flatten();
    for thread in threads {
        let column = thread.pointer_mut("/samples/weight").and_then(Json::as_array_mut);
        for weight in column.into_iter().flatten() {
            let which = weight.as_u64().and_then(|w| usize::try_from(w).ok()?.checked_sub(1));
            let real = which.and_then(|w| weights.get(w)).copied().unwrap_or(0);
            *weight = if value.is_time() { (real as f64 / 1e6).into() } else { real.into() };
        }
    }
}
