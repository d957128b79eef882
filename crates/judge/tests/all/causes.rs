//! Tests of built-in causes: each on a trace like the one in which it was first seen, and on its neighbours.
#![allow(clippy::disallowed_methods, reason = "the judge does no I/O, its tests read the cases and the docs")]

use crate::common::*;
use systoll_judge::{Catalogue, Confidence, Fact, Kind, Options, judge};
use systoll_model::Phase;

const BUSY: u64 = 5_000_000;

fn write(n: i64) -> Call {
    call("write", "write", &[1, 0x1000, n as u64], n).fd("/tmp/out").toll(500)
}

#[test]
fn localtime_with_tz_unset() {
    let trace = rounds(20_000, |i| vec![stat("/etc/localtime", "localtime", 5, i)]);
    let f = only(judged(&trace, BUSY));
    assert_eq!(f.cause.as_deref(), Some("tz-unset"));
    assert_eq!((f.kind, f.confidence), (Kind::Repeat, Confidence::High));
    assert_eq!(f.what.as_deref(), Some("/etc/localtime"));
    assert_eq!(f.apis, ["localtime".into()]);
    assert_eq!(f.calls, 20_000);
    assert!(f.needless.low >= 13_000 && f.needless.high <= 20_000 && f.needless.estimate >= 19_990, "{:?}", f.needless);
    assert!(f.why.starts_with("glibc's localtime") && f.why.contains("/etc/localtime"), "{}", f.why);
    assert!(f.stop()[0].contains("TZ=:/etc/localtime"));
    assert_eq!(f.prove, ["systoll", "prove", "--cure", "tz-unset", "--", "./app"]);
    assert_eq!(f.phase, Phase::Steady);
}

#[test]
fn a_cause_is_had_by_its_id_in_any_order() {
    let mut catalogue = Catalogue::builtin();
    for id in ["tz-unset", "heap-trim", "tz-unset"] {
        assert_eq!(catalogue.get(id).map(|c| &*c.id), Some(id));
    }
    assert_eq!(catalogue.get("no-such-cause"), None);
    let own = systoll_judge::Cause { title: "of my own".into(), ..catalogue.get("tz-unset").unwrap().clone() };
    catalogue.extend([own]);
    assert_eq!(catalogue.get("tz-unset").map(|c| &*c.title), Some("of my own"));
    assert_eq!(catalogue.get("heap-trim").map(|c| &*c.id), Some("heap-trim"));
    assert_eq!(Catalogue::empty().get("tz-unset"), None);
}

#[test]
fn swapcontext_saves_and_restores_the_mask() {
    let trace = rounds(10_000, |_| vec![sigmask("swapcontext", 2, Some(4), Some(4))]);
    let f = only(judged(&trace, 1_000_000));
    assert_eq!(f.cause.as_deref(), Some("sigmask-context"));
    assert_eq!(f.kind, Kind::NoOp);
    assert_eq!(f.prove, ["systoll", "prove", "--cure", "sigmask-context", "--", "./app"]);
}

#[test]
fn getcontext_asks_and_setcontext_sets() {
    let trace =
        rounds(10_000, |_| vec![sigmask("getcontext", 0, None, Some(4)), sigmask("setcontext", 2, Some(4), None)]);
    let f = only(judged(&trace, 1_000_000));
    assert_eq!(f.cause.as_deref(), Some("sigmask-context"));
    assert_eq!((f.rows.len(), f.calls), (2, 20_000));
    // The library that the next command tries comes right after the best cure.
    assert!(
        f.stop().len() == 3 && f.stop()[0].contains("_setjmp/_longjmp") && f.stop()[1].contains("before libc"),
        "{:?}",
        f.stop()
    );
}

fn membarrier(command: u64) -> Call {
    call("membarrier", "syscall", &[command, 0, 0], 0).waited(8_000_000)
}

