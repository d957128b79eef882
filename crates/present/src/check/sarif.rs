//! SARIF 2.1.0: findings at file and line, for code scanning and editors.

use super::{BudgetReport, Message};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// URL of the SARIF standard's schema.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Converts the check to a SARIF log. `version` is that of systoll.
pub fn sarif_json(checked: &BudgetReport<'_>, version: &str) -> Value {
    let messages = checked.messages();
    let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
    for m in &messages {
        rules.entry(&m.rule).or_insert_with(|| json!({"id": m.rule, "shortDescription": {"text": rule_text(&m.rule)}}));
    }
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "systoll",
                "semanticVersion": version,
                "rules": rules.values().collect::<Vec<_>>(),
            }},
            "columnKind": "utf16CodeUnits",
            "results": messages.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn rule_text(rule: &str) -> String {
    match rule {
        "calls" => "more or fewer system calls than the budget has".into(),
        "failed" => "more or fewer failing system calls than the budget has".into(),
        "rate" => "more or fewer system calls a unit of work than the budget has".into(),
        "exact" => "the counts are not exact".into(),
        "units" => "how much work was done is not known".into(),
        cause => format!("needless system calls: systoll explain {cause}"),
    }
}

fn result(m: &Message) -> Value {
    json!({
        "ruleId": m.rule,
        "level": if m.verdict.breaks() { "error" } else { "note" },
        "message": {"text": m.text},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&m.file)},
            "region": {"startLine": m.line.max(1)},
        }}],
    })
}

/// Converts a path to a URI (RFC 3986): relative if it lies in the root, otherwise with the scheme
/// `file`.
fn uri(path: &str) -> String {
    let mut out = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_are_uris() {
        assert_eq!(super::uri("src/a b.c"), "src/a%20b.c");
        assert_eq!(super::uri("/x/ü"), "file:///x/%C3%BC");
    }
}
