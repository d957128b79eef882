//! Tests of rows whose calls are about several objects: each object is judged by itself.

use crate::common::{Call, call, judged, recording, rounds, stat};
use systoll_judge::{Catalogue, Finding, Judgement, Options, judge};

const BUSY: u64 = 20_000_000;

fn cause<'a>(judgement: &'a Judgement, id: &str) -> &'a Finding {
    let of = |f: &&Finding| f.cause.as_deref() == Some(id);
    judgement.findings.iter().find(of).unwrap_or_else(|| panic!("no {id}: {judgement:#?}"))
}

/// Returns the calls with which `fs.appendFileSync` writes a line of a log, or reads a whole file, all through one
/// function.
fn append(log: &'static str) -> Vec<Call> {
    let flags = 0o2001 | 0o100;
    vec![
        call("openat", "open", &[(-100i32) as u32 as u64, 1, flags, 0o666], 21).path(1, log).toll(2_000),
        call("write", "write", &[21, 1, 40], 40).fd(log).toll(1_500),
        call("close", "close", &[21], 0).fd(log).toll(400),
    ]
}

fn read_other(n: u64) -> Vec<Call> {
    let name = format!("/srv/users/{n}.json");
    let file: &'static str = Box::leak(name.into_boxed_str());
    vec![
        call("openat", "open", &[(-100i32) as u32 as u64, 1, 0, 0], 22).path(1, file).toll(2_000),
        call("read", "read", &[22, 1, 8192], 300).fd(file).output(1, &n.to_le_bytes()).toll(600),
        call("close", "close", &[22], 0).fd(file).toll(400),
    ]
}

#[test]
fn what_is_true_of_one_file_is_not_said_of_another() {
    let trace = rounds(5_000, |_| vec![stat("/etc/hostname", "stat", 1, 0), stat("/etc/localtime", "stat", 2, 0)]);
    // The rows have no callers, as in a trace without stacks.
    let mut rec = recording(&trace, BUSY);
    rec.rows.iter_mut().for_each(|row| (row.api, row.user) = (None, None));
    rec.stacks.iter_mut().for_each(|stack| stack.frames.clear());
    let judgement = judge(&rec, &Catalogue::builtin(), &Options::default());
    let (zone, name) = (cause(&judgement, "tz-unset"), cause(&judgement, "stat-per-op"));
    assert_eq!((zone.what.as_deref(), name.what.as_deref()), (Some("/etc/localtime"), Some("/etc/hostname")));
    for finding in [zone, name] {
        let about = finding.calls_about.expect("a part of the row");
        assert!((about.low..=about.high).contains(&5_000), "{about:?}");
        assert_eq!(finding.calls, 10_000, "its row is the same");
        assert!((4_800..=5_200).contains(&finding.needless.estimate), "{:?}", finding.needless);
        assert!(finding.needless.low < 5_000 && finding.needless.high >= 4_998, "{:?}", finding.needless);
    }
    // Each part has its share of the price, and together they have no more than the row.
    let both = zone.needless_toll_ns + name.needless_toll_ns;
    assert!(both <= zone.toll_ns && 10 * both >= 9 * zone.toll_ns, "{both} of {}", zone.toll_ns);
}

#[test]
fn a_log_opened_anew_is_found_among_files_that_are_read_once() {
    let trace = rounds(4_000, |n| [append("/var/log/access.log"), read_other(2 * n), read_other(2 * n + 1)].concat());
    let judgement = judged(&trace, BUSY);
    let log = cause(&judgement, "reopen-per-write");
    assert_eq!(log.what.as_deref(), Some("/var/log/access.log"));
    let about = log.calls_about.expect("a part of its rows");
    assert!((about.low..=about.high).contains(&8_000), "{about:?}");
    assert_eq!(log.calls, 24_000);
    assert!(judgement.findings.len() == 1, "{judgement:#?}");
}

#[test]
fn files_of_one_cause_stay_together() {
    let trace = rounds(5_000, |_| vec![stat("/etc/hostname", "stat", 1, 0), stat("/etc/fstab", "stat", 2, 0)]);
    let judgement = judged(&trace, BUSY);
    let both = cause(&judgement, "stat-per-op");
    assert_eq!((judgement.findings.len(), both.calls, both.calls_about), (1, 10_000, None));
}

#[test]
fn what_is_told_is_of_the_recordings_rows() {
    let trace = rounds(4_000, |n| [append("/var/log/access.log"), read_other(n)].concat());
    let rec = recording(&trace, BUSY);
    let judgement = judged(&trace, BUSY);
    for finding in judgement.findings.iter().chain(&judgement.also) {
        assert!(finding.rows.iter().all(|id| (id.0 as usize) < rec.rows.len()));
        let mut rows = finding.rows.clone();
        rows.dedup();
        assert_eq!((rows.len(), finding.by_row.len()), (finding.rows.len(), finding.rows.len()));
        let sum: u64 = finding.by_row.iter().map(|row| row.calls).sum();
        assert_eq!(sum, finding.needless.estimate);
    }
}

