//! Tests that a comparison of any two recordings does not panic and is the same both ways, and that
//! a recording has not changed against itself.

use proptest::prelude::*;
use systoll_compare::{Bound, Budget, By, Run, Side, Tracked, Verdict, Wanted, diff, hold, learn};
use systoll_judge::Judgement;
use systoll_model::*;

const CALLS: [&str; 6] = ["openat", "read", "futex", "brk", "mmap", "getpid"];
const FUNCTIONS: [&str; 6] = ["work", "work.constprop.0", "app+0x12", "", "main", "read_config"];

#[derive(Clone, Debug)]
struct RowOf {
    call: usize,
    function: usize,
    line: u32,
    calls: u64,
    failed: u64,
    script: bool,
    known: bool,
}

fn row() -> impl Strategy<Value = RowOf> {
    let counts = prop_oneof![0..5u64, 0..2000u64, Just(u64::MAX)];
    (0..CALLS.len(), 0..FUNCTIONS.len(), 1..9u32, counts.clone(), counts, any::<bool>(), any::<bool>()).prop_map(
        |(call, function, line, calls, failed, script, known)| RowOf {
            call,
            function,
            line,
            calls,
            failed,
            script,
            known,
        },
    )
}

fn recording(rows: &[RowOf], threads: u64) -> Recording {
    let mut recording = Recording::default();
    recording.processes.push(Process { exe: "/bin/app".into(), instances: 1, threads, ..Process::default() });
    recording.modules.push(Module { path: "/bin/app".into(), build_id: None });
    recording.stacks.push(Stack::default());
    for row in rows {
        let id = recording.frames.len() as u32;
        let place = Location {
            function: FUNCTIONS[row.function].into(),
            file: Some("/src/app.c".into()),
            line: Some(row.line),
        };
        let language = row.script.then_some(Language::Python);
        let module = Some(ModuleId(0)).filter(|_| !row.script);
        recording.frames.push(Frame { module, locations: vec![place], language, ..Frame::default() });
        let lines = row.script.then_some(RowLine { frame: FrameId(id), looks: 1, weight: 1 }).into_iter().collect();
        let errors = [(Errno::ENOENT, row.failed.min(row.calls))].into_iter().collect();
        recording.rows.push(Row {
            user: row.known.then_some(FrameId(id)),
            lines,
            ..Row::new(
                ProcessId(0),
                Sysno::from_name(CALLS[row.call]).unwrap(),
                Counts { calls: row.calls, errors, toll_ns: Some(row.calls), ..Counts::default() },
            )
        });
    }
    assert_eq!(recording.check(), Ok(()));
    recording
}

fn side_of<'a>(recordings: &'a [Recording], judgements: &'a [Judgement]) -> Side<'a> {
    Side { recordings, judgements }
}

proptest! {
    #[test]
    fn a_recording_against_itself_is_no_change(rows in proptest::collection::vec(row(), 0..12), threads in 0..4u64) {
        let (recordings, judged) = ([recording(&rows, threads)], [Judgement::default()]);
        for by in By::ALL {
            let same = diff(side_of(&recordings, &judged), side_of(&recordings, &judged), by);
            prop_assert!(same.is_empty() && same.varying.is_empty(), "{:?}", same);
        }
    }

    #[test]
    fn both_ways_are_alike(a in proptest::collection::vec(row(), 0..12), b in proptest::collection::vec(row(), 0..12)) {
        let judged = [Judgement::default(), Judgement::default()];
        let (a, b) = ([recording(&a, 1)], [recording(&b, 1)]);
        for by in By::ALL {
            let (there, back) = (diff(side_of(&a, &judged), side_of(&b, &judged), by), diff(side_of(&b, &judged), side_of(&a, &judged), by));
            // Lines have the numbers of the old side, unless another line has them.
            if by != By::Line {
                prop_assert_eq!(there.same, back.same);
                prop_assert_eq!(there.changed.len(), back.changed.len());
            }
            for change in &there.changed {
                prop_assert!(change.verdict == Verdict::Changed);
                prop_assert!(change.old.calls != change.new.calls || change.old.failed != change.new.failed);
            }
        }
        if let Some(tracked) = Tracked::of(&Wanted::Largest, &a[0], &b[0]) {
            prop_assert!(tracked.count(&a[0]) != tracked.count(&b[0]));
            tracked.places(&b[0]);
        }
    }

    #[test]
    fn a_learnt_budget_holds_for_its_runs(runs in proptest::collection::vec(proptest::collection::vec(row(), 0..8), 1..4)) {
        let recordings: Vec<Recording> = runs.iter().map(|rows| recording(rows, 2)).collect();
        let judgement = Judgement::default();
        let runs: Vec<Run<'_>> = recordings.iter().map(|recording| Run { recording, judgement: &judgement, units: None }).collect();
        let text = learn(None, None, &runs).unwrap();
        let budget = Budget::parse(&text).unwrap();
        prop_assert_eq!(budget.others, Some(Bound::exactly(0.0)));
        let held = hold(&budget, &runs);
        prop_assert!(held.holds(), "{} {:?}", text, held);
        for run in &runs {
            prop_assert!(hold(&budget, &[*run]).holds());
        }
        // Learning again from the same runs gives the same text.
        prop_assert_eq!(learn(Some(&text), None, &runs).unwrap(), text);
    }
}

#[test]
fn figures_are_written_anew_and_nothing_else() {
    let text = "# mine\nothers = 0\n\n[[limit]] # the loop\nsyscall = \"openat\"\ncalls = 12 # was 14\n\n[[limit]]\n\
                syscall = \"read\"\ncalls = \"..=50\"\n";
    let row = |call, calls| RowOf { call, function: 0, line: 1, calls, failed: 0, script: false, known: true };
    let recording = recording(&[row(0, 20), row(1, 40), row(5, 3)], 1);
    let judgement = Judgement::default();
    let run = Run { recording: &recording, judgement: &judgement, units: None };
    let held = hold(&Budget::parse(text).unwrap(), &[run]);
    let broken: Vec<String> = held.measured.iter().filter(|m| m.broken).map(|m| m.name.clone()).collect();
    assert_eq!(broken, ["openat", "getpid (no limit names it)"]);
    let new = learn(Some(text), None, &[run]).unwrap();
    let expected = text.replace("calls = 12 #", "calls = 20 #") + "\n[[limit]]\nsyscall = \"getpid\"\ncalls = 3\n";
    assert_eq!(new, expected);
    assert!(hold(&Budget::parse(&new).unwrap(), &[run]).holds());
}

#[test]
fn a_moved_line_is_the_line_it_was() {
    let row = |line, calls| RowOf { call: 0, function: 0, line, calls, failed: 0, script: false, known: true };
    let judged = [Judgement::default()];
    let (old, new) = ([recording(&[row(3, 7), row(5, 9)], 1)], [recording(&[row(4, 7), row(6, 900)], 1)]);
    let changed = diff(side_of(&old, &judged), side_of(&new, &judged), By::Line).changed;
    assert_eq!(changed.len(), 1);
    assert_eq!((changed[0].key.line, changed[0].new.calls.median), (Some(5), 900));
}
