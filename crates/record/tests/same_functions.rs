//! Tests that the planner of hooks and the naming of frames find the same functions: a counted call has a caller with a
//! name, and code with a name is searched for calls.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test says how much it has compared, and skipped")]

use std::path::{Path, PathBuf};
use std::process::Command;
use systoll_hooks::plan::{functions, plan};
use systoll_symbols::Preloaded;

fn skip(why: &str) {
    assert!(std::env::var("SYSTOLL_TEST_STRICT").as_deref() != Ok("1"), "not to be skipped: {why}");
    eprintln!("skipped: {why}");
}

/// Returns the first of some files that exists, by the kernel's name.
fn first(paths: &[&str]) -> Option<PathBuf> {
    let found = paths.iter().find_map(|path| std::fs::canonicalize(path).ok());
    if found.is_none() {
        skip(&format!("none of {paths:?} is here"));
    }
    found
}

/// Builds a program from a source; `None` if there is no such compiler.
fn built(dir: &Path, command: &[&str], source: (&str, &str)) -> Option<PathBuf> {
    let (input, output) = (dir.join(source.0), dir.join(format!("{}{}", source.0, command.len())));
    std::fs::write(&input, source.1).unwrap();
    let status =
        Command::new(command[0]).args(&command[1..]).arg("-o").arg(&output).arg(&input).current_dir(dir).status();
    match status {
        Ok(status) if status.success() => Some(output),
        other => {
            skip(&format!("{command:?}: {other:?}"));
            None
        }
    }
}

#[derive(Debug, Default)]
struct Compared {
    /// Number of calls in functions that the planner has followed from their start.
    planned: usize,
    /// Number of calls in functions whose range the naming knows.
    named: usize,
    /// Calls whose function is known to the planner only, or to the naming only.
    apart: Vec<String>,
    /// Number of functions for which planner and naming have the same start address.
    same_start: usize,
}

fn compare(path: &Path) -> Compared {
    let elf = std::fs::read(path).unwrap();
    let file = Preloaded::default().open(path).expect("an ELF file for x86-64");
    let planned = functions(&elf).unwrap();
    let calls = plan(&elf).unwrap().sites;
    let mut compared = Compared::default();
    for call in calls.iter().map(|site| site.address) {
        let next = planned.partition_point(|f| f.start <= call);
        let by_planner = next.checked_sub(1).and_then(|n| planned.get(n)).filter(|f| call < f.end);
        let by_namer = file.function_at(call).filter(|f| f.contains(&call));
        compared.planned += usize::from(by_planner.is_some());
        compared.named += usize::from(by_namer.is_some());
        let start = |f: &std::ops::Range<u64>| f.start;
        compared.same_start += usize::from(by_planner.map(start) == by_namer.as_ref().map(start));
        if by_planner.is_some() != by_namer.is_some() {
            compared.apart.push(format!("{call:#x}: planner {by_planner:x?}, namer {by_namer:x?}"));
        }
    }
    println!(
        "{}: {} calls, {} in functions of the planner's, {} of the namer's, {} begin alike",
        path.display(),
        calls.len(),
        compared.planned,
        compared.named,
        compared.same_start
    );
    compared
}

#[test]
fn planner_and_namer_see_the_same_functions() {
    const C: (&str, &str) = ("hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n");
    const GO: (&str, &str) = ("hello.go", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n");
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let files = [
        first(&["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"]),
        first(&["/lib64/ld-linux-x86-64.so.2"]),
        first(&["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"]),
        first(&["/bin/bash"]),
        first(&["/usr/bin/python3"]),
        first(&["/usr/bin/perl"]),
        first(&["/usr/lib/x86_64-linux-musl/libc.so", "/lib/ld-musl-x86_64.so.1"]),
        first(&[
            "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
            "/usr/lib64/libcrypto.so.3",
            "/lib/x86_64-linux-gnu/libcrypto.so.1.1",
        ]),
        first(&["/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6"]),
        std::env::current_exe().ok(),
        built(dir, &["gcc", "-O2"], C),
        built(dir, &["gcc", "-O2", "-static"], C),
        built(dir, &["gcc", "-O2", "-static", "-s"], C),
        built(dir, &["go", "build"], GO),
        built(dir, &["go", "build", "-ldflags=-s -w", "-trimpath"], GO),
        built(dir, &["go", "build", "-buildmode=pie"], GO),
    ];
    let (mut planned, mut same, mut apart) = (0, 0, Vec::new());
    for path in files.iter().flatten() {
        let compared = compare(path);
        (planned, same) = (planned + compared.planned, same + compared.same_start);
        apart.extend(compared.apart.iter().map(|call| format!("{}: {call}", path.display())));
    }
    assert!(planned > 100, "{planned} calls tell nothing");
    assert!(apart.is_empty(), "{}", apart.join("\n"));
    // Planner and naming read the same tables in another order; they may disagree, because sizes of symbols in assembly
    // are written by hand.
    assert!(same * 10 >= planned * 9, "{same} of {planned} begin alike");
}
