//! Tests `prove --serve`: the screen, and its JSON against the schema.

use crate::common::schema::violations;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use systoll_present::{SideCommand, Style, serve_json, write_servers};
use systoll_prove::{CallCounts, Change, Estimate, Range, ServeComparison, Served, ServerSide, Verdict};

fn estimate(median: f64) -> Estimate {
    Estimate { median, low: median, high: median }
}

fn side(per_second: f64, calls: u64) -> ServerSide {
    let total = Range { low: calls, median: calls, high: calls };
    let calls = CallCounts { total, runs: 1, exact: true, ..CallCounts::default() };
    ServerSide {
        per_second: estimate(per_second),
        latency_ns: Some(estimate(1e9 / per_second)),
        cpu_ns: Some(estimate(21_000.0)),
        killed: 0,
        failed: 0,
        calls: Some((calls, 1_000)),
    }
}

fn both() -> Served {
    let change = |percent, verdict| Change {
        percent,
        low: percent - 1.0,
        high: percent + 1.0,
        verdict,
        pairs_for_one_percent: 9,
    };
    Served::Both(Box::new(ServeComparison {
        turns: 8,
        confidence: 0.99,
        told: true,
        watched: false,
        a: side(10_000.0, 5_000),
        b: side(12_000.0, 3_000),
        per_second: change(20.0, Verdict::Faster),
        latency: Some(change(-16.7, Verdict::Faster)),
        cpu: Some(change(0.0, Verdict::NoDifference)),
    }))
}

fn written(served: &Served) -> Value {
    let command = ["./server".to_owned()];
    let env = BTreeMap::from([("TZ".to_owned(), None)]);
    let of = SideCommand { command: &command, env: &env, elided: &["getpid"] };
    serve_json(served, (of, of), &["ab".to_owned()], "0.1.0")
}

#[test]
fn json_conforms_to_its_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/reference/serve.schema.json")).unwrap();
    let whole = written(&both());
    assert_eq!(violations(&schema, &whole), Vec::<String>::new());
    assert_eq!((&whole["a"]["calls"], &whole["verdict"]["per_second"]), (&json!(5.0), &json!("faster")));
    let fails = written(&Served::Fails("it died".into()));
    assert_eq!(violations(&schema, &fails), Vec::<String>::new());
    assert_eq!((&fails["problem"], &fails["turns"]), (&json!("failed"), &json!(0)));
    let mut bad = whole;
    bad["unit"] = json!("furlong");
    assert!(!violations(&schema, &bad).is_empty());
}

#[test]
fn the_screen() {
    let text = |served: &Served| {
        let mut out = Vec::new();
        write_servers(&mut out, served, ("as it is", "with: A=1"), Style::default()).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        text(&both()),
        "  8 turns a side, interleaved, unwatched; what is answered is not compared

                              as it is   with: A=1
  requests a second             10,000          12,000       +20.0 %   99 % between +19.0 and +21.0
  latency                       100 µs         83.3 µs       -16.7 %   99 % between -17.7 and -15.7
  CPU a request                  21 µs           21 µs        +0.0 %   99 % between -1.0 and +1.0: no difference shown
  calls a request                 5.00            3.00         -2.00   a watched turn of either, start and end included

  proved   20.0 % more requests a second
"
    );
    let fails = text(&Served::Fails("the server ended with signal 11".into()));
    assert_eq!(fails, "  changed, it does not serve as it did: the server ended with signal 11; nothing is claimed\n");
}
