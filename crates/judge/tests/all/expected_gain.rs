//! Tests of the expected gain of removing needless calls.

use crate::common::{Call, call, recording, rounds, stat, stat_bytes};
use systoll_judge::{Catalogue, ExpectedGain, Finding, Options, judge};
use systoll_model::{BackendKind, Frame, FrameId, Location, Recording, Stack, StackId};

const BUSY: u64 = 400_000_000;
/// Time of a call, ns.
const CALL: u64 = 300;
const CROSSING: f64 = 100.0;

/// Returns the trace as the in-process backend records it, with `gap` ns between calls.
fn timed(trace: &[Call], gap: u64) -> Recording {
    let mut rec = recording(trace, BUSY);
    rec.header.backend = BackendKind::Inproc;
    rec.header.observer_wall_ns_per_call = 0.0;
    rec.prices.crossing_before.min = CROSSING;
    rec.prices.crossing_after.min = CROSSING;
    for window in &mut rec.windows {
        for (n, call) in (0u64..).zip(&mut window.calls) {
            (call.entry_ns, call.elapsed_ns) = (n * (CALL + gap), CALL);
        }
    }
    rec
}

fn found(rec: &Recording) -> Finding {
    judge(rec, &Catalogue::builtin(), &Options::default()).findings.remove(0)
}

fn gain(rec: &Recording) -> ExpectedGain {
    found(rec).expected_gain.expect("a gain")
}

fn pids() -> Vec<Call> {
    rounds(20_000, |_| vec![call("getpid", "getpid", &[], 4711).toll(CALL)])
}

#[test]
fn it_is_the_price_and_no_more_whatever_lies_around() {
    let rec = timed(&pids(), 200);
    let (finding, gain) = (found(&rec), gain(&rec));
    let price = finding.needless_toll_ns;
    assert!(gain.low <= price && 2 * gain.low >= price, "{gain:?}, {price}");
    assert!(gain.high >= price && 10 * gain.high <= 12 * price, "{gain:?}, {price}");
    // The 32 calls of a window have 31 gaps.
    let all = 200 * finding.needless.estimate;
    assert!((30 * all / 32..=all).contains(&gain.around_ns), "{gain:?}");
}

#[test]
fn more_work_around_promises_no_more() {
    let few = gain(&timed(&pids(), 1_000));
    let mut rec = timed(&pids(), 9_000);
    rec.processes.iter_mut().for_each(|process| process.exe = "/usr/bin/python3.11".into());
    let much = gain(&rec);
    assert_eq!((few.low, few.high), (much.low, much.high));
    assert!(much.around_ns > 8 * few.around_ns);
}

#[test]
fn of_a_file_read_again_the_calls_alone_are_promised() {
    let path = "/srv/app.conf";
    let open = || call("openat", "fopen", &[(-100i32) as u32 as u64, 1, 0, 0], 3).path(1, path).toll(900);
    let status = || call("fstat", "fopen", &[3, 0x1000], 0).fd(path).output(1, &stat_bytes(7, 7)).toll(CALL);
    let read = || call("read", "fread", &[3, 1, 4096], 900).fd(path).output(1, &[7; 40]).toll(600);
    let trace = rounds(4_000, |_| vec![open(), status(), read(), call("close", "fclose", &[3], 0)]);
    let rec = timed(&trace, 9_000);
    let judgement = judge(&rec, &Catalogue::builtin(), &Options::default());
    let both = judgement.findings.iter().chain(&judgement.also);
    let again = both.clone().find(|f| f.cause.as_deref() == Some("file-reread")).expect("a file read again");
    let gain = again.expected_gain.expect("a gain");
    assert!(10 * gain.high <= 12 * again.needless_toll_ns, "{gain:?}");
    assert!(gain.around_ns >= 9_000 * again.needless.estimate / 2, "{gain:?}");
}

