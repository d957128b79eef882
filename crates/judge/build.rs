//! Lists `causes/*.toml`, so that adding a cause is adding a file. What the calls look like that a cause explains becomes
//! code, as most runs ask it of nearly all causes; what else stands in the file becomes JSON, which is read only of causes
//! that a finding names, in a fraction of the time that TOML takes.
#![allow(clippy::disallowed_methods, reason = "the crate does no I/O, building it does")]

use std::path::Path;
use toml::{Table, Value};

fn main() {
    let folder = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("causes");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of causes is part of the crate")
        .map(|entry| entry.expect("readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    let mut list = String::from("&[\n");
    for file in &files {
        let id = file.file_stem().and_then(|n| n.to_str()).expect("a UTF-8 name");
        let place = file.display().to_string();
        let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{place}: {e}"));
        let cause: Table = text.parse().unwrap_or_else(|e| panic!("{place}: {e}"));
        assert_eq!(cause.get("id").and_then(Value::as_str), Some(id), "{place}: a file is called as its cause");
        let json = serde_json::to_string(&cause).unwrap_or_else(|e| panic!("{place}: {e}"));
        let patterns = cause.get("match").and_then(Value::as_array).into_iter().flatten();
        let patterns: String = patterns.filter_map(Value::as_table).map(pattern).collect();
        list.push_str(&format!(
            "File {{ id: {id:?}, json: {json:?}, #[cfg(test)] toml: include_str!({place:?}),
                matches: {{ const PATTERNS: &[Pattern] = &[{patterns}]; PATTERNS }} }},\n"
        ));
    }
    list.push_str("]\n");
    let out = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("causes.rs");
    std::fs::write(out, list).expect("OUT_DIR is writable");
}

/// A pattern as code. What is wrong in one a test refuses, which holds it against what reading the file makes of it.
fn pattern(pattern: &Table) -> String {
    let field = |(key, value): (&String, &Value)| match key.as_str() {
        "kinds" => format!("kinds: {},", constant("Kind", &texts(value, |kind| format!("Kind::{}", variant(kind))))),
        "syscalls" => {
            let numbers = texts(value, |name| format!("Sysno::named({name:?})"));
            format!("syscalls: {},", constant("Sysno", &numbers))
        }
        "apis" | "objects" => {
            let borrowed = texts(value, |text| format!("Cow::Borrowed({text:?})"));
            format!("{key}: {},", constant("Cow<'static, str>", &borrowed))
        }
        "args" | "not_args" => {
            let values = |(at, values): (&String, &Value)| format!("({at}, {}),", constant("i32", &numbers(values)));
            let all: String = value.as_table().into_iter().flatten().map(values).collect();
            format!("{key}: {},", constant("ArgValues", &all))
        }
        "results" => format!("results: {},", constant("i64", &numbers(value))),
        "why" => format!("why: Some(Cow::Borrowed({:?})),", value.as_str().unwrap_or_default()),
        _ => String::new(),
    };
    let fields: String = pattern.iter().map(field).collect();
    let asked = |(name, value): (&String, &Value)| {
        value.as_bool().map(|holds| format!(".ask(Fact::{}, Some({holds}))", variant(name)))
    };
    let facts: String = pattern.iter().filter_map(asked).collect();
    format!("Pattern {{ {fields} facts: AskedFacts::NONE{facts}, ..Pattern::ANYTHING }},")
}

/// A list that is made when the code is compiled.
fn constant(of: &str, items: &str) -> String {
    format!("List::Borrowed({{ const ITEMS: &[{of}] = &[{items}]; ITEMS }})")
}

/// Texts of a list, each as `code` writes it.
fn texts(list: &Value, code: impl Fn(&str) -> String) -> String {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(|text| code(text) + ",").collect()
}

/// Numbers of a list.
fn numbers(list: &Value) -> String {
    list.as_array().into_iter().flatten().filter_map(Value::as_integer).map(|number| format!("{number},")).collect()
}

/// What `small-io` or `inside_libc` is called in code.
fn variant(name: &str) -> String {
    let upper = |word: &str| word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect();
    name.split(['-', '_']).map(upper).collect::<Vec<String>>().concat()
}
