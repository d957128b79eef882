//! The tools that watch the program.

use crate::Bench;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// The tool that watches the program: none, systoll, or one that people would use instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observer {
    /// No observer.
    Nobody,
    /// `systoll run -q` with its in-process backend: counts with contexts, time, waiting and
    /// windows.
    Inproc,
    /// `systoll run -q` with its ptrace backend.
    Ptrace,
    /// `strace -c -f`.
    Strace,
    /// `perf stat`, counting the entries of system calls.
    Perf,
    /// `bpftrace` with a map of counts by call number, for one process.
    Bpftrace,
}

impl Observer {
    /// All observers in the order of the tables.
    pub(crate) const ALL: [Self; 6] =
        [Self::Nobody, Self::Inproc, Self::Ptrace, Self::Strace, Self::Perf, Self::Bpftrace];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nobody => "unwatched",
            Self::Inproc => "systoll inproc",
            Self::Ptrace => "systoll ptrace",
            Self::Strace => "strace -c -f",
            Self::Perf => "perf stat",
            Self::Bpftrace => "bpftrace count",
        }
    }

    /// Returns true if this observer is systoll.
    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Inproc | Self::Ptrace)
    }

    /// Returns true if this observer watches child processes too.
    pub(crate) fn follows_children(self) -> bool {
        self != Self::Bpftrace
    }

    /// Returns a command that runs `program` with this observer; `None` if the tool is not
    /// installed.
    pub(crate) fn command(self, bench: &Bench, program: &Path, args: &[&str]) -> Option<Command> {
        let own: Vec<OsString> = match self {
            Self::Nobody => Vec::new(),
            Self::Inproc => words(&[&bench.systoll.to_string_lossy(), "run", "-q", "--backend", "inproc", "--"]),
            Self::Ptrace => words(&[&bench.systoll.to_string_lossy(), "run", "-q", "--backend", "ptrace", "--"]),
            Self::Strace => words(&["strace", "-c", "-f", "-o", "/dev/null"]),
            Self::Perf => words(&["perf", "stat", "-e", "raw_syscalls:sys_enter", "-o", "/dev/null", "--"]),
            Self::Bpftrace => {
                let counts = "tracepoint:raw_syscalls:sys_enter /pid == cpid/ { @[args->id] = count(); }";
                let whole = format!("{} {}", program.display(), args.join(" "));
                let command = words(&["bpftrace", "-q", "-o", "/dev/null", "-e", counts, "-c", &whole]);
                return installed("bpftrace").then(|| built(&command, None, &[])).flatten();
            }
        };
        let tool = own.first().map(|t| t.to_string_lossy().into_owned());
        if tool.is_some_and(|t| !installed(&t)) {
            return None;
        }
        built(&own, Some(program), args)
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn built(own: &[OsString], program: Option<&Path>, args: &[&str]) -> Option<Command> {
    let program = program.map(|p| p.as_os_str().to_owned());
    let mut all = own.iter().cloned().chain(program).chain(args.iter().map(OsString::from));
    let mut command = Command::new(all.next()?);
    command.args(all).stderr(Stdio::null()).stdin(Stdio::null());
    Some(command)
}

fn installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Path::new(tool).is_file() || std::env::split_paths(&path).any(|dir| dir.join(tool).is_file())
}