#[test]
fn a_file_whose_reads_are_cheap_is_told_for_the_work_on_what_was_read() {
    let path = "/srv/bundle.pem";
    let trace = rounds(200, |_| {
        let open = call("openat", "fopen", &[(-100i32) as u32 as u64, 1, 0, 0], 3).path(1, path).toll(900);
        let status = call("fstat", "fopen", &[3, 0x1000], 0).fd(path).output(1, &stat_bytes(7, 7)).toll(CALL);
        let read = call("read", "fread", &[3, 1, 4096], 4096).fd(path).output(1, &[7; 40]).toll(600);
        [vec![open, status], vec![read; 6], vec![call("close", "fclose", &[3], 0)]].concat()
    });
    let told = |gap: u64| {
        let mut rec = timed(&trace, gap);
        // The file is read some 15 ms after it was read before, when it may have changed.
        rec.header.wall_ns = 3_000_000_000;
        let judgement = judge(&rec, &Catalogue::builtin(), &Options::default());
        let found = judgement.also.into_iter().find(|f| f.cause.as_deref() == Some("file-reread"));
        assert!(judgement.findings.iter().all(|f| f.cause.as_deref() != Some("file-reread")));
        found.is_some()
    };
    assert!(told(100_000) && !told(1_000));
}

#[test]
fn nothing_is_made_of_a_file_that_is_not_there() {
    let missing =
        || call("openat", "open", &[(-100i32) as u32 as u64, 1, 0, 0], -2).path(1, "/srv/none.conf").toll(CALL);
    let few = gain(&timed(&rounds(20_000, |_| vec![missing()]), 1_000));
    let much = gain(&timed(&rounds(20_000, |_| vec![missing()]), 9_000));
    assert_eq!(few.high, much.high, "what the program does meanwhile it goes on doing");
}

#[test]
fn where_the_advice_leaves_out_the_librarys_function_its_work_goes_too() {
    let trace = rounds(20_000, |_| vec![stat("/srv/app.py", "stat", 7, 7).toll(CALL)]);
    let around = |gap| {
        let mut rec = timed(&trace, gap);
        rec.processes.iter_mut().for_each(|process| process.exe = "/usr/bin/python3.11".into());
        let calls_alone = gain(&rec);
        let file = Some("/usr/lib/python3.11/linecache.py".into());
        let location = Location { function: "checkcache".into(), file, line: Some(60) };
        rec.frames.push(Frame { locations: vec![location], ..Frame::default() });
        rec.stacks.push(Stack { frames: vec![FrameId(rec.frames.len() as u32 - 1)], complete: false });
        rec.rows[0].outer = StackId(rec.stacks.len() as u32 - 1);
        let whole = gain(&rec);
        assert!(found(&rec).cures[0].how.contains("traceback"), "{:?}", found(&rec).cures);
        assert_eq!((whole.low, whole.around_ns), (calls_alone.low, calls_alone.around_ns), "only what goes with it");
        (calls_alone, whole)
    };
    let (calls_alone, whole) = around(100);
    assert!(whole.high >= calls_alone.high + whole.around_ns, "{whole:?}");
    // An interval with a distant end helps nobody.
    let (calls_alone, whole) = around(20_000);
    assert_eq!(whole.high, calls_alone.high);
}

#[test]
fn messages_stay_messages() {
    let from = |fd| {
        let one = || call("recvfrom", "recv", &[4, 0x1000, 40, 0, 0, 0], 40).fd(fd).toll(900);
        timed(&rounds(20_000, |_| vec![one()]), 200)
    };
    let judgement = judge(&from("UDP:[1.2.3.4:5]"), &Catalogue::builtin(), &Options::default());
    let datagrams = judgement.also.first().expect("a remark");
    assert_eq!(datagrams.expected_gain, None, "recvmmsg may win nothing: each costs what it did");
    assert!(gain(&from("TCP:[1.2.3.4:5->1.2.3.4:6]")).low > 0, "bytes are joined");
}

#[test]
fn a_tracers_stops_tell_nothing_of_it() {
    for backend in [BackendKind::Ptrace, BackendKind::Import] {
        let mut rec = timed(&pids(), 200);
        rec.header.backend = backend;
        assert_eq!(found(&rec).expected_gain, None);
    }
}

#[test]
fn one_long_gap_is_no_work() {
    let mut rec = timed(&pids(), 200);
    let before = gain(&rec);
    let window = rec.windows.last_mut().expect("a window");
    let half = window.calls.len() / 2;
    window.calls.iter_mut().skip(half).for_each(|call| call.entry_ns += 40_000_000);
    assert!(gain(&rec).around_ns < 2 * before.around_ns, "the thread waited for a processor");
}
