//! Holds the texts and JSON schemas that models read about the tools.

use crate::mcp::arguments::{LONGEST, TIMEOUT};
use serde_json::{Map, Value, json};

pub(super) const RUN: &str = "Runs a command (no shell splits it) and tells which of its system calls are needless. \
Answers with the report as docs/reference/json.md describes it, shortened: findings (most to win first: cause, kind, \
confidence, what, user = file and line, calls, needless_calls with its interval, needless_toll_ns, stop = cures, \
prove = the command that proves it), also (seen, but too small or unsure), by_syscall, rows (most expensive first), plus \
recording (for report and diff), output (what the command wrote, its middle left out) and timed_out. Give it real \
work for some tenths of a second at least. The command runs as the server's user, with no standard input.";

pub(super) const REPORT: &str = "Reads a recording again: the whole report, or the part of it that `at` points to \
(/rows, /findings/0/evidence, /longest), in pieces; `by` regroups the calls. Runs nothing.";

pub(super) const EXPLAIN: &str = "Explains a cause that a finding names: mechanism, how to recognise it, every cure \
with what it gives up, examples in code. Without a cause: all causes there are. Runs nothing.";

pub(super) const PROVE: &str = "Runs a command with and without one change, in turns and unwatched, until the answer \
is decided, and tells what is won with its interval, whether both did the same (outcome), and exact counts of both. \
Runs the command dozens of times: it must be repeatable. Say what changes by one of: cure (a cause's own cure), vs \
(another command: the patched program), env, preload, elide (calls answered without the kernel: what a fix could win).";

pub(super) const DIFF: &str = "Compares exact counts: recordings that `run` kept (old, new), or a command and its \
change (command with vs or env, each run several times). Rows are matched by call, API and caller; what varies by \
itself is set apart.";

pub(super) const IMPORT: &str = "Reads a trace that somebody else made, as a bug report shows it: strace, ltrace -S, \
perf trace, perf script, or a table of counts, quoted, wrapped or cut as people paste them. Answers as `run` does, and \
with excerpt (lines out of a run not seen whole: then findings and also say what these lines carry), waits (what calls \
waited for, and how long) and counted (rows of a table worth a closer look, with the command that shows which they \
are). Prices are this machine's. Runs nothing.";

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns the schema of a list of texts.
fn texts(about: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": about})
}

/// Returns the schema of a list of texts, or of a single text.
fn one_or_more(about: &str) -> Value {
    json!({"type": ["array", "string"], "items": {"type": "string"}, "description": about})
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn number(about: &str, least: u64, most: u64, usual: u64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most, "default": usual, "description": about})
}

fn env() -> Value {
    json!({
        "type": "object", "additionalProperties": {"type": ["string", "null"]},
        "description": "Variables to set, or to remove (null)",
    })
}

/// Adds the arguments of every tool that runs something.
fn place(properties: Value) -> Value {
    let mut all = Map::new();
    if let Value::Object(own) = properties {
        all.extend(own);
    }
    all.insert("cwd".into(), text("Folder to run in; the server's by default"));
    Value::Object(all)
}

fn timeout() -> Value {
    number("The command gets SIGTERM after so long; the report is of what was seen until then", 1, LONGEST, TIMEOUT)
}

fn command() -> Value {
    let mut command =
        texts("The program and its arguments, e.g. [\"python3\", \"app.py\"]; no shell: no globs, pipes, $VAR");
    command["minItems"] = 1.into();
    command
}

pub(super) fn run() -> Value {
    let own = json!({
        "command": command(),
        "env": env(),
        "timeout_seconds": timeout(),
        "save": text("Keep the recording in this file; else it lives as long as the server"),
        "backend": {"type": "string", "enum": ["auto", "inproc", "ptrace"], "default": "auto",
            "description": "How to watch; auto picks the cheapest that can serve"},
    });
    object(place(own), &["command"])
}

pub(super) fn report() -> Value {
    let own = json!({
        "recording": text("A file that run kept"),
        "at": text("A JSON pointer (RFC 6901) into the report, e.g. /rows"),
        "offset": number("Of a list, the first element", 0, u64::from(u32::MAX), 0),
        "limit": number("Of a list, how many elements", 1, 1000, super::SOME),
        "by": {"type": "string", "enum": ["caller", "api", "library", "line", "process", "thread", "fd"],
            "description": "Regroup the calls: the answer's `grouped`"},
        "calls": text("With `by`: only these system calls, names or classes as strace's -e, e.g. openat,%network"),
        "timeout_seconds": timeout(),
    });
    object(place(own), &["recording"])
}

pub(super) fn import() -> Value {
    let own = json!({
        "text": text("The trace itself, as it was pasted"),
        "trace": text("Instead: a file of it; gzip, xz, zstd and zip are unpacked"),
        "timeout_seconds": timeout(),
    });
    object(place(own), &[])
}

pub(super) fn explain() -> Value {
    let own = json!({
        "cause": text("The id, as findings name it, e.g. tz-unset; without: the list"),
        "language": text("Only cures for code in this language: python, c++, bash, go, ..."),
    });
    object(own, &[])
}

pub(super) fn prove() -> Value {
    let own = json!({
        "command": command(),
        "cure": one_or_more("Causes whose cures the second side has; CAUSE:N for another of its cures, by its number in explain"),
        "vs": texts("The second side is this command"),
        "env": env(),
        "preload": text("Load this library first on the second side"),
        "elide": one_or_more("Answer these without the kernel on the second side: getpid, gettid, getuid, geteuid, rt_sigprocmask"),
        "limit_seconds": number("Begin no pair after this time", 1, LONGEST, 60),
        "input": text("What both sides read from standard input: a file; nothing by default"),
        "same": text("What must be the same: stdout,stderr,exit (the default), none, or a shell command whose output must be"),
        "prepare": text("A shell command before each run"),
    });
    object(place(own), &["command"])
}

pub(super) fn diff() -> Value {
    let own = json!({
        "old": one_or_more("Recordings, or folders of them: the old side"),
        "new": one_or_more("The new side"),
        "command": texts("Instead of recordings: the old command"),
        "vs": texts("The new command"),
        "env": env(),
        "runs": number("How often each command is run", 1, 100, 3),
        "by": {"type": "string", "enum": ["syscall", "row", "api", "caller", "line", "library", "process"],
            "default": "syscall", "description": "What changes are grouped by"},
        "timeout_seconds": timeout(),
    });
    object(place(own), &[])
}
