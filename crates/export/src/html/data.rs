//! Collects the data that the page's script draws: the report's JSON, rows with their stacks, and
//! windows as strace would write them.

use super::cut::Bounds;
use super::excerpt::{AROUND, Excerpt};
use super::timeline::timeline;
use crate::judged_recording::{JudgedRecording, JudgedRow, KERNEL, Link, Value as Drawn, short};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use systoll_judge::Finding;
use systoll_model::{Recording, Row, Stack, Window};
use systoll_present::{call_text, report_json};

/// Largest number of excerpts of sources in a page.
const SOURCES: usize = 60;
/// Largest length of a source line, characters.
const LINE: usize = 200;

/// Fields of the report's JSON that are copied into the page.
const KEPT: [&str; 25] = [
    "requests",
    "systoll",
    "exit",
    "backend",
    "exact",
    "lost",
    "uncounted",
    "wall_ns",
    "own_cpu_ns",
    "own_cpu_least_ns",
    "own_cpu_most_ns",
    "crossing_ns",
    "observer_ns_per_call",
    "started_unix",
    "host",
    "calls",
    "toll_ns",
    "toll_estimated",
    "waited_ns",
    "needless_toll_ns",
    "starting_ns",
    "forking_ns",
    "told",
    "prices",
    "problems",
];

/// Returns excerpts around the lines that findings name, as far as they can be read.
pub(super) fn sources(judged: &JudgedRecording<'_>, read: &mut dyn FnMut(&str, u32) -> Option<Excerpt>) -> Vec<Value> {
    let mut told = Vec::new();
    let mut seen = BTreeSet::new();
    for finding in judged.judgement.findings.iter().chain(&judged.judgement.also) {
        let strands = judged.judgement.strands(judged.recording);
        for (file, line) in places(judged.recording, strands, finding) {
            if told.len() >= SOURCES || !seen.insert((file, line)) {
                continue;
            }
            if let Some(excerpt) = read(file, line) {
                let cut = |text: &String| text.chars().take(LINE).collect::<String>();
                let text: Vec<String> = excerpt.text.iter().take(2 * AROUND as usize + 1).map(cut).collect();
                told.push(json!({"file": file, "line": line, "first": excerpt.first, "text": text}));
            }
        }
    }
    told
}

/// Returns the files and lines of a finding: those of its user's frame, and its scripts' lines.
fn places<'a>(rec: &'a Recording, strands: &Recording, finding: &Finding) -> Vec<(&'a str, u32)> {
    let rows = finding.strands.iter().filter_map(|id| strands.rows.get(id.0 as usize));
    let lines = rows.flat_map(|row| row.lines.iter().map(|line| line.frame));
    let frames = finding.user.into_iter().chain(lines);
    frames
        .filter_map(|id| {
            let place = rec.frame(id).location()?;
            Some((place.file.as_deref()?, place.line?))
        })
        .collect()
}

/// Returns all data of the page, within `bounds`.
pub(super) fn data(judged: &JudgedRecording<'_>, sources: &[Value], bounds: &Bounds) -> Value {
    let rec = judged.recording;
    let mut report = report_json(&slim(rec, bounds), judged.judgement, None);
    let mut data = Map::new();
    for field in KEPT {
        data.insert(field.into(), report.get_mut(field).map(Value::take).unwrap_or_default());
    }
    data.insert("command".into(), judged.command().into());
    data.insert("startup_calls".into(), rec.total().startup_calls.into());
    data.insert("sources".into(), sources.iter().map(|s| s.to_owned()).collect());
    let mut left_out = 0;
    for list in ["findings", "also", "rounds"] {
        let mut all = report.get_mut(list).map(Value::take).unwrap_or_default();
        if let Some(all) = all.as_array_mut() {
            left_out += all.len().saturating_sub(bounds.findings);
            all.truncate(bounds.findings);
        }
        data.insert(list.into(), all);
    }
    data.insert("timeline".into(), timeline(judged));
    let mut data = Value::Object(data);
    bounds.apply(&mut data);
    let causes: Vec<Option<&str>> = judged.rows().map(|told| told.cause).collect();
    let windows = windows(rec, &causes, bounds);
    let table = Table::of(judged, bounds);
    data["left_out"] = json!({"findings": left_out, "windows": rec.windows.len().saturating_sub(windows.len())});
    data["windows"] = windows.into();
    data["frames"] = table.frames.into();
    data["rows"] = table.rows.into();
    data
}

