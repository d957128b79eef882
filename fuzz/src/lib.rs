//! Functions that the fuzz targets and the tests on stable Rust call with bytes.
//!
//! Each takes input that a stranger can hand in and tests what the crates promise about it: a panic
//! is a finding. Invariant: nothing here touches a file or a process, except for the seeds, which
//! read programs of the system.
#![forbid(unsafe_code)]

mod agents;
mod ledgers;
pub mod mutate;
mod packets;
mod received;
pub mod seeds;
pub mod traces;
mod watched;

pub use agents::{clients, mcp};
pub use ledgers::{ledger, ledgers};
pub use received::{request, requests};
pub use watched::{IMAGE_BYTES, image, plan, shared, stack, stored, target};

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use systoll_compare::{Budget, Run, Side, Tracked, Wanted, diff, hold, learn};
use systoll_judge::{By, Catalogue, Judgement, Options, grouped, judge};
use systoll_model::Recording;
use systoll_present::{
    BudgetReport, DiffOptions, ReportOptions, Style, TableOptions, bencher_json, benchmark_json, diff_json,
    report_json, sarif_json, write_check, write_diff, write_diff_markdown, write_github, write_grouping, write_junit,
    write_report, write_strace_table, write_vim,
};

/// Reads a recording's file like `systoll report`. Bytes that are not gzip are packed first: gzip's
/// checksum would otherwise refuse nearly every change.
pub fn recording(data: &[u8]) {
    let packed = if data.starts_with(&[0x1f, 0x8b]) { data.to_vec() } else { pack(data) };
    let Ok(read) = Recording::read(packed.as_slice()) else { return };
    assert_eq!(read.check(), Ok(()), "a recording that was read is whole");
    told(&read, &Catalogue::builtin());
    compared(&read);
    let mut again = Vec::new();
    read.write(&mut again).expect("what was read can be written");
    let reread = Recording::read(again.as_slice()).expect("what was written can be read");
    assert_eq!(reread.calls(), read.calls(), "counts survive");
}

/// Reads a trace of another tool like `systoll import`.
pub fn trace(data: &[u8]) {
    let mut import = systoll_import::Import::new(7);
    if import.read("trace.12", data).is_err() {
        return;
    }
    let Ok(mut read) = import.finish() else { return };
    assert_eq!(read.check(), Ok(()), "a trace that was read is a whole recording");
    systoll_import::price(&mut read, systoll_model::Prices::default(), |_, _| None);
    told(&read, &Catalogue::builtin());
    let mut file = Vec::new();
    read.write(&mut file).expect("what was read can be written");
    let reread = Recording::read(file.as_slice()).expect("what was written can be read");
    assert_eq!(reread.calls(), read.calls(), "counts survive");
}

/// Reads an ELF file that a target has mapped.
pub fn file(data: &[u8]) {
    let seed = data.iter().take(64).fold(1, |sum: u64, b| sum.wrapping_mul(257).wrapping_add(u64::from(*b)));
    systoll_symbols::fuzzing::use_file(data.to_vec(), seed);
}

/// Reads a cause that a user wrote, and judges a run with it.
pub fn cause(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(cause) = Catalogue::parse("any.toml", text) else { return };
    let mut catalogue = Catalogue::builtin();
    catalogue.extend([cause]);
    told(&seeds::run(), &catalogue);
}

/// Reads a budget for `systoll check`, holds a run against it, and learns it from the run.
pub fn budget(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(budget) = Budget::parse(text) else { return };
    let recording = seeds::run();
    let judgement = judge(&recording, &Catalogue::builtin(), &Options::default());
    let units = budget.per.as_ref().and_then(|per| per.count("served 12 requests\n"));
    let runs = [Run { recording: &recording, judgement: &judgement, units }];
    let held = hold(&budget, &runs);
    let command = ["app".to_owned()];
    let report = BudgetReport { held: &held, budget: "b.toml", command: &command, root: "/" };
    let mut told = Vec::new();
    write_check(&mut told, &report, true, &Style::default()).expect("a vector takes all");
    write_junit(&mut told, &report).expect("a vector takes all");
    write_github(&mut told, &report).expect("a vector takes all");
    write_vim(&mut told, &report).expect("a vector takes all");
    for json in [sarif_json(&report, "0"), bencher_json(&report), benchmark_json(&report)] {
        serde_json::to_writer(&mut told, &json).expect("JSON has no bad values");
    }
    if let Ok(learnt) = learn(Some(text), None, &runs) {
        let again = Budget::parse(&learnt).expect("what is written anew can be read");
        assert_eq!(hold(&again, &runs).broken(), 0, "what was learnt holds: {learnt}");
    }
}

/// Compares a recording that was read with one of ours, both ways.
fn compared(read: &Recording) {
    let judgements = [Judgement::default()];
    let (ours, theirs) = ([seeds::run()], [read.clone()]);
    let side = |recordings| Side { recordings, judgements: &judgements };
    let mut told = Vec::new();
    for by in systoll_compare::By::ALL {
        assert!(diff(side(&theirs), side(&theirs), by).is_empty(), "it is as itself");
        for diff in [diff(side(&ours), side(&theirs), by), diff(side(&theirs), side(&ours), by)] {
            let options = DiffOptions { all: true, limit: None };
            write_diff(&mut told, &diff, options, &Style { color: true, width: 60, whole_names: false })
                .expect("a vector takes all");
            write_diff_markdown(&mut told, &diff, options).expect("a vector takes all");
            serde_json::to_writer(&mut told, &diff_json(&diff, "0")).expect("JSON has no bad values");
        }
    }
    if let Some(tracked) = Tracked::of(&Wanted::Largest, &ours[0], &theirs[0]) {
        tracked.places(read);
    }
}

/// Makes every output that systoll makes of a recording.
fn told(recording: &Recording, catalogue: &Catalogue) {
    let judgement = judge(recording, catalogue, &Options::default());
    assert_eq!(judgement, judge(recording, catalogue, &Options::default()), "judging is repeatable");
    let style = Style { color: true, width: 60, whole_names: false };
    let options = ReportOptions { all: true, longer_ns: Some(0), stacks: true, fds: true, ..ReportOptions::default() };
    let mut text = Vec::new();
    write_report(&mut text, recording, &judgement, &options, &style).expect("a vector takes all");
    write_strace_table(&mut text, recording, &TableOptions::default(), &style).expect("a vector takes all");
    let everything = [By::Caller, By::Api, By::Library, By::Line, By::Process, By::Thread, By::Fd];
    for grouping in everything.map(|by| grouped(recording, by, None)) {
        write_grouping(&mut text, recording, &grouping, None, &options, &style).expect("a vector takes all");
        let json = report_json(recording, &judgement, Some(&grouping));
        serde_json::to_writer(&mut text, &json).expect("JSON has no bad values");
    }
    let json = report_json(recording, &judgement, None);
    serde_json::to_writer(&mut text, &json).expect("JSON has no bad values");
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let written = gzip.write_all(bytes).and_then(|()| gzip.finish());
    written.expect("a vector takes all")
}
