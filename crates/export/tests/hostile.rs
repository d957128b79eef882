//! Tests that every format of a recording with any names, figures and handles is a valid file, adds
//! up to the report's totals, and treats names as text only.

use flate2::read::GzDecoder;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value as Json;
use std::io::Read;
use std::path::Component;
use std::sync::Arc;
use systoll_export::{Format, JudgedRecording, Labels, Value, export, for_fleet, html};
use systoll_judge::{Confidence, Estimate, Finding, Judgement, Kind, RowNeedless};
use systoll_model::*;

/// Names that some tool has taken for more than a name.
const NAMES: [&str; 24] = [
    "localtime",
    "",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!-- ",
    "]]><svg onload=alert(1)>",
    "=cmd|' /C calc'!A0",
    "@SUM(A1:A9)",
    "+1",
    "-2+3",
    "\t=1",
    "a;b;c 12",
    "x 99999",
    "\u{1b}]0;owned\u{7}\u{1b}[2J",
    "two\nlines\r\n# EOF",
    "'; DROP TABLE rows; --",
    "\"quoted\", \\backslash",
    "{\"json\": [1]}",
    "\u{202e}desrever",
    "\u{2028}\u{2029}\u{0}",
    "{data}{script}{style}{style-hash}",
    "__proto__",
    "javascript:alert(1)",
    "&lt;b&gt;&#x3c;",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0..NAMES.len()).prop_map(|i| NAMES[i].to_owned()),
        2 => any::<String>(),
        1 => (0..NAMES.len(), 1..2_000usize).prop_map(|(i, n)| NAMES[i].repeat(n)),
    ]
}

/// Returns a figure whose sums fit into 64 bits and, as a float, into 53.
fn figure() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..1_000u64, 1..(1u64 << 40)]
}

/// Returns a small recording with these names, in order of use, and figures.
fn recording() -> impl Strategy<Value = Recording> {
    let row = (any::<u32>(), vec(figure(), 8), any::<bool>());
    let window = (vec((any::<u64>(), any::<u64>(), vec(any::<u8>(), 0..40)), 1..6), any::<u32>());
    (vec(name(), 24), vec(row, 1..9), vec(window, 0..4), any::<u64>()).prop_map(|(names, rows, windows, started)| {
        let text = |i: usize| -> Arc<str> { names[i % names.len()].as_str().into() };
        let mut rec = Recording::default();
        rec.header.command = vec![names[0].clone(), names[1].clone()];
        rec.header.wall_ns = 5_000_000;
        rec.header.started_unix = started % (1 << 40);
        rec.header.host.cpu = names[2].clone();
        rec.problems.push(Problem::new(ProblemKind::Note, names[3].clone()));
        let process = Process { pid: 7, exe: text(4), instances: 1, end_ns: 4_000_000, ..Process::default() };
        rec.processes = vec![process.clone(), Process { exe: text(5), parent: Some(ProcessId(0)), ..process }];
        rec.modules = vec![Module { path: text(6), build_id: None }];
        for i in 0..4 {
            let location = Location { function: text(7 + i), file: Some(text(12 + i)), line: Some(i as u32) };
            rec.frames.push(Frame { module: Some(ModuleId(0)), locations: vec![location], ..Frame::default() });
        }
        rec.stacks = vec![
            Stack::default(),
            Stack { frames: vec![FrameId(0), FrameId(1)], complete: false },
            Stack { frames: vec![FrameId(2), FrameId(3)], complete: true },
        ];
        for (number, figures, known) in rows {
            let counts = Counts {
                calls: figures[0],
                bytes: figures[1],
                toll_ns: known.then_some(figures[2]),
                waited_ns: known.then_some(figures[3]),
                elapsed_ns: figures[4],
                max_ns: figures[5],
                ..Counts::default()
            };
            rec.rows.push(Row {
                process: ProcessId(number % 2),
                syscall: Sysno(number % 600),
                context: StackId(number % 3),
                outer: StackId((number / 3) % 3),
                api: known.then(|| text(17)),
                api_module: known.then_some(ModuleId(0)),
                user: (number % 5 > 0).then_some(FrameId(number % 4)),
                lines: vec![],
                counts,
            });
        }
        for (calls, thread) in windows {
            let call = |(n, at, bytes): (u64, u64, Vec<u8>)| WindowCall {
                row: RowId((n % rec.rows.len() as u64) as u32),
                nth: n,
                args: [n, at, n, at, n, at],
                data: vec![ArgData { arg: 1, at: Moment::Entry, bytes, cut: n % 2 == 0 }],
                fd: Some(text(18)),
                result: Some(n as i64),
                entry_ns: at,
                elapsed_ns: n,
                waited_ns: None,
                signals_before: 0,
                faults: None,
                stack: None,
                before: systoll_model::Before::Unknown,
                request: None,
            };
            let calls: Vec<WindowCall> = calls.into_iter().map(call).collect();
            rec.windows.push(Window { process: ProcessId(thread % 2), thread, row: calls[0].row, octave: 1, calls });
        }
        rec.check().expect("a sound recording");
        rec
    })
}

