//! `prove --live`: the screen, and its JSON against the schema.

use crate::common::schema::violations;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use systoll_model::{InPlace, Missed, Sysno};
use systoll_present::{LiveSubject, Style, live_json, write_live};
use systoll_prove::{
    Answered, Change, Ended, Estimate, LiveComparison, LiveResult, LiveSide, LiveTurn, Turn, Verdict, Work,
};

fn estimate(median: f64) -> Estimate {
    Estimate { median, low: median, high: median }
}

fn side(per_second: f64, asked: f64) -> LiveSide {
    LiveSide {
        per_second: estimate(per_second),
        latency_ns: None,
        cpu_ns: Some(estimate(1e9 / per_second)),
        processors: estimate(0.97),
        calls: estimate(per_second + asked),
        asked: estimate(asked),
        failed: 0,
    }
}

fn answered() -> Answered {
    let in_place = InPlace { syscall: Sysno(39), answered: 8_000, needed: 1, missed: vec![(Missed::Unknown, 8)] };
    Answered { calls: vec![in_place], runs: 8, told: Vec::new() }
}

fn both() -> LiveComparison {
    let change = |percent, verdict| Change {
        percent,
        low: percent - 1.0,
        high: percent + 1.0,
        verdict,
        pairs_for_one_percent: 9,
    };
    LiveComparison {
        turns: 8,
        seconds: estimate(1.5),
        confidence: 0.99,
        work: Work::Calls(Sysno(1)),
        a: side(1_000_000.0, 2_000_000.0),
        b: side(2_000_000.0, 0.0),
        per_second: change(100.0, Verdict::Faster),
        latency: None,
        cpu: Some(change(-50.0, Verdict::Faster)),
        processors: change(0.0, Verdict::NoDifference),
        answered: answered(),
        ended: None,
    }
}

fn turn() -> LiveTurn {
    LiveTurn {
        answered: true,
        seconds: 1.5,
        cpu_ns: 7,
        made: BTreeMap::from([(Sysno(1), 9)]),
        in_place: answered().calls,
        load: Some(Turn { per_second: 3.0, ..Turn::default() }),
    }
}

fn subject<'a>(processes: &'a [(i32, String)], problems: &'a [String]) -> LiveSubject<'a> {
    LiveSubject { processes, elided: &["getpid"], load: None, left: Some((1_800_000, problems)) }
}

fn written(result: &LiveResult) -> Value {
    live_json(result, &[turn()], subject(&[(7, "app".into())], &["x".into()]), "0.1.0")
}

#[test]
fn json_conforms_to_its_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/reference/live.schema.json")).unwrap();
    let ended = LiveComparison { ended: Some(Ended::Gone("it has ended".into())), work: Work::Asked, ..both() };
    let all = [
        (LiveResult::Both(Box::new(both())), Value::Null),
        (LiveResult::Both(Box::new(ended)), Value::Null),
        (LiveResult::Fails("3 requests failed".into()), json!("failed")),
        (LiveResult::Part(answered()), json!("answered-in-part")),
        (LiveResult::NoCalls(1.5), json!("no-calls")),
    ];
    for (result, problem) in &all {
        let json = written(result);
        assert_eq!(violations(&schema, &json), Vec::<String>::new());
        assert_eq!(&json["problem"], problem);
    }
    let whole = written(&all[0].0);
    assert_eq!((&whole["unit"], &whole["verdict"]["cpu"]), (&json!("write"), &json!("faster")));
    assert_eq!(whole["each"][0]["in_place"]["getpid"], json!(8_000));
    let gone = written(&all[1].0);
    assert_eq!(
        (&gone["unit"], &gone["ended"], &gone["why"]),
        (&json!("elided"), &json!("gone"), &json!("it has ended"))
    );
    let mut bad = whole;
    bad["ended"] = json!("bored");
    assert!(!violations(&schema, &bad).is_empty());
}

#[test]
fn the_screen() {
    let text = |result: &LiveResult| {
        let mut out = Vec::new();
        write_live(&mut out, result, subject(&[(7, "app".into())], &[]), Style::default()).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        text(&LiveResult::Both(Box::new(both()))),
        "  process 7 (app): 8 turns of 1.50 s each way, interleaved, watched alike from inside

                              as it is   with: getpid answered in place
  write calls a second       1,000,000       2,000,000      +100.0 %   99 % between +99.0 and +101.0
  CPU a write call                1 µs          500 ns       -50.0 %   99 % between -51.0 and -49.0
  CPUs kept busy                 0.970           0.970        +0.0 %   99 % between -1.0 and +1.0: no difference shown
  calls a second             3,000,000       2,000,000
    getpid                   2,000,000               0

  answered   1,000 of 1,001 getpid calls that change nothing, in a turn (99.9 %)
  without them   2.0 times as many write calls a second, 50.0 % less CPU a write call
  it runs on as before; none of its threads was stopped for longer than 1.8 ms
"
    );
    let none = text(&LiveResult::NoCalls(1.5));
    assert!(none.starts_with("  process 7 (app) made no getpid call in 1.5 s: nothing to win there now\n"), "{none}");
}
