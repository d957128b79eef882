//! Lists `causes/*.toml`, so that adding a cause is adding a file. A cause's patterns become code, since most runs
//! compare calls with nearly all of them. The rest of the file becomes JSON, which is parsed only for causes that a
//! finding names, in a fraction of the time that TOML takes.
#![allow(clippy::disallowed_methods, reason = "the crate does no I/O, building it does")]

#[allow(dead_code, unreachable_pub, reason = "of facts the script needs the names")]
#[path = "src/causes/fact.rs"]
mod fact;
#[path = "src/causes/pattern_file.rs"]
mod pattern_file;

use fact::Fact;
use pattern_file::PatternFile;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

fn main() {
    let folder = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("causes");
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=src/causes/fact.rs");
    println!("cargo::rerun-if-changed=src/causes/pattern_file.rs");
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
        let read = |of: &Value| of.clone().try_into().unwrap_or_else(|e| panic!("{place}: {e}"));
        let patterns: String = patterns.map(read).map(|file: PatternFile| pattern(&file)).collect();
        list.push_str(&format!(
            "File {{ id: {id:?}, json: {json:?}, #[cfg(test)] toml: include_str!({place:?}),
                matches: {{ const PATTERNS: &[Pattern] = &[{patterns}]; PATTERNS }} }},\n"
        ));
    }
    list.push_str("]\n");
    let out = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("causes.rs");
    std::fs::write(out, list).expect("OUT_DIR is writable");
}

/// Returns a pattern as code. Names that do not exist are found when that code is compiled, and by a test that
/// compares it with the parsed file.
fn pattern(file: &PatternFile) -> String {
    let variants = |of: &str, names: &[String]| {
        let of_enum = of.to_owned();
        constant(of, &names.iter().map(|name| format!("{of_enum}::{},", variant(name))).collect::<String>())
    };
    let texts = |texts: &[String]| {
        let borrowed = texts.iter().map(|text| format!("Cow::Borrowed({text:?}),")).collect::<String>();
        constant("Cow<'static, str>", &borrowed)
    };
    let syscalls = file.syscalls.iter().map(|name| format!("Sysno::named({name:?}),")).collect::<String>();
    let args = |args: &BTreeMap<String, Vec<i32>>| {
        let values = |(at, values): (&String, &Vec<i32>)| format!("({at}, {}),", constant("i32", &numbers(values)));
        constant("ArgValues", &args.iter().map(values).collect::<String>())
    };
    let facts = file.facts();
    let asked = |fact: &Fact| facts.expects(*fact).map(|holds| format!(".ask(Fact::{fact:?}, Some({holds}))"));
    let facts: String = Fact::ALL.iter().filter_map(asked).collect();
    let why = file.why.as_ref().map_or("None".to_owned(), |why| format!("Some(Cow::Borrowed({why:?}))"));
    format!(
        "Pattern {{ kinds: {}, syscalls: {}, apis: {}, objects: {}, on: {}, languages: {}, args: {}, not_args: {},
            results: {}, facts: AskedFacts::NONE{facts}, remark: {}, why: {why} }},",
        variants("Kind", &file.kinds),
        constant("Sysno", &syscalls),
        texts(&file.apis),
        texts(&file.objects),
        variants("Target", &file.on),
        languages(&file.languages),
        args(&file.args),
        args(&file.not_args),
        constant("i64", &numbers(&file.results)),
        file.remark,
    )
}

/// Returns languages as code, by name, since a name such as `c++` is no identifier.
fn languages(names: &[String]) -> String {
    let named = names.iter().map(|name| format!("CodeLanguage::known({name:?}),")).collect::<String>();
    constant("CodeLanguage", &named)
}

/// Returns a list as a constant.
fn constant(of: &str, items: &str) -> String {
    format!("List::Borrowed({{ const ITEMS: &[{of}] = &[{items}]; ITEMS }})")
}

/// Returns a list of numbers as code.
fn numbers<T: ToString>(list: &[T]) -> String {
    list.iter().map(|number| number.to_string() + ",").collect()
}

/// Returns the variant of a kind's name: `SmallIo` for `small-io`.
fn variant(name: &str) -> String {
    let upper = |word: &str| word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect();
    name.split(['-', '_']).map(upper).collect::<Vec<String>>().concat()
}