fn judgement(rec: &Recording, names: &[&str]) -> Judgement {
    let rows: Vec<RowId> = (0..rec.rows.len() as u32).step_by(2).map(RowId).collect();
    let by_row: Vec<RowNeedless> = rows
        .iter()
        .map(|id| RowNeedless {
            calls: rec.row(*id).counts.calls / 2,
            toll_ns: rec.row(*id).counts.toll_ns.unwrap_or(0),
        })
        .collect();
    let estimate = by_row.iter().map(|r| r.calls).sum();
    let finding = Finding {
        cause: Some(names[0].into()),
        kind: Kind::Repeat,
        confidence: Confidence::High,
        syscalls: vec![rec.rows[0].syscall],
        apis: vec![names[1].into()],
        user: Some(FrameId(0)),
        what: Some(names[2].into()),
        calls: estimate,
        needless: Estimate { estimate, low: 0, high: estimate },
        needless_toll_ns: by_row.iter().map(|r| r.toll_ns).sum(),
        by_row,
        rows,
        share_of_calls: 0.5,
        why: names[3].into(),
        prove: vec![names[4].into()],
        ..Finding::default()
    };
    Judgement { findings: vec![finding.clone()], also: vec![finding], ..Judgement::default() }
}

fn written(format: Format, value: Value, judged: &JudgedRecording<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    export(format, value, judged, &mut out).expect("written");
    out
}

fn total(rec: &Recording, judgement: &Judgement, value: Value) -> u64 {
    match value {
        Value::Toll => rec.total().toll_ns.unwrap_or(0),
        Value::Waited => rec.total().waited_ns.unwrap_or(0),
        Value::Calls => rec.calls(),
        Value::Needless => judgement.findings.iter().map(|f| f.needless_toll_ns).sum(),
    }
}

fn text_formats(judged: &JudgedRecording<'_>, sum: u64, value: Value) {
    let collapsed = String::from_utf8(written(Format::Collapsed, value, judged)).expect("UTF-8");
    let numbers = collapsed.lines().map(|line| line.rsplit_once(' ').expect("a number").1.parse::<u64>().expect("one"));
    assert_eq!(numbers.sum::<u64>(), sum);
    assert!(!collapsed.chars().any(|c| c.is_control() && c != '\n'), "{collapsed:?}");

    let metrics = String::from_utf8(written(Format::Openmetrics, value, judged)).expect("UTF-8");
    assert!(metrics.ends_with("\n# EOF\n") && metrics.matches("# EOF\n").count() == 1);
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (series, rest) = line.rsplit_once("} ").expect("labels");
        assert!(series.starts_with("systoll_") && rest.split(' ').all(|n| n.parse::<f64>().is_ok()), "{line:?}");
        assert!(!line.chars().any(char::is_control));
    }
}

fn csv_holds(judged: &JudgedRecording<'_>, rec: &Recording, judgement: &Judgement) {
    let text = written(Format::Csv, Value::Toll, judged);
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let head = reader.headers().expect("a head").clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.expect("a row")).collect();
    assert_eq!(rows.len(), rec.rows.len());
    let column = |name: &str| head.iter().position(|h| h == name).expect("a column");
    let sum = |name: &str| rows.iter().map(|r| r[column(name)].parse::<u64>().unwrap_or(0)).sum::<u64>();
    assert_eq!(sum("calls"), rec.calls());
    assert_eq!(sum("toll_ns"), rec.total().toll_ns.unwrap_or(0));
    assert_eq!(sum("needless_ns"), total(rec, judgement, Value::Needless));
    for cell in rows.iter().flatten() {
        assert!(
            !cell.starts_with(['=', '+', '-', '@', '\t', '\r'])
                && !cell.contains(|c: char| c.is_control() && c != '\t'),
            "{cell:?}"
        );
    }
}

