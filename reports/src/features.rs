//! Lists the features of a report: what stands in it, so that a corpus can be chosen in which everything stands.

use crate::render::{Judged, list, name};
use serde_json::Value;
use std::collections::BTreeSet;

/// Parts of the JSON whose fields are features.
const PARTS: [&str; 11] =
    ["findings", "also", "rounds", "untold", "unjudged", "waits", "counted", "requests", "attached", "exit", "told"];
/// Fields whose values are words of a short list, so that each value is a feature.
const WORDS: [&str; 9] = ["cause", "kind", "confidence", "language", "basis", "doubt", "phase", "unit", "protocol"];

/// Returns the features of a report.
pub fn features(judged: &Judged) -> BTreeSet<String> {
    let json = &judged.json;
    let mut all = BTreeSet::new();
    all.insert(format!("backend {}", json["backend"]));
    for finding in list(json, "findings").chain(list(json, "also")) {
        let cause = name(finding);
        all.insert(format!("{cause} in {}", finding["language"]));
        // Without a cause the advice is the detector's own.
        for advice in list(finding, "stop") {
            all.insert(format!("{cause}: {advice}"));
        }
        all.insert(format!("{cause}: {}", words(finding["why"].as_str().unwrap_or_default())));
    }
    for problem in list(json, "problems").filter_map(Value::as_str) {
        all.insert(format!("problem {}", words(problem)));
    }
    for part in PARTS {
        fields(part, &json[part], &mut all);
    }
    all
}

/// Adds the fields of a value that say something, by their paths.
fn fields(path: &str, value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::Null | Value::Bool(false) => {}
        Value::Array(list) => list.iter().for_each(|entry| fields(path, entry, all)),
        Value::Object(object) => {
            for (name, value) in object {
                fields(&format!("{path}.{name}"), value, all);
                if let Some(word) = value.as_str().filter(|_| WORDS.contains(&name.as_str())) {
                    all.insert(format!("{path}.{name} {word}"));
                }
            }
        }
        _ => {
            all.insert(path.to_owned());
        }
    }
}

/// Returns the words of a sentence that are neither numbers nor names.
fn words(sentence: &str) -> String {
    let plain = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '\'' | ',' | '.'));
    sentence.split_whitespace().filter(plain).collect::<Vec<_>>().join(" ")
}
