//! Checks values against the part of JSON Schema (draft 2020-12) that
//! docs/reference/report.schema.json uses. It refuses keywords that it doesn't know, so that none
//! is silently ignored.

use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Returns the schema of the JSON contract.
pub fn report_schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let text = include_str!("../../../../../docs/reference/report.schema.json");
        serde_json::from_str(text).expect("the schema is JSON")
    });
    &SCHEMA
}

/// Returns all violations of `schema` in `value`. A field that the schema doesn't describe is also
/// a violation: every field must be documented.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check { root: schema, found: vec![] };
    check.value(schema, value, "$");
    check.found
}

struct Check<'a> {
    root: &'a Value,
    found: Vec<String>,
}

impl Check<'_> {
    fn wrong(&mut self, at: &str, what: impl std::fmt::Display) {
        self.found.push(format!("{at}: {what}"));
    }

    fn value(&mut self, schema: &Value, value: &Value, at: &str) {
        let Some(schema) = schema.as_object() else { return self.wrong(at, "a schema that is no object") };
        for (keyword, rule) in schema {
            match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" | "examples" => {}
                "properties" | "required" | "additionalProperties" => {}
                "$ref" => self.reference(rule, value, at),
                "type" => self.type_of(rule, value, at),
                "enum" if rule.as_array().is_some_and(|all| all.contains(value)) => {}
                "const" if rule == value => {}
                "enum" | "const" => self.wrong(at, format!("{value} is not {rule}")),
                "maximum" if value.as_f64() > rule.as_f64() && value.is_number() => self.wrong(at, "too large"),
                "minimum" if value.as_f64() < rule.as_f64() && value.is_number() => self.wrong(at, "too small"),
                "minLength" if value.as_str().is_some_and(|s| (s.len() as u64) < rule.as_u64().unwrap_or(0)) => {
                    self.wrong(at, "too short");
                }
                "minimum" | "maximum" | "minLength" => {}
                "items" => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(rule, item, &format!("{at}[{i}]"));
                    }
                }
                "anyOf" => {
                    let fits = |s: &Value| violations_under(self.root, s, value).is_empty();
                    if !rule.as_array().is_some_and(|all| all.iter().any(fits)) {
                        self.wrong(at, format!("{value} fits none of anyOf"));
                    }
                }
                unknown => self.wrong(at, format!("keyword {unknown} is unknown to the checker")),
            }
        }
        if let Some(object) = value.as_object() {
            self.object(schema, object, at);
        }
    }

    fn reference(&mut self, rule: &Value, value: &Value, at: &str) {
        let name = rule.as_str().and_then(|r| r.strip_prefix("#/$defs/"));
        let root = self.root;
        match name.and_then(|n| root.get("$defs")?.get(n)) {
            Some(schema) => self.value(schema, value, at),
            None => self.wrong(at, format!("{rule} leads nowhere")),
        }
    }

    fn type_of(&mut self, rule: &Value, value: &Value, at: &str) {
        let is = |name: &str| match name {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            _ => false,
        };
        let fits = match rule {
            Value::String(name) => is(name),
            Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
            _ => false,
        };
        if !fits {
            self.wrong(at, format!("{value} is no {rule}"));
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, object: &Map<String, Value>, at: &str) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                self.wrong(at, format!("{name} is missing"));
            }
        }
        let composed = schema.contains_key("$ref") || schema.contains_key("anyOf");
        for (name, value) in object {
            let at = format!("{at}.{name}");
            match (schema.get("properties").and_then(|p| p.get(name)), schema.get("additionalProperties")) {
                (Some(schema), _) | (None, Some(schema)) if schema.is_object() => self.value(schema, value, &at),
                _ if composed => {}
                _ => self.wrong(&at, "is not described"),
            }
        }
    }
}

fn violations_under(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check { root, found: vec![] };
    check.value(schema, value, "$");
    check.found
}