fn json_formats(judged: &JudgedRecording<'_>, sum: u64, value: Value) {
    let read = |format| serde_json::from_slice::<Json>(&written(format, value, judged)).expect("JSON");
    let speedscope = read(Format::Speedscope);
    let active = speedscope["activeProfileIndex"].as_u64().expect("an index") as usize;
    let profile = &speedscope["profiles"][active];
    assert_eq!(profile["weights"].as_array().expect("weights").iter().filter_map(Json::as_u64).sum::<u64>(), sum);
    let frames = speedscope["shared"]["frames"].as_array().expect("frames").len() as u64;
    for profile in speedscope["profiles"].as_array().expect("profiles") {
        let ids = profile["samples"].as_array().into_iter().flatten().flat_map(|s| s.as_array().expect("a stack"));
        assert!(ids.filter_map(Json::as_u64).all(|id| id < frames));
        let times: Vec<u64> =
            profile["events"].as_array().into_iter().flatten().filter_map(|e| e["at"].as_u64()).collect();
        assert!(times.is_sorted(), "{times:?}");
    }
    let firefox = read(Format::Firefox);
    let threads = firefox["threads"].as_array().expect("threads");
    let weights = threads.iter().flat_map(|t| t["samples"]["weight"].as_array().expect("weights"));
    let told: f64 = weights.filter_map(Json::as_f64).sum::<f64>() * if value.is_time() { 1e6 } else { 1.0 };
    assert!((told - sum as f64).abs() <= 1e-9 * sum as f64 + 1e-3, "{told} of {sum}");
    let perfetto = read(Format::Perfetto);
    let what = match value {
        Value::Calls => "calls of ".to_owned(),
        Value::Toll => "cost ns of ".to_owned(),
        other => format!("{} ns of ", other.name()),
    };
    let counters = perfetto["traceEvents"].as_array().expect("events").iter();
    let of = counters.filter(|e| e["ph"] == "C" && e["name"].as_str().is_some_and(|n| n.starts_with(&what)));
    assert_eq!(of.filter_map(|e| e["args"]["total"].as_u64()).sum::<u64>(), sum);
}

fn binary_and_picture(judged: &JudgedRecording<'_>, rec: &Recording, sum: u64, value: Value) {
    let pprof = written(Format::Pprof, value, judged);
    let mut bytes = Vec::new();
    GzDecoder::new(pprof.as_slice()).read_to_end(&mut bytes).expect("gzip");
    let back = Recording::read(pprof.as_slice()).expect("a profile");
    assert_eq!(back.calls(), rec.calls());
    let mut picture = Vec::new();
    match export(Format::Flamegraph, value, judged, &mut picture) {
        Err(error) => assert!(sum == 0, "{error}"),
        Ok(()) => {
            let mut reader = quick_xml::Reader::from_reader(picture.as_slice());
            let mut scripts = 0;
            loop {
                match reader.read_event().expect("XML") {
                    quick_xml::events::Event::Eof => break,
                    quick_xml::events::Event::Start(tag) => {
                        scripts += usize::from(tag.name().as_ref() == b"script");
                        for attribute in tag.attributes() {
                            let key = attribute.expect("an attribute").key;
                            assert!(!key.as_ref().starts_with(b"on") || tag.name().as_ref() == b"svg");
                        }
                    }
                    _ => {}
                }
            }
            assert_eq!(scripts, 1);
        }
    }
}

