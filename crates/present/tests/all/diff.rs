//! Tests `diff`, `check` and `bisect`: their screens, Markdown, and JSON against its schema.

use crate::common::schema::violations;
use serde_json::{Value, json};
use systoll_compare::{Budget, By, Diff, Run, Side, diff, hold};
use systoll_judge::Judgement;
use systoll_model::*;
use systoll_present::*;

fn recording(rows: &[(&str, &str, u32, u64)]) -> Recording {
    let mut recording = Recording::default();
    recording.header.command = vec!["./app".into()];
    recording.processes.push(Process { exe: "/bin/app".into(), instances: 1, threads: 1, ..Process::default() });
    recording.modules.push(Module { path: "/bin/app".into(), build_id: None });
    recording.stacks.push(Stack::default());
    for (call, function, line, calls) in rows {
        let place = Location { function: (*function).into(), file: Some("/src/a|b.c".into()), line: Some(*line) };
        let user = Some(FrameId(recording.frames.len() as u32));
        recording.frames.push(Frame { module: Some(ModuleId(0)), locations: vec![place], ..Frame::default() });
        recording.rows.push(Row {
            api: Some((*call).into()),
            user,
            ..Row::new(
                ProcessId(0),
                Sysno::from_name(call).unwrap(),
                Counts { calls: *calls, toll_ns: Some(*calls * 200), ..Counts::default() },
            )
        });
    }
    recording
}

fn changes(by: By) -> Diff {
    let old = [recording(&[
        ("openat", "read_config", 41, 12),
        ("read", "work", 9, 3),
        ("brk", "main", 1, 3),
        ("close", "x", 2, 5),
    ])];
    let new = [recording(&[
        ("openat", "read_config", 43, 30_012),
        ("getpid", "evil\u{1b}[1m|x", 5, 7),
        ("brk", "main", 1, 4),
        ("close", "y", 2, 5),
    ])];
    let judged = [Judgement::default()];
    diff(Side { recordings: &old, judgements: &judged }, Side { recordings: &new, judgements: &judged }, by)
}

fn screen(diff: &Diff, width: usize) -> String {
    let mut out = vec![];
    write_diff(&mut out, diff, DiffOptions::default(), &Style { color: false, width, whole_names: false }).unwrap();
    String::from_utf8(out).unwrap()
}

fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_screen_has_old_beside_new() {
    insta::assert_snapshot!(screen(&changes(By::Syscall), 100), @r"
    systoll  ./app
             30,028 system calls, 23 before    cost 6.01 ms, 4.6 µs before    1 run a side

      old     new   change     cost  syscall
       12  30,012  +30,000    +6 ms  openat
       12  30,012  +30,000    +6 ms    read_config a|b.c:43
        0       7       +7  +1.4 µs  getpid
        0       7       +7  +1.4 µs    evil\x1b[1m|x a|b.c:5
        3       0       -3  -600 ns  read
        3       0       -3  -600 ns    work a|b.c:9

      moved    as many calls, but from other callers, in 2 rows: --by row
      varies   brk 3 → 4 (by where memory lies)
      note     one recording a side: only what depends on scheduling or memory is known to vary by
               itself; give several a side for more
    ");
}

#[test]
fn comparing_a_recording_with_itself_says_so() {
    let (one, judged) = ([recording(&[("read", "work", 9, 3)])], [Judgement::default()]);
    let side = Side { recordings: &one, judgements: &judged };
    assert!(screen(&diff(side, side, By::Row), 100).contains("no change: 1 row is the same"));
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for by in By::ALL {
        for width in [40, 60, 100] {
            for line in screen(&changes(by), width).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn markdown_is_of_the_table_and_of_nothing_a_program_chose() {
    let mut out = vec![];
    write_diff_markdown(&mut out, &changes(By::Row), DiffOptions::default()).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("| openat &lt; read\\_config a\\|b.c:43 | 12 | 30,012 | +30,000 | +6 ms |"), "{text}");
    assert!(!text.contains('\u{1b}') && text.contains("\\|x"), "{text}");
}

#[test]
fn json_conforms_to_its_schema() {
    let of_diff = schema(include_str!("../../../../docs/reference/diff.schema.json"));
    for by in By::ALL {
        assert_eq!(violations(&of_diff, &diff_json(&changes(by), "0.1.0")), Vec::<String>::new());
    }
    let whole = diff_json(&changes(By::Syscall), "0.1.0");
    assert_eq!((&whole["changed"][0]["beneath"][0]["function"], &whole["hidden"]), (&json!("read_config"), &json!(2)));
    let of_bisect = schema(include_str!("../../../../docs/reference/bisect.schema.json"));
    let report = bisected();
    assert_eq!(violations(&of_bisect, &bisect_json(&report, "0.1.0")), Vec::<String>::new());
    assert_eq!(violations(&of_bisect, &bisect_json(&BisectReport::default(), "0.1.0")), Vec::<String>::new());
}

fn bisected() -> BisectReport {
    let commit = |id: &str, calls| TriedCommit {
        id: id.repeat(40),
        subject: "Reload the config on each request".into(),
        author: "A. Person".into(),
        date: "2026-01-02".into(),
        calls: Some(calls),
    };
    let place = systoll_compare::SourcePlace {
        function: "read_config".into(),
        file: Some("/w/config.c".into()),
        line: Some(41),
    };
    BisectReport {
        good: commit("1", 12),
        bad: commit("2", 30_012),
        row: Some("fstat < read_config".into()),
        first: Some(commit("3", 30_012)),
        calls_before: Some(12),
        place: Some(place),
        hunks: vec![Hunk {
            file: "config.c".into(),
            line: 38,
            lines: vec!["-if (cached)".into(), "+if (0)\u{1b}".into()],
        }],
        steps: 8,
        runs: 10,
        skipped: vec!["4".repeat(40)],
    }
}

#[test]
fn bisect_ends_with_the_commit_the_row_and_the_lines() {
    let mut out = vec![];
    write_bisect(&mut out, &bisected(), &Style::default()).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r#"
      8 steps, 10 runs, 1 skipped    first bad  3333333333  "Reload the config on each request"
      A. Person, 2026-01-02
      fstat < read_config config.c:41    12 → 30,012 calls
      the commit changes  config.c:38
        -if (cached)
        +if (0)\x1b
    "#);
    let mut out = vec![];
    write_bisect(&mut out, &BisectReport::default(), &Style::default()).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("nothing differs"));
}

const BUDGET: &str =
    "others = 0\n\n[[limit]]\nsyscall = \"openat\"\ncalls = 12\n\n[[limit]]\nsyscall = \"read\"\ncalls = \"..=5\"\n";

fn checked(write: impl Fn(&mut Vec<u8>, &BudgetReport<'_>)) -> String {
    checked_by(BUDGET, write)
}

fn checked_by(budget: &str, write: impl Fn(&mut Vec<u8>, &BudgetReport<'_>)) -> String {
    let budget = Budget::parse(budget).unwrap();
    let recording =
        recording(&[("openat", "read_config", 41, 30_012), ("read", "work", 9, 3), ("getpid", "\u{1b}x,y%", 5, 7)]);
    let judgement = Judgement::default();
    let held = hold(&budget, &[Run { recording: &recording, judgement: &judgement, units: None }]);
    assert!(!held.holds());
    let report = BudgetReport { held: &held, budget: "ci/systoll.toml", command: &["./app".into()], root: "/src/" };
    let mut out = vec![];
    write(&mut out, &report);
    String::from_utf8(out).unwrap()
}

#[test]
fn fewer_calls_are_under_the_limit() {
    let budget = "[[limit]]\nsyscall = \"read\"\ncalls = \"5..\"\n";
    let told = checked_by(budget, |out, report| write_check(out, report, false, &Style::default()).unwrap());
    assert!(told.starts_with("under read: at least 5 → 3 calls\n"), "{told}");
}

#[test]
fn every_form_reports_a_broken_budget() {
    let all = checked(|out, report| {
        write_check(out, report, true, &Style::default()).unwrap();
        write_vim(out, report).unwrap();
        write_github(out, report).unwrap();
    });
    insta::assert_snapshot!(all, @r"
    over  openat: 12 → 30,012 calls, most by openat < read_config a|b.c:41 in app (30,012)
    over  getpid (no limit names it): 0 → 7 calls, most by getpid < \x1bx,y% a|b.c:5 in app (7)
    holds read: 3 calls of at most 5
    ci/systoll.toml does not hold: 2 breaches, 3 limits, 1 run  ./app
    a|b.c:41:1: error: openat: 12 → 30,012 calls, most by openat < read_config a|b.c:41 in app (30,012) [calls]
    a|b.c:5:1: error: getpid (no limit names it): 0 → 7 calls, most by getpid < \x1bx,y% a|b.c:5 in app (7) [calls]
    ::error file=a|b.c,line=41,title=systoll%3A calls::openat: 12 → 30,012 calls, most by openat < read_config a|b.c:41 in app (30,012)
    ::error file=a|b.c,line=5,title=systoll%3A calls::getpid (no limit names it): 0 → 7 calls, most by getpid < \x1bx,y%25 a|b.c:5 in app (7)
    ");
    let junit = checked(|out, report| write_junit(out, report).unwrap());
    assert!(junit.contains("tests=\"3\"") && junit.contains("failures=\"2\"") && !junit.contains('\u{1b}'), "{junit}");
    let metrics = checked(|out, report| {
        serde_json::to_writer(&mut *out, &json!([bencher_json(report), benchmark_json(report)])).unwrap();
    });
    let metrics: Value = serde_json::from_str(&metrics).unwrap();
    assert_eq!(metrics[0]["openat"]["system-calls"]["value"], json!(30_012.0));
    assert_eq!((&metrics[1][0]["name"], &metrics[1][0]["value"]), (&json!("openat: calls"), &json!(30_012.0)));
}

#[test]
fn sarif_has_findings_at_file_and_line() {
    let text = checked(|out, report| serde_json::to_writer(out, &sarif_json(report, "0.1.0")).unwrap());
    let sarif: Value = serde_json::from_str(&text).unwrap();
    let run = &sarif["runs"][0];
    assert_eq!((&sarif["version"], run["results"].as_array().unwrap().len()), (&json!("2.1.0"), 2));
    let place = &run["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], json!("a%7Cb.c"));
    assert_eq!(place["region"]["startLine"], json!(41));
    // Each result's rule is described among the rules.
    let rules: Vec<&Value> = run["tool"]["driver"]["rules"].as_array().unwrap().iter().map(|r| &r["id"]).collect();
    assert!(run["results"].as_array().unwrap().iter().all(|r| rules.contains(&&r["ruleId"])));
}
