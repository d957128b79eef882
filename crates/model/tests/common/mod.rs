//! What the integration tests share.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::process::Command;

/// Says on stderr why a test did not run. With SYSTOLL_TEST_STRICT=1 that is a failure.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("SYSTOLL_TEST_STRICT").is_none_or(|v| v != "1"), "skipped: {why}");
    eprintln!("skipped: {why}");
}

/// Standard output of a command that succeeded; `None` where there is no such command. Panics
/// with its standard error where it failed.
pub(crate) fn run(program: &str, args: &[&str]) -> Option<String> {
    let output = match Command::new(program).args(args).output() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        other => other.unwrap_or_else(|e| panic!("{program}: {e}")),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {stderr}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
