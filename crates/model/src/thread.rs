//! The calls of each thread.

use crate::counts::Counts;
use crate::process::ProcessId;
use crate::sysno::Sysno;
use std::sync::Arc;

/// The calls of one thread of a process image, or of several folded into one entry. Over all
/// threads, these calls add up to the calls of [`crate::Recording::rows`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The process image to which the thread belongs.
    pub process: ProcessId,
    /// Thread id; 0 for the threads of an image that are not told apart.
    pub tid: u32,
    /// Name of the thread as last seen; empty if it was not read.
    pub name: Arc<str>,
    /// Calls of the thread, by system call.
    pub calls: Vec<ThreadCalls>,
}

/// A thread's calls of one system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCalls {
    /// The system call that the counts are for.
    pub syscall: Sysno,
    /// Number of calls, as [`Counts::calls`] counts them.
    pub calls: u64,
    /// Number of calls that failed.
    pub failed: u64,
    /// Processor time that the thread paid for the calls, ns; `None` if it is not known.
    pub toll_ns: Option<u64>,
    /// Time for which the thread was scheduled out inside the calls, ns; `None` if it can't be
    /// told.
    pub waited_ns: Option<u64>,
}

impl ThreadCalls {
    /// Adds calls of the same thread and system call.
    pub fn add(&mut self, more: &Counts) {
        let known = |mine: Option<u64>, theirs: Option<u64>| match (mine, theirs) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        self.calls = self.calls.saturating_add(more.calls);
        self.failed = self.failed.saturating_add(more.failed());
        self.toll_ns = known(self.toll_ns, more.toll_ns);
        self.waited_ns = known(self.waited_ns, more.waited_ns);
    }
}
