//! Tests the JSON contract: the output conforms to docs/reference/report.schema.json, and the
//! schema describes every field.

use crate::common::{schema, stories};
use serde_json::{Value, json};
use systoll_judge::Finding;
use systoll_model::{Problem, ProblemKind};
use systoll_present::{SCHEMA_VERSION, report_json};

#[test]
fn every_story_conforms_to_the_schema() {
    let schema = schema::report_schema();
    for (name, rec, judgement) in stories::all() {
        let found = schema::violations(schema, &report_json(&rec, &judgement, None));
        assert_eq!(found, Vec::<String>::new(), "{name}");
    }
}

/// Shows that the checker finds violations; otherwise the test above would prove nothing.
#[test]
fn the_checker_finds_violations() {
    let schema = schema::report_schema();
    let (rec, judgement) = stories::localtime();
    let good = report_json(&rec, &judgement, None);
    let broken: [(&str, &str, Value); 10] = [
        ("/calls", "a string", json!("1")),
        ("/calls", "negative", json!(-1)),
        ("/exit", "an unknown way to end", json!({"code": "x"})),
        ("/findings/0/kind", "an unknown kind", json!("strange")),
        ("/findings/0/share_of_cpu", "a string", json!("NaN")),
        ("/rows/0/errors", "an errno's count", json!({"ENOENT": -3})),
        ("/rows/0/user/line", "half a line", json!(1.5)),
        ("/by_syscall/0/syscall", "no name", json!("")),
        ("/problems/0", "no text", json!(null)),
        ("/systoll/schema", "another version", json!(2)),
    ];
    for (at, what, value) in broken {
        let mut bad = good.clone();
        *bad.pointer_mut(at).expect(at) = value;
        assert_ne!(schema::violations(schema, &bad), Vec::<String>::new(), "{at} {what}");
    }
    for at in ["", "/crossing_ns", "/findings/0", "/findings/0/user", "/rows/1", "/host", "/processes/0"] {
        let object = good.pointer(at).and_then(Value::as_object).expect(at);
        for name in object.keys() {
            let mut bad = good.clone();
            bad.pointer_mut(at).and_then(Value::as_object_mut).expect(at).remove(name);
            assert_ne!(schema::violations(schema, &bad), Vec::<String>::new(), "{at} without {name}");
        }
        let mut bad = good.clone();
        bad.pointer_mut(at).and_then(Value::as_object_mut).expect(at).insert("more".into(), json!(1));
        assert_ne!(schema::violations(schema, &bad), Vec::<String>::new(), "{at} with an undescribed field");
    }
}