/// Returns the part of a recording that the report's JSON needs: without stacks, which the page has
/// in its own form, and with short names.
fn slim(rec: &Recording, bounds: &Bounds) -> Recording {
    let cut = |text: &Arc<str>| -> Arc<str> {
        if text.len() > bounds.text { bounds.text(text).into() } else { text.clone() }
    };
    let stacks = rec.stacks.iter().map(|s| Stack { frames: Vec::new(), complete: s.complete }).collect();
    let mut slim = Recording {
        header: rec.header.clone(),
        processes: rec.processes.clone(),
        modules: rec.modules.clone(),
        frames: rec.frames.clone(),
        rows: rec.rows.clone(),
        prices: rec.prices.clone(),
        problems: rec.problems.clone(),
        // The verdict depends on whether there is a window.
        windows: rec.windows.iter().take(1).cloned().collect(),
        stacks,
        request_kinds: rec.request_kinds.clone(),
        ..Recording::default()
    };
    slim.request_kinds.iter_mut().for_each(|kind| kind.name = cut(&kind.name));
    for process in &mut slim.processes {
        process.exe = cut(&process.exe);
        process.argv.clear();
    }
    slim.modules.iter_mut().for_each(|m| m.path = cut(&m.path));
    slim.rows.iter_mut().for_each(|r| r.api = r.api.as_ref().map(cut));
    for location in slim.frames.iter_mut().flat_map(|f| &mut f.locations) {
        location.function = cut(&location.function);
        location.file = location.file.as_ref().map(cut);
    }
    slim
}

/// Rows, and the functions on their stacks, each once.
#[derive(Default)]
struct Table<'a> {
    frames: Vec<Value>,
    index: HashMap<Link<'a>, usize>,
    rows: Vec<Value>,
}

impl<'a> Table<'a> {
    /// Makes the table of the most expensive rows. The others are summed in one more row: all rows
    /// add up to the report's totals.
    fn of(judged: &JudgedRecording<'a>, bounds: &Bounds) -> Self {
        let mut all: Vec<JudgedRow<'a>> = judged.rows().collect();
        let cost =
            |t: &JudgedRow<'_>| (t.needless_ns, t.value(Drawn::Toll), t.value(Drawn::Waited), t.row.counts.calls);
        all.sort_by_key(|t| (Reverse(cost(t)), t.index));
        let rest = all.split_off(all.len().min(bounds.rows));
        let mut table = Self::default();
        for told in &all {
            let row = table.row(judged, told, bounds);
            table.rows.push(row);
        }
        if !rest.is_empty() {
            let row = table.rest(&rest);
            table.rows.push(row);
        }
        table
    }

    fn row(&mut self, judged: &JudgedRecording<'a>, told: &JudgedRow<'a>, bounds: &Bounds) -> Value {
        let rec = judged.recording;
        let row = told.row;
        let user = row.user.map(|id| rec.frame(id));
        let place = user.and_then(|frame| frame.location());
        let module = user.and_then(|frame| frame.module).map(|id| rec.module(id).file_name());
        let text = |text: Option<&str>| text.map(|t| bounds.text(t));
        let program = judged.program(row);
        let mut stacks: Vec<(Vec<usize>, u64)> = judged
            .stacks(told)
            .into_iter()
            .map(|whole| (self.stack(whole.links, row, program, bounds), whole.weight))
            .collect();
        let mut json = figures(told);
        json["syscall"] = row.syscall.to_string().into();
        json["program"] = bounds.text(program).into();
        json["api"] = text(row.api.as_deref()).into();
        json["function"] = text(place.map(|p| &*p.function)).into();
        json["file"] = text(place.and_then(|p| p.file.as_deref())).into();
        json["line"] = place.and_then(|p| p.line).into();
        json["module"] = text(module).into();
        json["cause"] = text(told.cause).into();
        if stacks.len() > 1 {
            let weighed = |(stack, weight): &(Vec<usize>, u64)| json!({"stack": stack, "weight": weight});
            json["stacks"] = stacks.iter().map(weighed).collect();
        }
        stacks.sort_by_key(|(_, weight)| Reverse(*weight));
        json["stack"] = stacks.into_iter().next().map(|(stack, _)| stack).unwrap_or_default().into();
        json
    }

