//! Tests `systoll prove`: its JSON against docs/reference/prove.schema.json, and hyperfine's
//! formats.

use crate::common::schema::violations;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use systoll_model::{Exit, InPlace, Missed, Sysno};
use systoll_present::{SideCommand, hyperfine_json, hyperfine_markdown, prove_json};
use systoll_prove::{
    Agreement, Answered, CallCounts, Change, Comparison, Difference, Estimate, ExpectedWin, Measured, Outcome, Range,
    Sameness, Side, Stopped, Usage, Verdict,
};

fn side(wall_ns: u64) -> Side {
    let usage = |wall_ns| Usage {
        exit: Exit::Code(0),
        wall_ns,
        user_ns: 1_000,
        sys_ns: 2_000,
        max_rss: 4_096,
        switches: 1,
        faults: 9,
    };
    let of = |n: u64| Estimate { median: n as f64, low: n as f64, high: n as f64 };
    Side {
        wall_ns: of(wall_ns),
        cpu_ns: of(3_000),
        user_ns: of(1_000),
        sys_ns: of(2_000),
        max_rss: of(4_096),
        switches: of(1),
        faults: of(9),
        runs: vec![usage(wall_ns - 1_000_000), usage(wall_ns + 1_000_000)],
    }
}

fn proved() -> Comparison {
    let change = |percent, verdict| Change {
        percent,
        low: percent - 1.0,
        high: percent + 1.0,
        verdict,
        pairs_for_one_percent: 20,
    };
    let measured = Measured {
        pairs: 2,
        stopped: Stopped::Decided,
        confidence: 0.99,
        negligible_percent: 0.5,
        a: side(20_000_000),
        b: side(10_000_000),
        wall: change(-50.0, Verdict::Faster),
        cpu: change(0.0, Verdict::NoDifference),
        user: change(0.0, Verdict::NoDifference),
        sys: change(0.0, Verdict::NoDifference),
        max_rss: change(0.0, Verdict::NoDifference),
    };
    let (stdout, stderr) = (Some(Sameness::ButDigits), Some(Sameness::Exact));
    let outcome = Outcome::Same(Agreement { exit: Some(Exit::Code(0)), stdout, stderr, by: false });
    Comparison { outcome, differs_at: None, measured: Some(measured), watched: false, answered: None }
}

fn counts(stats: u64) -> CallCounts {
    let same = |n| Range { low: n, median: n, high: n };
    let by_syscall = BTreeMap::from([(Sysno::from_name("newfstatat").unwrap(), same(stats))]);
    CallCounts {
        total: same(stats),
        toll_by_syscall: by_syscall.keys().map(|s| (*s, stats * 1_000)).collect(),
        by_syscall,
        runs: 3,
        exact: true,
        toll_ns: Some(stats * 1_000),
        waited_ns: Some(stats * 9_999),
    }
}

const TOLD: ExpectedWin = ExpectedWin { low_ns: 500.0, high_ns: 1_000.0, is_at_least: false, own_cpu_ns: Some(1_500) };

fn written(comparison: &Comparison, counts: Option<(&CallCounts, &CallCounts)>) -> Value {
    let command = ["./app".to_owned(), "two words".to_owned()];
    let (plain, cured) =
        (BTreeMap::new(), BTreeMap::from([("TZ".to_owned(), Some(":/x".to_owned())), ("A".to_owned(), None)]));
    let of = |env| SideCommand { command: &command, env, elided: &["getpid"] };
    prove_json(comparison, counts, counts.map(|_| TOLD), (of(&plain), of(&cured)), "0.1.0")
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/reference/prove.schema.json")).unwrap()
}

