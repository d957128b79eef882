//! Lists `causes/*.toml`, so that adding a cause is adding a file, with what each asks of the calls that it explains:
//! a run reads only the files that may explain calls of its own. It reads them as JSON, which takes a fraction of the time.
#![allow(clippy::disallowed_methods, reason = "the crate does no I/O, building it does")]

use std::fmt::Write as _;
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
        writeln!(
            list,
            "    File {{ id: {id:?}, json: {json:?}, #[cfg(test)] toml: include_str!({place:?}), matches: &["
        )
        .expect("a String grows");
        for pattern in cause.get("match").and_then(Value::as_array).into_iter().flatten() {
            let (kinds, syscalls, apis) =
                (strings(pattern, "kinds"), strings(pattern, "syscalls"), strings(pattern, "apis"));
            writeln!(list, "        Asked {{ kinds: &{kinds:?}, syscalls: &{syscalls:?}, apis: &{apis:?} }},")
                .expect("a String grows");
        }
        list.push_str("    ] },\n");
    }
    list.push_str("]\n");
    let out = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("causes.rs");
    std::fs::write(out, list).expect("OUT_DIR is writable");
}

/// The strings of a list; none where there is no such list. What is no list of strings a test refuses.
fn strings<'a>(pattern: &'a Value, key: &str) -> Vec<&'a str> {
    let list = pattern.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}
