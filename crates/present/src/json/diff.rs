//! The JSON of `systoll diff --json` (docs/reference/json.md, docs/reference/diff.schema.json).

use super::common::SCHEMA_VERSION;
use super::parts::finite;
use crate::diff::note_text;
use serde::Serialize;
use serde_json::Value;
use systoll_compare::{
    Change, Diff, Figures, FindingChange, Range, RoundChange, RoundFigures, Summary, Verdict, WaitChange, WallChange,
};

#[derive(Serialize)]
struct WireDiff<'a> {
    systoll: super::wire::Version<'a>,
    by: &'static str,
    old: Side<'a>,
    new: Side<'a>,
    changed: Vec<WireChange<'a>>,
    varying: Vec<WireChange<'a>>,
    same: u64,
    hidden: u64,
    findings_new: Vec<WireFinding<'a>>,
    findings_gone: Vec<WireFinding<'a>>,
    rounds: Vec<WireRound<'a>>,
    wall: Option<WireWall<'a>>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct WireWall<'a> {
    old_ns: WireRange,
    new_ns: WireRange,
    waits: Vec<WireWait<'a>>,
}

#[derive(Serialize)]
struct WireWait<'a> {
    waits_for: &'static str,
    syscall: String,
    place: Option<WirePlace<'a>>,
    old_ns: WireRange,
    new_ns: WireRange,
}

#[derive(Serialize)]
struct Side<'a> {
    command: &'a [String],
    runs: u64,
    exact: bool,
    calls: WireRange,
    toll_ns: Option<u64>,
    own_cpu_ns: Option<u64>,
}

#[derive(Serialize)]
struct WireRange {
    low: u64,
    median: u64,
    high: u64,
}

#[derive(Serialize)]
struct WireFigures {
    calls: WireRange,
    failed: WireRange,
    toll_ns: Option<u64>,
}

#[derive(Serialize)]
struct WirePlace<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
}

#[derive(Serialize)]
struct WireChange<'a> {
    syscall: Option<String>,
    api: Option<&'a str>,
    function: Option<&'a str>,
    library: Option<&'a str>,
    program: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    old: WireFigures,
    new: WireFigures,
    verdict: &'static str,
    place: Option<WirePlace<'a>>,
    object: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beneath: Vec<WireChange<'a>>,
}

#[derive(Serialize)]
struct WireFinding<'a> {
    id: &'a str,
    syscall: Option<String>,
    what: Option<&'a str>,
    function: Option<&'a str>,
    needless_calls: u64,
    needless_toll_ns: u64,
}

#[derive(Serialize)]
struct WireRound<'a> {
    program: Option<&'a str>,
    place: Option<WirePlace<'a>>,
    old: WireRoundFigures,
    new: WireRoundFigures,
}

#[derive(Serialize)]
struct WireRoundFigures {
    count: WireRange,
    calls: Vec<WireRoundPart>,
    toll_ns: u64,
}

#[derive(Serialize)]
struct WireRoundPart {
    syscall: String,
    each: Option<f64>,
}

/// Converts the changes to one JSON object. `version` is that of systoll.
pub fn diff_json(diff: &Diff, version: &str) -> Value {
    let wire = WireDiff {
        systoll: super::wire::Version { version, schema: SCHEMA_VERSION },
        by: diff.by.name(),
        old: side(&diff.old),
        new: side(&diff.new),
        changed: diff.changed.iter().map(change).collect(),
        varying: diff.varying.iter().map(change).collect(),
        same: diff.same as u64,
        hidden: diff.hidden as u64,
        findings_new: diff.findings_new.iter().map(finding).collect(),
        findings_gone: diff.findings_gone.iter().map(finding).collect(),
        rounds: diff.rounds.iter().map(round).collect(),
        wall: diff.wall.as_ref().map(wall),
        notes: diff.notes.iter().map(note_text).collect(),
    };
    // This can't fail: the structs are plain and have string keys.
    serde_json::to_value(wire).unwrap_or_default()
}

fn side(side: &Summary) -> Side<'_> {
    Side {
        command: &side.command,
        runs: side.runs as u64,
        exact: side.exact,
        calls: range(side.calls),
        toll_ns: side.toll_ns,
        own_cpu_ns: side.own_cpu_ns,
    }
}

fn wall(change: &WallChange) -> WireWall<'_> {
    let waits = change.waits.iter().map(wait).collect();
    WireWall { old_ns: range(change.old_ns), new_ns: range(change.new_ns), waits }
}

fn wait(wait: &WaitChange) -> WireWait<'_> {
    WireWait {
        waits_for: wait.class.name(),
        syscall: wait.syscall.to_string(),
        place: wait.place.as_ref().map(place),
        old_ns: range(wait.old_ns),
        new_ns: range(wait.new_ns),
    }
}

fn range(range: Range) -> WireRange {
    WireRange { low: range.low, median: range.median, high: range.high }
}

fn figures(figures: &Figures) -> WireFigures {
    WireFigures { calls: range(figures.calls), failed: range(figures.failed), toll_ns: figures.toll_ns }
}

fn change(change: &Change) -> WireChange<'_> {
    let key = &change.key;
    WireChange {
        syscall: key.syscall.map(|s| s.to_string()),
        api: key.api.as_deref(),
        function: key.function.as_deref(),
        library: key.library.as_deref(),
        program: key.program.as_deref(),
        file: key.file.as_deref(),
        line: key.line,
        old: figures(&change.old),
        new: figures(&change.new),
        verdict: match change.verdict {
            Verdict::Changed => "changed",
            Verdict::Varies => "varies",
            Verdict::ByChance(chance) => chance.name(),
        },
        place: change.place.as_ref().map(place),
        object: change.object.as_deref(),
        beneath: change.beneath.iter().map(self::change).collect(),
    }
}

fn place(place: &systoll_compare::SourcePlace) -> WirePlace<'_> {
    WirePlace { function: &place.function, file: place.file.as_deref(), line: place.line }
}

fn round(change: &RoundChange) -> WireRound<'_> {
    let figures = |figures: &RoundFigures| WireRoundFigures {
        count: range(figures.count),
        calls: figures
            .calls
            .iter()
            .map(|part| WireRoundPart { syscall: part.syscall.to_string(), each: finite(part.each) })
            .collect(),
        toll_ns: figures.toll_ns,
    };
    WireRound {
        program: change.program.as_deref(),
        place: change.place.as_ref().map(place),
        old: figures(&change.old),
        new: figures(&change.new),
    }
}

fn finding(finding: &FindingChange) -> WireFinding<'_> {
    WireFinding {
        id: &finding.id,
        syscall: finding.syscall.map(|s| s.to_string()),
        what: finding.what.as_deref(),
        function: finding.user.as_deref(),
        needless_calls: finding.needless,
        needless_toll_ns: finding.toll_ns,
    }
}