#[test]
fn membarrier_global_in_main_is_priced_by_waiting() {
    let trace = rounds(100, |_| vec![membarrier(1)]);
    let f = only(judged(&trace, 1_000_000));
    assert_eq!(f.cause.as_deref(), Some("membarrier-global"));
    assert_eq!((f.kind, f.phase), (Kind::SlowPath, Phase::Steady));
    assert_eq!(f.waited_ns, Some(800_000_000));
    assert!(f.share_of_wall.unwrap() > 0.9, "{:?}", f.share_of_wall);
    silent(&rounds(100, |_| vec![membarrier(8)]), 1_000_000);
}

#[test]
fn waits_are_found_though_the_observer_is_thought_to_have_taken_all_the_time() {
    let mut recording = recording(&rounds(100, |_| vec![membarrier(1)]), 1_000_000);
    recording.header.observer_wall_ns_per_call = 1e9;
    only(judge(&recording, &Catalogue::builtin(), &Options::default()));
}

#[test]
fn a_constructor_that_waits_fourteen_times_is_a_start_up_finding() {
    let mut trace: Vec<Call> = rounds(14, |_| vec![membarrier(1).waited(12_000_000).startup()]);
    trace.push(write(3));
    let f = only(judged(&trace, 1_000_000));
    assert_eq!(f.cause.as_deref(), Some("membarrier-global"));
    assert_eq!((f.kind, f.phase), (Kind::Blocking, Phase::StartUp));
    assert_eq!(f.calls, 14);
    assert_eq!(f.needless.estimate, 14);
    assert!(f.share_of_wall.unwrap() > 0.5, "{:?}", f.share_of_wall);
}

#[test]
fn one_wait_of_eighty_milliseconds_before_main_is_enough() {
    let trace = [membarrier(1).waited(79_379_000).startup(), write(1)];
    let f = only(judged(&trace, 1_000_000));
    assert_eq!((f.cause.as_deref(), f.kind), (Some("membarrier-global"), Kind::Blocking));
}

#[test]
fn short_waits_and_own_children_before_main_are_not() {
    silent(&[membarrier(1).waited(4_000_000).startup(), write(1)], 1_000_000);
    let wait4 = call("wait4", "waitpid", &[1], 1).waited(90_000_000).startup();
    silent(&[wait4, write(1)], 1_000_000);
    let futex = call("futex", "pthread_join", &[1], 0).waited(90_000_000).startup();
    silent(&[futex, write(1)], 1_000_000);
}

#[test]
fn a_lock_waited_for_before_main_is_blocking_without_a_cause() {
    let flock = call("flock", "flock", &[3, 2], 0).waited(30_000_000).startup();
    let f = only(judged(&[flock, write(1)], 1_000_000));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Blocking, None));
    assert!(f.why.contains("lock"), "{}", f.why);
}

#[test]
fn a_clock_source_without_vdso_is_told_by_where_the_call_is_made() {
    let trace = rounds(20_000, |_| {
        let mut call = call("clock_gettime", "clock_gettime", &[1], 0);
        call.vdso = true;
        vec![call]
    });
    let f = only(judged(&trace, 1_000_000));
    assert!(f.stop()[0].contains("clock source"), "{:?}", f.stop());
    assert_eq!(f.stop().len(), 1);
}

#[test]
fn a_clock_the_vdso_never_serves_is_no_fault_of_the_clock_source() {
    let trace = rounds(20_000, |_| {
        let mut call = call("clock_gettime", "clock", &[2], 0);
        call.vdso = true;
        vec![call]
    });
    let f = only(judged(&trace, 1_000_000));
    assert!(f.why.contains("processor time"), "{}", f.why);
    assert!(f.stop().len() == 1 && f.stop()[0].contains("every N steps"), "{:?}", f.stop());
}

/// bash's printf calls localtime, then tzset.
#[test]
fn the_mechanism_told_is_that_of_the_row_shown_first() {
    let dear = |i| stat("/etc/localtime", "printf:localtime", 5, i).toll(1_500);
    let trace = rounds(5_000, |i| vec![dear(i), stat("/etc/localtime", "printf:tzset", 5, i)]);
    let f = only(judged(&trace, BUSY));
    assert_eq!(f.apis, ["localtime".into(), "tzset".into()]);
    assert!(f.why.starts_with("glibc's localtime looks"), "{}", f.why);
}

