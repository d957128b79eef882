//! Counts strace's calls between two marks: look-ups of a path that does not exist,
//! `/systoll-mark`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

pub(crate) type Calls = BTreeMap<String, u64>;

const MARK: &str = "/systoll-mark";

/// Returns the reason why strace can't be used, if it can't.
pub(crate) fn missing() -> Option<String> {
    let traced = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    match traced {
        Ok(traced) if traced.status.success() => None,
        Ok(traced) => Some(String::from_utf8_lossy(&traced.stderr).into_owned()),
        Err(error) => Some(format!("strace: {error}")),
    }
}

/// Runs `command` under strace and counts the calls that the marking thread made between its marks.
pub(crate) fn between_marks(program: &Path, arguments: &[&str], set: &[(&str, &str)]) -> Calls {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(trace.path()).arg(program).args(arguments).envs(set.iter().copied());
    told(&strace.output().unwrap());
    let text = String::from_utf8_lossy(&std::fs::read(trace.path()).unwrap()).into_owned();
    counted(&text)
}

/// Returns the output of a program that has to succeed.
pub(crate) fn told(output: &Output) -> String {
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn counted(trace: &str) -> Calls {
    let marks: Vec<usize> = trace.lines().enumerate().filter(|(_, l)| l.contains(MARK)).map(|(at, _)| at).collect();
    let [begin, end] = marks[..] else { panic!("{} marks in:\n{trace}", marks.len()) };
    let thread = trace.lines().nth(begin).and_then(|l| l.split_whitespace().next()).unwrap();
    let mut calls = Calls::new();
    for line in trace.lines().take(end).skip(begin + 1) {
        let Some(rest) = line.strip_prefix(thread).map(str::trim_start) else { continue };
        // Resumed calls have been counted; signals and exits are no calls.
        let Some((name, _)) = rest.split_once('(').filter(|(n, _)| n.chars().all(|c| c.is_alphanumeric() || c == '_'))
        else {
            continue;
        };
        let name = if name.starts_with("syscall_") { "unknown" } else { name };
        *calls.entry(name.to_owned()).or_default() += 1;
    }
    calls
}

/// Parses `name count` lines; fails with the reason if calls were not counted.
pub(crate) fn listed(text: &str) -> Result<Calls, String> {
    if let Some(why) = text.strip_prefix("skipped: ") {
        return Err(why.trim().to_owned());
    }
    Ok(text
        .lines()
        .map(|l| l.split_once(' ').unwrap())
        .map(|(name, calls)| (name.to_owned(), calls.parse().unwrap()))
        .collect())
}
