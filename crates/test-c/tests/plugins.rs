//! Tests of the plugins in their own languages, compared with strace, and of their output to users.
#![expect(clippy::print_stdout, reason = "a test that can't run says why")]

#[path = "../../test/tests/strace/mod.rs"]
mod strace;

use std::path::{Path, PathBuf};
use std::process::Command;
use strace::{Calls, between_marks, listed, told};
use tempfile::TempDir;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the library that cargo built for these tests.
fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().join("libsystoll_block.so")
}

/// Makes a folder with the files of a plugin and the library, like an installed package.
fn installed(plugin: &str, files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        std::fs::copy(here(plugin).join(file), folder.path().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
    std::fs::copy(library(), folder.path().join("libsystoll_block.so")).unwrap();
    folder
}

/// Returns true if a tool is available; else prints its name as the reason why a test is skipped.
fn has(program: &str, arguments: &[&str]) -> bool {
    let there = Command::new(program).args(arguments).output().is_ok_and(|o| o.status.success());
    if !there {
        println!("skipped: no {program} {}", arguments.join(" "));
    }
    there
}

/// Calls that a language's runtime makes at any time: for memory, for its threads, at a signal's
/// end. All others belong to the work.
const RUNTIMES: &[&str] = &[
    "brk",
    "mmap",
    "munmap",
    "mprotect",
    "madvise",
    "futex",
    "rt_sigreturn",
    "sched_yield",
    "epoll_pwait",
    "nanosleep",
];

/// Compares a program's counts with strace's of its twin.
fn compare(program: &Path, script: &[&str], work: &str, set: &[(&str, &str)]) {
    if let Some(why) = strace::missing() {
        println!("skipped: {why}");
        return;
    }
    let arguments = |how| [script, &[how, work]].concat();
    let output = Command::new(program).args(arguments("count")).envs(set.iter().copied()).output().unwrap();
    match listed(&told(&output)) {
        Ok(counted) => {
            let of_work = |calls: Calls| {
                calls.into_iter().filter(|(name, _)| !RUNTIMES.contains(&name.as_str())).collect::<Calls>()
            };
            assert_eq!(of_work(counted), of_work(between_marks(program, &arguments("plain"), set)), "{work}");
        }
        Err(why) => println!("skipped: {why}"),
    }
}

const PYTHON: &[&str] = &["__init__.py", "_calls.py", "_lines.py", "_native.py", "pytest_plugin.py"];

/// Makes a folder for Python's path.
fn python() -> TempDir {
    let outer = tempfile::tempdir().unwrap();
    let package = installed("../../plugins/pytest/src/systoll", PYTHON);
    std::fs::rename(package.keep(), outer.path().join("systoll")).unwrap();
    outer
}

#[test]
fn python_counts_equal_strace() {
    if !has("python3", &["-V"]) {
        return;
    }
    let (path, work) = (python(), tempfile::tempdir().unwrap());
    let script = here("tests/work.py");
    let set = [("PYTHONPATH", path.path().to_str().unwrap()), ("WORK", work.path().to_str().unwrap())];
    for name in ["files", "threads", "children", "forks", "imports"] {
        compare(Path::new("python3"), &[script.to_str().unwrap()], name, &set);
    }
}

#[test]
fn pytest_marks_limit_tests() {
    if !has("python3", &["-m", "pytest", "--version"]) {
        return;
    }
    let path = python();
    let pytest = |arguments: &[&str]| {
        let mut run = Command::new("python3");
        run.args(["-m", "pytest", "-p", "systoll.pytest_plugin", "-p", "no:cacheprovider", "-rA", "-q"])
            .args(arguments);
        let output = run.env("PYTHONPATH", path.path()).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let marks = here("tests/marks.py");
    let marks = marks.to_str().unwrap();
    let said = pytest(&[marks]);
    if said.contains("not counted: ") {
        println!("skipped: {said}");
        return;
    }
    assert!(said.contains("5 failed, 6 passed"), "{said}");
    for failed in ["test_broken", "test_broken_in_total", "test_fails_by_itself", "test_older_name", "test_two_marks"] {
        assert!(
            said.lines().any(|l| l
                .split(' ')
                .nth(1)
                .is_some_and(|test| l.starts_with("FAILED ") && test.ends_with(&format!("::{failed}")))),
            "{failed}: {said}"
        );
    }
    let text = std::fs::read_to_string(marks).unwrap();
    let line = text.lines().position(|l| l.ends_with("# BROKEN")).unwrap() + 1;
    assert!(said.contains("openat: 5 calls, 2 is the limit\n    5 x openat: "), "{said}");
    assert!(said.contains(&format!("marks.py:{line} in test_broken\n")) || !said.contains(" in opens"), "{said}");
    assert!(said.contains("open: 3 calls, 2 is the limit\n    3 x openat: "), "{said}");
    let wrong = tempfile::tempdir().unwrap();
    for (mark, why) in
        [("opneat=1", "no system call is named 'opneat'"), ("openat=-1", "a limit is a number"), ("", "it takes names")]
    {
        let file = wrong.path().join("test_wrong.py");
        let text = format!(
            "import pytest, systoll\ndef test_before(): pass\n\
             @pytest.mark.limit_calls({mark})\ndef test_x(): pass\ndef test_after(): pass\n"
        );
        std::fs::write(&file, text).unwrap();
        let said = pytest(&[file.to_str().unwrap()]);
        assert!(said.contains(why) && said.contains("2 passed, 1 error"), "{mark}: {said}");
    }
}

/// The library is not built, as in a checkout on another machine.
#[test]
fn pytest_skips_where_it_cannot_count() {
    if !has("python3", &["-m", "pytest", "--version"]) {
        return;
    }
    let path = python();
    std::fs::remove_file(path.path().join("systoll/libsystoll_block.so")).unwrap();
    let file = path.path().join("test_x.py");
    std::fs::write(&file, "import pytest\n@pytest.mark.limit_calls(openat=1)\ndef test_x(): pass\n@pytest.mark.limit_calls(openat=1)\ndef test_y(): assert 0\n").unwrap();
    let mut run = Command::new("python3");
    run.args(["-m", "pytest", "-p", "systoll.pytest_plugin", "-p", "no:cacheprovider", "-rA"]).arg(&file);
    run.env_remove("SYSTOLL_TEST_STRICT");
    let said = String::from_utf8_lossy(
        &run.env("PYTHONPATH", path.path()).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap().stdout,
    )
    .into_owned();
    assert!(
        said.contains("1 failed, 1 skipped")
            && said.contains("its system calls are not counted: the counter's library can't be loaded"),
        "{said}"
    );
}

#[test]
fn node_counts_equal_strace() {
    if !has("node", &["--version"]) {
        return;
    }
    let (package, work) =
        (installed("../../plugins/node", &["index.js", "package.json"]), tempfile::tempdir().unwrap());
    let script = here("tests/work.js");
    let set = [("SYSTOLL_NODE", package.path().to_str().unwrap()), ("WORK", work.path().to_str().unwrap())];
    for name in ["files", "stats", "folder"] {
        compare(Path::new("node"), &[script.to_str().unwrap()], name, &set);
    }
    std::fs::create_dir(package.path().join("test")).unwrap();
    std::fs::copy(here("../../plugins/node/test/counts.test.js"), package.path().join("test/counts.test.js")).unwrap();
    let tested = Command::new("node").arg("--test").current_dir(package.path()).output().unwrap();
    assert!(told(&tested).contains("pass 7"));
}

#[test]
fn go_counts_equal_strace() {
    if !has("go", &["version"]) {
        return;
    }
    let folder = here("../../plugins/go");
    let tested = Command::new("go")
        .args(["test", "-count=1", "./..."])
        .env("CGO_ENABLED", "0")
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(
        tested.status.success(),
        "{}{}",
        String::from_utf8_lossy(&tested.stdout),
        String::from_utf8_lossy(&tested.stderr)
    );
    let built = tempfile::tempdir().unwrap();
    let program = built.path().join("work");
    let build = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg("./internal/work")
        .env("CGO_ENABLED", "0")
        .current_dir(&folder)
        .output();
    told(&build.unwrap());
    for name in ["files", "stats", "signals", "masks"] {
        compare(&program, &[], name, &[]);
    }
}

/// Go's package has the same names as the crate.
#[test]
fn go_has_the_same_names() {
    let text = std::fs::read_to_string(here("../../plugins/go/names.go")).unwrap();
    let go: Calls = text
        .lines()
        .filter_map(|l| l.trim().strip_suffix("\",")?.split_once(": "))
        .map(|(n, name)| (name.trim_matches([' ', '"']).to_owned(), n.parse().unwrap()))
        .collect();
    let ours: Calls =
        systoll_test::names().map(|name| (name.to_owned(), u64::from(systoll_test::number(name).unwrap()))).collect();
    assert_eq!(go, ours);
}

/// The test compiles with the header alone, and links as with a package.
#[test]
fn c_and_cpp_include_a_header() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(library(), folder.path().join("libsystoll_block.so")).unwrap();
    for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
        if !has(compiler, &["--version"]) {
            continue;
        }
        let program = folder.path().join(language);
        let mut build = Command::new(compiler);
        build.args(["-Wall", "-Wextra", "-Werror", "-x", language]).arg(here("tests/limit.c")).arg("-o").arg(&program);
        build.arg("-I").arg(here("include")).arg("-L").arg(folder.path()).arg("-lsystoll_block");
        let built = build.output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let run = Command::new(&program).env("LD_LIBRARY_PATH", folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(matches!(run.status.code(), Some(0 | 77)), "{language}: {:?} {said}", run.status);
    }
}

#[test]
fn it_counts_under_address_sanitizer() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("asan");
    let mut build = Command::new("cc");
    let built = build
        .args(["-g", "-fsanitize=address", "-fno-omit-frame-pointer", "-o"])
        .arg(&program)
        .arg(here("tests/asan.c"))
        .arg("-ldl")
        .output();
    if !built.as_ref().is_ok_and(|b| b.status.success()) {
        println!("skipped: no C compiler with AddressSanitizer");
        return;
    }
    let library = library();
    let run = |how| Command::new(&program).args([how, library.to_str().unwrap()]).output().unwrap();
    let said = told(&run("count"));
    if said.starts_with("skipped: ") || strace::missing().is_some() {
        println!("skipped: {said}");
        return;
    }
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let counted: Calls = serde_json::from_value(said["calls"].clone()).unwrap();
    // The leak checker uses ptrace, which strace prevents.
    assert_eq!(counted, between_marks(&program, &["plain", "-"], &[("ASAN_OPTIONS", "detect_leaks=0")]));
}