/// The header's shares are of the whole run: two shares of one time must agree.
#[test]
fn shares_are_of_the_whole_run() {
    let mut run = recording(&rounds(20_000, |i| vec![stat("/etc/localtime", "localtime", 5, i)]), BUSY);
    run.processes[0].startup_cpu_ns = run.header.own_cpu_ns.unwrap() / 2;
    let f = only(judge(&run, &Catalogue::builtin(), &Options::default()));
    let whole = f.needless_toll_ns as f64 / run.header.own_cpu_ns.unwrap() as f64;
    assert!((f.share_of_cpu.unwrap() - whole).abs() < 1e-9, "{:?} is not {whole}", f.share_of_cpu);
}

#[test]
fn a_stray_call_of_another_api_does_not_join() {
    let mut trace = rounds(20_000, |_| vec![call("getpid", "log:getpid", &[], 7)]);
    trace.extend(rounds(3, |_| vec![call("getpid", "start:other_api", &[], 7)]));
    let f = only(judged(&trace, BUSY));
    assert_eq!(f.apis, ["getpid".into()]);
}

#[test]
fn without_a_catalogue_the_detectors_find_it_all_the_same() {
    let trace = rounds(20_000, |i| vec![stat("/etc/localtime", "localtime", 5, i)]);
    let judgement = judge(&recording(&trace, BUSY), &Catalogue::empty(), &Options::default());
    assert_eq!((only(judgement.clone()).kind, only(judgement).cause), (Kind::Repeat, None));
}

#[test]
fn a_cause_of_the_users_own() {
    let text = r#"
        id = "who-am-i"
        title = "asks who it is"
        why = "{syscall} has one answer; in {agree} of {windows} windows it was known"
        [[match]]
        kinds = ["repeat"]
        syscalls = ["getpid"]
        apis = ["getpid"]
        [[stop]]
        how = "keep it"
        kind = "code"
    "#;
    let mut catalogue = Catalogue::builtin();
    catalogue.extend([Catalogue::parse("own.toml", text).unwrap()]);
    let trace = rounds(20_000, |_| vec![call("getpid", "getpid", &[], 4711)]);
    let f = only(judge(&recording(&trace, 1_000_000), &catalogue, &Options::default()));
    assert_eq!(f.cause.as_deref(), Some("who-am-i"));
    let samples = f.evidence.windows;
    assert_eq!(f.why, format!("getpid has one answer; in all {samples} samples it was known"));
}

#[test]
fn every_built_in_file_is_a_cause_and_names_its_cases() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("causes");
    let cases = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/cases");
    let listed = std::fs::read_to_string(cases.join("../CAUSES.md")).unwrap();
    let ids: Vec<&str> =
        listed.lines().filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split(',')).collect();
    let is_listed = |id: &str| ids.iter().any(|listed| listed.trim() == id);
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let cause = Catalogue::parse(&path.display().to_string(), &text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(path.file_stem().unwrap().to_str(), Some(&*cause.id));
        assert!(Catalogue::builtin().get(&cause.id) == Some(&cause));
        assert!(!cause.reports.is_empty() && !cause.recognise.is_empty(), "{}", cause.id);
        assert!(!cause.cases.is_empty(), "{}: no case has it", cause.id);
        assert!(is_listed(&cause.id), "{}: cases/CAUSES.md does not list it", cause.id);
        for case in &cause.cases {
            let text = std::fs::read_to_string(cases.join(case).join("case.toml"));
            let text = text.unwrap_or_else(|error| panic!("{}: {case}: {error}", cause.id));
            let says = |key: &str| {
                text.lines().any(|line| line.starts_with(key) && line.contains(&format!("\"{}\"", cause.id)))
            };
            assert!(says("cause = ") || says("beside = "), "{}: {case} is of another cause", cause.id);
        }
        files += 1;
    }
    assert_eq!(files, Catalogue::builtin().iter().count());
    assert!(files >= 40);
}

