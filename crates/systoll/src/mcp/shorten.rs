//! Shortens a report for a reader with little room: lists lose their ends until it fits, and a note
//! says what was left out.

use serde_json::{Map, Value, json};
use std::cmp::Reverse;

/// Largest size of an answer, bytes: some ten thousand tokens.
pub(super) const ROOM: usize = 40_000;
/// Lists for looking up rather than reading. They are shortened first, in this order.
const LOOKED_UP: [&str; 8] = ["rows", "vdso", "processes", "prices", "by_syscall", "longest", "rounds", "problems"];
/// Number of elements of the lists for looking up that are kept, round by round.
const FEWER: [usize; 4] = [20, 10, 5, 2];
/// Number of elements of any list, and of bytes of any text, that are kept, round by round, if
/// shortening those lists was not enough.
const FEWEST: [(usize, usize); 6] = [(40, 4000), (20, 2000), (10, 1000), (5, 400), (2, 120), (1, 40)];

/// Shortens `value` to [`ROOM`]. Its rows are put in order of cost, the costliest first, each with
/// its index in the report.
pub(super) fn shorten(mut value: Value) -> Value {
    let mut left_out = Map::new();
    if let Some(rows) = value.get_mut("rows").and_then(Value::as_array_mut) {
        for (nth, row) in rows.iter_mut().enumerate().filter_map(|(nth, row)| Some((nth, row.as_object_mut()?))) {
            row.remove("histogram_log2_ns");
            // The index that a finding's `rows` and `/rows/N` of the whole report refer to.
            row.insert("nth".into(), nth.into());
        }
        rows.sort_by_cached_key(|row| Reverse(row["toll_ns"].as_u64().unwrap_or(0)));
    }
    for most in FEWER {
        for name in LOOKED_UP {
            if size(&value) + size(&Value::Object(left_out.clone())) <= ROOM {
                return told(value, left_out);
            }
            if let Some(list) = value.get_mut(name) {
                cut(list, most, &format!("/{name}"), &mut left_out);
            }
        }
    }
    for (most, bytes) in FEWEST {
        if size(&value) <= ROOM {
            break;
        }
        cut_all(&mut value, most, bytes);
        left_out.insert("everywhere".into(), json!({"longest_list": most, "longest_text": bytes}));
    }
    if size(&value) > ROOM {
        // Even the names are too long. No report of ours is like that, but others may have written
        // the file.
        value = json!({"too_large": true});
    }
    told(value, left_out)
}

/// Moves these fields of an object to the front, in this order.
pub(super) fn in_order(value: Value, first: &[&str]) -> Value {
    let Value::Object(mut fields) = value else { return value };
    let mut ordered: Map<String, Value> =
        first.iter().filter_map(|name| Some(((*name).to_owned(), fields.shift_remove(*name)?))).collect();
    ordered.extend(fields);
    Value::Object(ordered)
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Adds `left_out` to `value`: for each shortened list, by its JSON pointer, the number of its
/// elements.
fn told(mut value: Value, left_out: Map<String, Value>) -> Value {
    if let (Some(object), false) = (value.as_object_mut(), left_out.is_empty()) {
        object.insert("left_out".into(), Value::Object(left_out));
    }
    value
}

fn cut(value: &mut Value, most: usize, place: &str, left_out: &mut Map<String, Value>) {
    let had = match value {
        Value::Array(list) => {
            let had = list.len();
            list.truncate(most);
            had
        }
        Value::Object(object) => {
            let had = object.len();
            let keys: Vec<String> = object.keys().skip(most).cloned().collect();
            keys.iter().for_each(|key| {
                object.remove(key);
            });
            had
        }
        _ => return,
    };
    if had > most && !left_out.contains_key(place) {
        left_out.insert(place.into(), had.into());
    }
}

/// Cuts every list and every text. Recursion is bounded: serde_json reads no deeper than 128.
fn cut_all(value: &mut Value, most: usize, bytes: usize) {
    match value {
        Value::Array(list) => {
            list.truncate(most);
            list.iter_mut().for_each(|value| cut_all(value, most, bytes));
        }
        Value::Object(object) => object.iter_mut().for_each(|(_, value)| cut_all(value, most, bytes)),
        Value::String(text) if text.len() > bytes => {
            text.truncate(text.floor_char_boundary(bytes));
            text.push('…');
        }
        _ => {}
    }
}

/// Returns the part of a report that `at` points to (RFC 6901); if that is a list, `limit` elements
/// from `offset` on.
pub(super) fn part(value: &Value, at: &str, offset: usize, limit: usize) -> Option<Value> {
    let found = value.pointer(at)?;
    Some(match found {
        Value::Array(list) => {
            let some: Vec<Value> = list.iter().skip(offset).take(limit).cloned().collect();
            json!({"at": at, "offset": offset, "of": list.len(), "value": some})
        }
        other => json!({"at": at, "value": other}),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_answers_stay_whole() {
        let value = json!({"rows": [{"toll_ns": 1}, {"toll_ns": 2}], "calls": 3});
        let rows = json!([{"toll_ns": 2, "nth": 1}, {"toll_ns": 1, "nth": 0}]);
        assert_eq!(shorten(value), json!({"rows": rows, "calls": 3}));
    }

    #[test]
    fn lists_that_are_looked_up_go_first() {
        let rows: Vec<Value> = (0..5000).map(|n| json!({"toll_ns": n, "syscall": "getpid"})).collect();
        let short = shorten(json!({"rows": rows, "findings": vec![json!({"calls": 1}); 50]}));
        assert_eq!(short["rows"].as_array().unwrap().len(), 20);
        assert_eq!((&short["rows"][0]["toll_ns"], &short["left_out"]), (&json!(4999), &json!({"/rows": 5000})));
        assert_eq!(short["findings"].as_array().unwrap().len(), 50);
    }

    #[test]
    fn every_answer_fits() {
        let hostile = [
            json!({"a": "x".repeat(1 << 20)}),
            json!({"findings": vec![json!({"b": vec!["ä".repeat(300); 30]}); 90]}),
            Value::Object((0..9000).map(|n| (format!("key {n}"), json!(n))).collect()),
            json!(vec![vec![1; 300]; 300]),
        ];
        for value in hostile {
            assert!(size(&shorten(value)) < ROOM + 1000);
        }
    }

    #[test]
    fn parts_are_pointed_to() {
        let value = json!({"rows": [1, 2, 3], "exit": {"code": 0}});
        assert_eq!(part(&value, "/rows", 1, 1), Some(json!({"at": "/rows", "offset": 1, "of": 3, "value": [2]})));
        assert_eq!(part(&value, "/exit/code", 0, 9).unwrap()["value"], 0);
        assert_eq!(part(&value, "/none", 0, 9), None);
    }
}