#[test]
fn json_conforms_to_the_schema() {
    let (a, b) = (counts(1_000), counts(1));
    let whole = written(&proved(), Some((&a, &b)));
    assert_eq!(violations(&schema(), &whole), Vec::<String>::new());
    assert_eq!(whole["change"]["calls"], json!(-999));
    assert_eq!(whole["verdict"], json!({"wall": "faster", "cpu": "no-difference"}));
    assert_eq!(whole["b"]["env"], json!({"A": null, "TZ": ":/x"}));
    assert_eq!(whole["a"]["wall_ns"]["median"], json!(2e7));
    assert_eq!((&whole["b"]["elided"], &whole["b"]["toll_ns"]), (&json!(["getpid"]), &json!(1_000)));
    let told = json!({"low_ns": 1_000.0, "high_ns": 2_000.0, "at_least": false, "won_ns": 0.0});
    assert_eq!(whole["expected_gain"], told, "at the speed of the pairs");
    assert_eq!(whole["beyond"]["why"], json!("waiting"), "{}", whole["beyond"]);
    assert_eq!(violations(&schema(), &written(&proved(), None)), Vec::<String>::new());
    let limit = std::time::Duration::from_secs(30);
    let differences =
        [Difference::Stdout, Difference::Exit { a: Exit::Code(0), b: Exit::Signal(11) }, Difference::Hangs(limit)];
    for difference in differences {
        let nothing = written(
            &Comparison {
                outcome: Outcome::Differs(difference),
                differs_at: None,
                measured: None,
                watched: false,
                answered: None,
            },
            None,
        );
        assert_eq!(violations(&schema(), &nothing), Vec::<String>::new(), "{difference:?}");
        assert_eq!((&nothing["same_outcome"], &nothing["verdict"]), (&json!(false), &json!(null)));
    }
}

#[test]
fn a_part_has_no_prediction() {
    let of = |answered, missed| {
        let missed = vec![(Missed::Elsewhere, missed)];
        let calls = vec![InPlace { syscall: Sysno::from_name("rt_sigprocmask").unwrap(), answered, needed: 1, missed }];
        Some(Answered { calls, runs: 1, told: Vec::new() })
    };
    let part = written(&Comparison { measured: None, answered: of(94, 6), ..proved() }, None);
    assert_eq!(violations(&schema(), &part), Vec::<String>::new());
    assert_eq!(
        (&part["problem"], &part["change"], &part["verdict"]),
        (&json!("answered-in-part"), &json!(null), &json!(null))
    );
    assert_eq!((&part["answered"]["share"], &part["answered"]["enough"]), (&json!(0.94), &json!(false)));
    assert_eq!(part["answered"]["calls"][0]["why"], json!({"elsewhere": 6}));
    let enough = written(&Comparison { answered: of(96, 4), ..proved() }, None);
    assert_eq!(violations(&schema(), &enough), Vec::<String>::new());
    assert_eq!((&enough["problem"], &enough["answered"]["enough"]), (&json!(null), &json!(true)));
}

#[test]
fn the_schema_refuses_violations() {
    let good = written(&proved(), None);
    for (at, value) in [
        ("/verdict/wall", json!("better")),
        ("/a/command", json!("x")),
        ("/pairs", json!(-1)),
        ("/systoll/schema", json!(2)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(at).unwrap() = value;
        assert!(!violations(&schema(), &bad).is_empty(), "{at}");
    }
}

#[test]
fn hyperfines_forms() {
    let measured = proved().measured.unwrap();
    let json = hyperfine_json(&measured, ("./app", "cured"));
    let first = &json["results"][0];
    assert_eq!((&first["command"], &first["times"]), (&json!("./app"), &json!([0.019, 0.021])));
    assert_eq!((&first["min"], &first["max"], &first["exit_codes"]), (&json!(0.019), &json!(0.021), &json!([0, 0])));
    assert!((first["mean"].as_f64().unwrap() - 0.020).abs() < 1e-9);
    let table = hyperfine_markdown(&measured, ("./app | cat", "cured"));
    assert_eq!(
        table,
        "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n\
         |:---|---:|---:|---:|---:|\n\
         | `./app \\| cat` | 20.000 ± 1.414 | 19.000 | 21.000 | 2.00 |\n\
         | `cured` | 10.000 ± 1.414 | 9.000 | 11.000 | 1.00 |\n"
    );
}