    /// Returns the indices of a stack's functions, the program first, then outermost to innermost.
    fn stack(&mut self, mut links: Vec<Link<'a>>, row: &Row, program: &'a str, bounds: &Bounds) -> Vec<usize> {
        links.truncate(bounds.list);
        let api = row.api.as_ref().map(|_| 1);
        let frames = links.into_iter().enumerate().map(|(at, link)| {
            let kind = if link.module == KERNEL {
                "kernel"
            } else if Some(at) == api {
                "api"
            } else {
                "user"
            };
            self.frame(link, kind, bounds)
        });
        let mut stack: Vec<usize> = frames.collect();
        let outermost = Link { function: program.into(), module: "", file: None, line: None };
        stack.push(self.frame(outermost, "program", bounds));
        stack.reverse();
        stack
    }

    fn rest(&mut self, rest: &[JudgedRow<'a>]) -> Value {
        let name = format!("({} smaller rows)", rest.len());
        self.frames.push(json!({"name": name, "kind": "program", "place": ""}));
        let mut sum = json!({"syscall": name, "program": "", "api": null, "function": null, "file": null,
            "line": null, "module": null, "cause": null, "stack": [self.frames.len() - 1]});
        for told in rest {
            if let Value::Object(figures) = figures(told) {
                for (key, value) in figures {
                    let so_far = sum[&key].as_u64();
                    if let Some(value) = value.as_u64() {
                        sum[&key] = so_far.unwrap_or(0).saturating_add(value).into();
                    }
                }
            }
        }
        sum
    }

    fn frame(&mut self, link: Link<'a>, kind: &str, bounds: &Bounds) -> usize {
        if let Some(index) = self.index.get(&link) {
            return *index;
        }
        let place = match (link.file, link.line) {
            (Some(file), Some(line)) => format!("{}:{line}", bounds.text(file)),
            _ => bounds.text(link.module),
        };
        self.frames.push(json!({"name": bounds.text(&link.function), "kind": kind, "place": place}));
        self.index.insert(link, self.frames.len() - 1);
        self.frames.len() - 1
    }
}

fn figures(told: &JudgedRow<'_>) -> Value {
    let counts = &told.row.counts;
    json!({
        "calls": counts.calls, "errors": counts.failed(), "bytes": counts.bytes, "toll_ns": counts.toll_ns,
        "waited_ns": counts.waited_ns, "needless_calls": told.needless_calls, "needless_ns": told.needless_ns,
    })
}

/// Returns windows in the order of time: those with most calls of findings, then the latest others.
fn windows(rec: &Recording, causes: &[Option<&str>], bounds: &Bounds) -> Vec<Value> {
    let cause = |id: systoll_model::RowId| causes.get(id.0 as usize).copied().flatten();
    let mut all: Vec<&Window> = rec.windows.iter().collect();
    let claimed = |w: &Window| w.calls.iter().filter(|c| cause(c.row).is_some()).count();
    all.sort_by_key(|w| (Reverse(claimed(w)), Reverse(w.calls.first().map(|c| c.entry_ns))));
    let window = |w: &&Window| {
        let calls: Vec<Value> = w
            .calls
            .iter()
            .take(bounds.list)
            .map(|c| {
                json!({
                    "at_ns": c.entry_ns, "took_ns": c.elapsed_ns, "cause": cause(c.row),
                    "text": bounds.text(&call_text(c, rec.row(c.row).syscall)),
                })
            })
            .collect();
        let row = rec.row(w.row);
        json!({
            "program": bounds.text(short(rec.process(w.process).name())), "thread": w.thread, "cause": cause(w.row),
            "opened_by": row.syscall.to_string(), "calls": calls,
        })
    };
    all.truncate(bounds.windows);
    all.sort_by_key(|w| w.calls.first().map(|c| c.entry_ns));
    all.iter().map(window).collect()
}
