//! Lists `causes/*.toml`, so that adding a cause is adding a file.
#![allow(clippy::disallowed_methods, reason = "the crate does no I/O, building it does")]

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let folder = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("causes");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of causes is part of the crate")
        .map(|entry| entry.expect("readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.file_name().and_then(|n| n.to_str()).expect("a UTF-8 name");
        writeln!(list, "    ({name:?}, include_str!({:?})),", file.display().to_string()).expect("a String grows");
    }
    list.push_str("]\n");
    let out = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("causes.rs");
    std::fs::write(out, list).expect("OUT_DIR is writable");
}