fn page_holds(judged: &JudgedRecording<'_>, rec: &Recording) {
    let mut source = |_: &str, line: u32| {
        Some(html::Excerpt { first: line.max(1), text: NAMES.iter().map(|n| n.replace('\n', " ")).collect() })
    };
    let page = html::page(judged, &mut source);
    assert!(page.len() <= html::MOST, "{} bytes", page.len());
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
    let data = page.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>")).expect("data").0;
    assert!(!data.contains(['<', '>', '&']));
    let data: Json = serde_json::from_str(data).expect("JSON");
    let rows = data["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().filter_map(|r| r["calls"].as_u64()).sum::<u64>(), rec.calls());
    // Lines over time end at the totals, if there are any.
    let lines = data["timeline"]["series"].as_array().expect("lines");
    let last = |line: &Json| line["calls"].as_array().and_then(|c| c.last()?.as_u64());
    assert!(lines.is_empty() || lines.iter().filter_map(last).sum::<u64>() == rec.calls(), "{lines:?}");
    assert_eq!(rows.iter().filter_map(|r| r["toll_ns"].as_u64()).sum::<u64>(), rec.total().toll_ns.unwrap_or(0));
}

fn table_holds(judged: &JudgedRecording<'_>, name: &str) {
    let labels = Labels { service: name.into(), release: name.into(), host: name.into() };
    let (place, bytes) = for_fleet(judged, &labels).expect("written");
    let parts: Vec<_> = place.components().collect();
    let is_name = |part: &Component| matches!(part, Component::Normal(name) if name.len() <= 255);
    assert!(parts.len() == 4 && parts.iter().all(is_name), "{place:?}");
    assert!(place.to_str().is_some_and(|text| text.is_ascii() && !text.contains(char::is_control)), "{place:?}");
    let (ends, length) = (b"PAR1", bytes.len().checked_sub(8).and_then(|at| bytes.get(at..at + 4)));
    let footer = length.and_then(|length| length.try_into().ok()).map(u32::from_le_bytes).expect("a footer");
    assert!(bytes.starts_with(ends) && bytes.ends_with(ends) && footer as usize <= bytes.len() - 12, "{footer}");
}

fn all_formats_hold(judged: &JudgedRecording<'_>, rec: &Recording, judgement: &Judgement) {
    for value in Value::ALL {
        let sum = total(rec, judgement, value);
        text_formats(judged, sum, value);
        json_formats(judged, sum, value);
        binary_and_picture(judged, rec, sum, value);
    }
    csv_holds(judged, rec, judgement);
    page_holds(judged, rec);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_are_nothing_but_text(rec in recording(), names in vec(0..NAMES.len(), 5)) {
        let names: Vec<&str> = names.into_iter().map(|i| NAMES[i]).collect();
        let judgement = judgement(&rec, &names);
        let judged = JudgedRecording::new(&rec, &judgement);
        all_formats_hold(&judged, &rec, &judgement);
        names.iter().for_each(|name| table_holds(&judged, name));
    }
}

#[test]
fn names_of_a_million_letters_and_thousands_of_rows_fit_a_page() {
    let long: Arc<str> = "<b>ü".repeat(250_000).into();
    let mut rec = Recording::default();
    rec.header.command = vec![long.to_string()];
    rec.header.wall_ns = 1;
    rec.processes.push(Process { exe: long.clone(), instances: 1, ..Process::default() });
    rec.modules.push(Module { path: long.clone(), build_id: None });
    for n in 0..40u32 {
        let location = Location { function: format!("{n}{long}").into(), file: Some(long.clone()), line: Some(n) };
        rec.frames.push(Frame { module: Some(ModuleId(0)), locations: vec![location], ..Frame::default() });
    }
    for n in 0..5_000u32 {
        rec.stacks.push(Stack { frames: (0..30).map(|k| FrameId((n * 7 + k) % 40)).collect(), complete: true });
        rec.rows.push(Row {
            context: StackId(n),
            outer: StackId(n),
            user: Some(FrameId(n % 40)),
            ..Row::new(
                ProcessId(0),
                Sysno(n % 300),
                Counts { calls: 1, toll_ns: Some(u64::from(n)), ..Counts::default() },
            )
        });
    }
    let judgement = Judgement::default();
    let judged = JudgedRecording::new(&rec, &judgement);
    page_holds(&judged, &rec);
    // Names are cut: a format that repeats them stays small.
    let stacks = written(Format::Collapsed, Value::Toll, &judged).len() / rec.rows.len();
    assert!(stacks < 60 * 2_048, "{stacks} bytes a row");
}

#[test]
fn names_of_a_million_letters_go_through_every_format() {
    for hostile in ["<b>ü", "\u{1b}]0;a\u{7}", "=1;'\"--\n", "]]>&#x3c;"] {
        let long: Arc<str> = hostile.repeat(1_000_000 / hostile.len()).into();
        let mut rec = Recording::default();
        rec.header.command = vec![long.to_string(), long.to_string()];
        rec.header.node = long.to_string();
        rec.header.wall_ns = 1;
        rec.processes.push(Process { exe: long.clone(), instances: 1, ..Process::default() });
        rec.modules.push(Module { path: long.clone(), build_id: None });
        let location = Location { function: long.clone(), file: Some(long.clone()), line: Some(1) };
        rec.frames.push(Frame { module: Some(ModuleId(0)), locations: vec![location], ..Frame::default() });
        rec.stacks.push(Stack { frames: vec![FrameId(0); 30], complete: true });
        rec.rows.push(Row {
            api: Some(long.clone()),
            api_module: Some(ModuleId(0)),
            user: Some(FrameId(0)),
            ..Row::new(
                ProcessId(0),
                Sysno(0),
                Counts { calls: 3, toll_ns: Some(5), waited_ns: Some(7), ..Counts::default() },
            )
        });
        let names: Vec<&str> = vec![&long; 5];
        let judgement = judgement(&rec, &names);
        let judged = JudgedRecording::new(&rec, &judgement);
        all_formats_hold(&judged, &rec, &judgement);
        table_holds(&judged, &long);
        // Each name is cut wherever it is repeated. A profile that can be read back holds it once
        // and whole.
        for format in Format::ALL.into_iter().filter(|format| *format != Format::Pprof) {
            let size = written(format, Value::Toll, &judged).len();
            assert!(size < 400_000, "{format:?}: {size} bytes");
        }
    }
}
