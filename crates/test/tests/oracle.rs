//! Compares counts of blocks with strace's of the same work.
#![expect(clippy::print_stdout, reason = "a test that can't run says why")]

mod strace;

use std::path::PathBuf;
use std::process::Command;

/// Returns the example with the work, which cargo builds beside its tests.
fn blocks() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/blocks")
}

#[test]
fn block_counts_equal_strace() {
    if let Some(why) = strace::missing() {
        println!("skipped: {why}");
        return;
    }
    let run = |how, name| strace::told(&Command::new(blocks()).args([how, name]).output().unwrap());
    let names = run("list", "all");
    assert!(names.lines().count() >= 15, "{names}");
    for name in names.lines() {
        let counted = match strace::listed(&run("count", name)) {
            Ok(counted) => counted,
            Err(why) => {
                println!("skipped: {why}");
                return;
            }
        };
        let mut traced = strace::between_marks(&blocks(), &["plain", name], &[]);
        if name == "sigsys" {
            // Our handler calls the program's handler, which returns to ours.
            assert_eq!(traced.remove("rt_sigreturn"), Some(1));
        }
        assert_eq!(counted, traced, "{name}");
    }
}
