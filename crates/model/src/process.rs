//! Process images, and the ways in which they end.

use std::fmt;
use std::sync::Arc;

/// Index into [`crate::Recording::processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// The way in which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The process ended with this exit status.
    Code(i32),
    /// This signal killed the process.
    Signal(i32),
}

impl fmt::Display for Exit {
    /// Writes the end in words: `exit code 3`, `signal 9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// One process image: a process from its `execve` (or fork) to its end or its next `execve`. Beyond
/// a bound, images are folded into one entry per program; `instances` is the number of images in an
/// entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id; that of the first image if several are folded.
    pub pid: u32,
    /// The image that forked this one, or that this process ran before its `execve`.
    pub parent: Option<ProcessId>,
    /// Path of the program, as /proc/PID/exe gave it.
    pub exe: Arc<str>,
    /// Command line of the program, cut to the first 16 words and 1,024 bytes.
    pub argv: Vec<Arc<str>>,
    /// Name of the service to which the process belongs, by its control group, or else by its program; empty unless all
    /// processes of a box were watched.
    pub service: Arc<str>,
    /// Number of images that this entry stands for, at least 1.
    pub instances: u64,
    /// Number of threads that the process ever had, the first one included.
    pub threads: u64,
    /// Start of the image, ns since the run's start.
    pub start_ns: u64,
    /// End of the image, ns since the run's start; 0 while it runs.
    pub end_ns: u64,
    /// Life times of all images of the entry, added up, ns.
    pub life_ns: u64,
    /// Processor time of the process's threads without the observer's share, in ns; `None` if it is
    /// not known.
    pub cpu_ns: Option<u64>,
    /// Time at which `main` was first seen on a stack, ns since the run's start.
    pub main_at_ns: Option<u64>,
    /// The part of `cpu_ns` that was spent before `main`, ns.
    pub startup_cpu_ns: u64,
    /// Time for which the process's first thread was ready to run and waited for a processor, ns, as last read; `None` if
    /// it was not read, or for several images.
    pub queued_ns: Option<u64>,
    /// The way in which the process ended, if that was seen.
    pub exit: Option<Exit>,
}

impl Process {
    /// Returns true if the entry stands for several processes.
    pub fn is_many(&self) -> bool {
        self.instances > 1
    }

    /// Returns the last component of the program's path.
    pub fn name(&self) -> &str {
        self.exe.rsplit('/').next().unwrap_or(&self.exe)
    }
}