#[test]
fn files_that_are_no_causes_say_why() {
    let good = r#"
        id = "x"
        title = "t"
        why = "w"
        [[match]]
        syscalls = ["getpid"]
        [[stop]]
        how = "h"
        kind = "code"
    "#;
    assert!(Catalogue::parse("x.toml", good).is_ok());
    for (from, to, says) in [
        (r#"id = "x""#, r#"id = "X y""#, "id"),
        (r#"title = "t""#, "", "title"),
        ("getpid", "getpidd", "getpidd"),
        (r#"why = "w""#, r#"why = "in {windos}""#, "windos"),
        (r#"kind = "code""#, r#"kind = "magic""#, "magic"),
        (r#"kind = "code""#, r#"kind = "environment""#, "env"),
        (r#"syscalls = ["getpid"]"#, "", "empty pattern"),
        (r#"syscalls = ["getpid"]"#, "syscals = []", "syscals"),
        (
            r#"kind = "code""#,
            "kind = \"code\"\nlanguages = [\"Pyton\"]",
            "\"Pyton\" is no language that cures may be for: c, c++",
        ),
        (r#"kind = "code""#, "kind = \"code\"\nmodules = [\"/usr/bin/x\"]", "modules"),
        (r#"kind = "code""#, "kind = \"code\"\nlanguages = [\"go\"]\nsince = \"new\"", "version"),
        (r#"kind = "code""#, "kind = \"code\"\nsince = \"1.2\"", "the one language"),
        (r#"kind = "code""#, "kind = \"code\"\nlanguages = [\"go\"]\nbefore = \"x\"", "go together"),
        (r#"kind = "code""#, "kind = \"code\"\nbefore = \"x\"\nafter = \"y\"", "needs languages"),
        (r#"syscalls = ["getpid"]"#, r#"args = { 6 = [1] }"#, "position"),
        (r#"syscalls = ["getpid"]"#, r#"kinds = ["waste"]"#, "waste"),
        ("id", "i d", ""),
    ] {
        let error = Catalogue::parse("x.toml", &good.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().starts_with("x.toml: ") && error.problem.contains(says), "{to}: {error}");
    }
}

/// Returns the fields that may stand in place of an unknown one in `file`: the error names them.
fn fields(file: &str) -> Vec<String> {
    let error = Catalogue::parse("x.toml", file).unwrap_err().problem;
    let (_, expected) = error.split_once("expected one of").unwrap_or_else(|| panic!("{error}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_docs_name_every_field_that_a_cause_may_have() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let docs = std::fs::read_to_string(docs.join("causes.md")).unwrap();
    let section = |from: &str, to: &str| {
        let (_, rest) = docs.split_once(from).unwrap_or_else(|| panic!("no {from:?}"));
        rest.split_once(to).unwrap_or_else(|| panic!("no {to:?}")).0.to_owned()
    };
    let of_file = fields("other = 1");
    let of_match = fields("[[match]]\nother = 1");
    let of_stop = fields("[[stop]]\nother = 1");
    assert!(of_file.len() > 8 && of_match.len() > 10 && of_stop.len() > 5);
    let example = section("## A file", "| in `[[match]]`");
    for field in of_file {
        let there = [format!("\n{field} = "), format!("\n[[{field}]]")].iter().any(|form| example.contains(form));
        assert!(there, "{field}: the example does not show it");
    }
    let tables =
        [(of_match, section("| in `[[match]]`", "| in `[[stop]]`")), (of_stop, section("| in `[[stop]]`", "## Shims"))];
    for (fields, table) in tables {
        for field in fields {
            assert!(table.contains(&format!("| `{field}` |")), "{field}: docs/reference/causes.md does not name it");
        }
    }
}

#[test]
fn the_docs_name_every_kind_and_every_fact() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/causes.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for kind in Kind::ALL {
        assert!(docs.contains(&format!("`{}`", kind.name())), "{}", kind.name());
    }
    for fact in Fact::ALL {
        assert!(docs.contains(&format!("| `{}` |", fact.name())), "{}", fact.name());
    }
}