/// Adds two lines of a script to each row of a recording, and samples: `of(object)` is the number of the line that touches
/// an object, from 0.
fn with_lines(rec: &mut systoll_model::Recording, objects: &[&str], of: impl Fn(&str) -> usize) {
    use systoll_model::{Frame, FrameClass, FrameId, Language, Location, ObjectSample, RowId, RowLine, Stack, StackId};
    let frame = |line| Frame {
        locations: vec![Location { function: "f".into(), file: Some("app.py".into()), line: Some(line) }],
        language: Some(Language::Python),
        class: FrameClass::User,
        ..Frame::default()
    };
    let first = rec.frames.len() as u32;
    rec.frames.extend([frame(1), frame(2)]);
    let stack = rec.stacks.len() as u32;
    rec.stacks.extend([first, first + 1].map(|line| Stack { frames: vec![FrameId(line)], complete: true }));
    for (id, row) in (0..).map(RowId).zip(&mut rec.rows) {
        let lines = [0, 1].map(|at| RowLine { frame: FrameId(first + at), looks: 9, weight: 10 - u64::from(at) });
        row.lines = lines.to_vec();
        row.user = Some(FrameId(first));
        let sample = |object: &&str| ObjectSample {
            row: id,
            object: Some((*object).into()),
            line: Some(FrameId(first + of(object) as u32)),
            above: StackId(stack + of(object) as u32),
            whole: StackId(stack + of(object) as u32),
            looks: 9,
            weight: 1_000,
            squares: 100_000,
        };
        rec.object_samples.extend(objects.iter().map(sample));
    }
}

#[test]
fn a_finding_has_the_line_that_touches_its_object() {
    let trace = rounds(4_000, |n| [append("/var/log/access.log"), read_other(2 * n), read_other(2 * n + 1)].concat());
    for log_line in [0, 1] {
        let mut rec = recording(&trace, BUSY);
        with_lines(&mut rec, &["/var/log/access.log", "/srv/users/#.json"], |object| {
            if object.ends_with(".log") { log_line } else { 1 - log_line }
        });
        let judgement = judge(&rec, &Catalogue::builtin(), &Options::default());
        let log = cause(&judgement, "reopen-per-write");
        let line = |id: systoll_model::FrameId| rec.frame(id).location().and_then(|place| place.line);
        assert_eq!(log.user.and_then(line), Some(1 + log_line as u32));
        let strands = judgement.strands(&rec);
        for row in log.strands.iter().map(|id| strands.row(*id)) {
            let lines: Vec<_> = row.lines.iter().filter_map(|of| line(of.frame)).collect();
            assert_eq!(lines, [1 + log_line as u32]);
        }
        // Of the original rows each line has its part.
        assert!(log.rows.iter().all(|id| rec.row(*id).lines.len() == 2));
    }
}

#[test]
fn no_line_is_named_that_no_sample_of_the_object_shows() {
    let trace = rounds(4_000, |n| [append("/var/log/access.log"), read_other(2 * n), read_other(2 * n + 1)].concat());
    let mut rec = recording(&trace, BUSY);
    with_lines(&mut rec, &["/srv/users/#.json", "/srv/users/*"], |object| usize::from(object.ends_with('*')));
    let judgement = judge(&rec, &Catalogue::builtin(), &Options::default());
    let log = cause(&judgement, "reopen-per-write");
    assert_eq!(log.user, None);
}

#[test]
fn lines_have_the_shares_of_all_samples_where_all_calls_are_needless() {
    let logs = ["/var/log/access.log", "/var/log/error.log"];
    let trace = rounds(4_000, |_| logs.map(append).concat());
    let mut rec = recording(&trace, BUSY);
    with_lines(&mut rec, &logs, |object| usize::from(object == logs[1]));
    let judgement = judge(&rec, &Catalogue::builtin(), &Options::default());
    let strands = judgement.strands(&rec);
    for row in cause(&judgement, "reopen-per-write").strands.iter().map(|id| strands.row(*id)) {
        assert_eq!(row.lines.iter().map(|line| line.weight).collect::<Vec<_>>(), [1_000, 1_000]);
    }
}

#[test]
fn calls_of_a_place_with_several_callers_are_about_its_one_object_as_far_as_is_known() {
    let trace = rounds(4_000, |_| append("/var/log/access.log"));
    let about = |lines: &[&str]| {
        let mut rec = recording(&trace, BUSY);
        with_lines(&mut rec, lines, |object| usize::from(!object.ends_with("access.log")));
        let log = judge(&rec, &Catalogue::builtin(), &Options::default());
        let log = cause(&log, "reopen-per-write");
        (log.calls, log.calls_about.map(|about| (about.low < about.estimate, about.estimate, about.high)))
    };
    let judgement = judge(&recording(&trace, BUSY), &Catalogue::builtin(), &Options::default());
    assert_eq!(cause(&judgement, "reopen-per-write").calls_about, None, "one caller");
    assert_eq!(about(&["/var/log/access.log"]), (8_000, Some((true, 8_000, 8_000))));
    // Samples show what no window does: one line appends to another log.
    let (calls, about_one) = about(&["/var/log/access.log", "/srv/other"]);
    let (is_open, estimate, high) = about_one.expect("an estimate");
    assert!(calls == 8_000 && is_open && (5_000..8_000).contains(&estimate) && high <= 8_000, "{about_one:?}");
}