#[test]
fn every_field_is_described() {
    fn undescribed(schema: &Value, at: &str, found: &mut Vec<String>) {
        for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = format!("{at}.{name}");
            // These fields are described where their types are defined.
            let shared =
                ["#/$defs/user", "#/$defs/errors", "#/$defs/lines"].map(|r| Some(&json!(r)) == inner.get("$ref"));
            if inner.get("description").is_none() && !shared.contains(&true) {
                found.push(at.clone());
            }
            undescribed(inner, &at, found);
        }
        for (name, inner) in schema.get("$defs").and_then(Value::as_object).into_iter().flatten() {
            undescribed(inner, name, found);
        }
        for inner in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            undescribed(inner, at, found);
        }
    }
    let mut found = vec![];
    undescribed(schema::report_schema(), "$", &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_figures_are_the_recordings() {
    let (rec, judgement) = stories::localtime();
    let json = report_json(&rec, &judgement, None);
    let at = |pointer: &str| json.pointer(pointer).expect(pointer).clone();
    assert_eq!(at("/systoll"), json!({"version": "0.1.0", "schema": SCHEMA_VERSION}));
    assert_eq!(at("/command"), json!(["./app", "--days", "two words"]));
    assert_eq!(at("/exit"), json!({"code": 0}));
    assert_eq!((at("/backend"), at("/exact"), at("/toll_estimated")), (json!("ptrace"), json!(true), json!(true)));
    assert_eq!((at("/calls"), at("/vdso_calls")), (json!(1_004_119), json!(null)));
    assert_eq!(at("/by_syscall/0/syscall"), json!("newfstatat"));
    assert_eq!(at("/by_syscall/0/calls"), json!(999_999));
    assert_eq!(at("/by_syscall/2/errors"), json!({"ENOENT": 100}));
    assert_eq!(at("/rows/0/api"), json!("localtime"));
    assert_eq!(at("/rows/0/module"), json!("libc.so.6"));
    let user = json!({"function": "stamp", "file": "log.c", "line": 12, "module": "/home/me/app"});
    assert_eq!((at("/rows/0/user"), at("/findings/0/user")), (user.clone(), user));
    assert_eq!(at("/findings/0/apis"), json!(["localtime", "mktime"]));
    assert_eq!(at("/findings/0/needless_calls"), json!({"estimate": 999_999, "low": 950_000, "high": 999_999}));
    assert_eq!(at("/findings/0/rows"), json!([0, 1]));
    assert_eq!(at("/also/0/confidence"), json!("low"));
}

#[test]
fn a_signal_and_a_long_call_before_main() {
    let (rec, judgement) = stories::troubled();
    let json = report_json(&rec, &judgement, None);
    assert_eq!((&json["exit"], &json["exact"]), (&json!({"signal": 11}), &json!(false)));
    assert_eq!((&json["toll_ns"], &json["findings"][0]["share_of_cpu"]), (&json!(null), &json!(null)));

    let (rec, judgement) = stories::lttng();
    let json = report_json(&rec, &judgement, None);
    let long = &json["longest"][0];
    assert_eq!((&long["syscall"], &long["ns"]), (&json!("membarrier"), &json!(16_100_000)));
    assert_eq!((&long["module"], &long["startup"]), (&json!("liblttng-ust.so.0"), &json!(true)));
    assert_eq!(json["findings"][0]["phase"], json!("start-up"));
}

#[test]
fn a_run_whose_calls_were_not_all_counted_is_no_good_news() {
    let of = |kind| {
        let (mut rec, judgement) = stories::healthy();
        rec.problems.push(Problem::new(kind, "something happened"));
        let json = report_json(&rec, &judgement, None);
        let told = &json["told"];
        let verdict = told["verdict"].as_str().unwrap_or_default().to_owned();
        (json["uncounted"] == true, told["good"] == true, verdict.contains("others were not counted"))
    };
    assert_eq!(of(ProblemKind::Lost), (true, false, true));
    assert_eq!(of(ProblemKind::Unwatched), (true, false, true));
    assert_eq!(of(ProblemKind::Note), (false, true, false));
    let (rec, judgement) = stories::ruby();
    assert_eq!(report_json(&rec, &judgement, None)["told"]["good"], false);
}

#[test]
fn forks_are_told_from_starts_and_shares_of_both_fit_into_one_time() {
    let (mut rec, mut judgement) = stories::ruby();
    let start = Finding { starts: true, needless_toll_ns: 2_000, ..judgement.findings[0].clone() };
    judgement.findings = vec![Finding { copies: true, needless_toll_ns: 3_000, ..start.clone() }, start];
    rec.rows.iter_mut().for_each(|row| row.counts.toll_ns = Some(0));
    rec.header.own_cpu_ns = Some(4_000);
    (rec.header.own_cpu_least_ns, rec.header.own_cpu_most_ns) = (Some(3_000), Some(8_000));
    judgement.claimed_cpu_ns = 5_000;
    let json = report_json(&rec, &judgement, None);
    assert_eq!((&json["starting_ns"], &json["forking_ns"]), (&5_000.into(), &3_000.into()));
    let copies: Vec<_> = json["findings"].as_array().unwrap().iter().map(|f| f["copies"] == true).collect();
    assert_eq!(copies, [true, false]);
    assert_eq!((&json["own_cpu_least_ns"], &json["own_cpu_ns"]), (&5_000.into(), &5_000.into()));
}
