//! Process images.

use std::fmt;
use std::sync::Arc;

/// Index into [`crate::Recording::processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// With this exit status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for Exit {
    /// In words: `exit code 3`, `signal 9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// One image: a process from its `execve` (or fork) to its end or next `execve`. Images beyond a
/// bound are folded into one entry per program; `instances` tells how many an entry stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id, of the first one where several are folded.
    pub pid: u32,
    /// The image that forked it, or that it was before `execve`.
    pub parent: Option<ProcessId>,
    /// Path of the program, as /proc/PID/exe gave it.
    pub exe: Arc<str>,
    /// Command line, cut to the first 16 words and 1,024 bytes.
    pub argv: Vec<Arc<str>>,
    /// Images this entry stands for, at least 1.
    pub instances: u64,
    /// Threads it had, itself included, all in all.
    pub threads: u64,
    /// Start, ns since the run's start.
    pub start_ns: u64,
    /// End, ns since the run's start; 0 while it runs.
    pub end_ns: u64,
    /// Life times of all instances added up, in ns.
    pub life_ns: u64,
    /// Processor time of its threads, the observer's share taken off, in ns; `None` where it is not known.
    pub cpu_ns: Option<u64>,
    /// When `main` was first seen on a stack, ns since the run's start.
    pub main_at_ns: Option<u64>,
    /// Of `cpu_ns`, what was spent before `main`.
    pub startup_cpu_ns: u64,
    /// How it ended, where seen.
    pub exit: Option<Exit>,
}

impl Process {
    /// Whether it stands for several processes, which are told of together.
    pub fn is_many(&self) -> bool {
        self.instances > 1
    }

    /// The last component of the program's path.
    pub fn name(&self) -> &str {
        self.exe.rsplit('/').next().unwrap_or(&self.exe)
    }
}
