//! The threads of a run, each with its long waits.

use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{Process, ProcessId, Recording, RowId, WaitSpan};

/// A thread: its process id and its thread id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ThreadId {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

impl ThreadId {
    pub(super) fn of(span: &WaitSpan) -> Self {
        Self { pid: span.pid, tid: span.tid }
    }
}

/// Life of a process, ns since the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

/// Time, ns, for which a thread may wait for a processor after it was woken. The waker may have begun to wait itself
/// in the meantime.
const SLACK_NS: u64 = 1_000_000;

/// Returns the name of a row's system call; empty if it has none.
pub(super) fn name_of(recording: &Recording, row: RowId) -> &str {
    recording.rows.get(row.0 as usize).and_then(|row| row.syscall.name()).unwrap_or_default()
}

/// Returns the process's id in the system.
pub(super) fn pid_of(recording: &Recording, process: ProcessId) -> Option<u32> {
    recording.processes.get(process.0 as usize).map(|process| process.pid)
}

/// Returns true if a process made this call to end.
fn is_exit(recording: &Recording, span: &WaitSpan) -> bool {
    let name = name_of(recording, span.row);
    name == "exit_group" || name == "exit" && span.pid == span.tid
}

/// Returns true if a call does not return: the thread ends, or runs another program.
fn ends_thread(recording: &Recording, span: &WaitSpan) -> bool {
    matches!(name_of(recording, span.row), "exit" | "exit_group" | "execve" | "execveat")
}

/// All threads of a run that are known by their ids.
pub(super) struct Threads<'a> {
    /// Indices of each thread's long waits, by rising time.
    waits: BTreeMap<ThreadId, Vec<usize>>,
    of_process: BTreeMap<u32, BTreeSet<u32>>,
    lives: BTreeMap<u32, Life>,
    recording: &'a Recording,
}

impl<'a> Threads<'a> {
    pub(super) fn of(recording: &'a Recording) -> Self {
        let mut waits: BTreeMap<ThreadId, Vec<usize>> = BTreeMap::new();
        let mut of_process: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut exits: BTreeMap<u32, u64> = BTreeMap::new();
        for (at, span) in recording.wait_spans.spans.iter().enumerate() {
            if span.result.is_none() && ends_thread(recording, span) {
                if is_exit(recording, span) {
                    exits.insert(span.pid, span.begin_ns);
                }
                continue;
            }
            waits.entry(ThreadId::of(span)).or_default().push(at);
            of_process.entry(span.pid).or_default().insert(span.tid);
        }
        let alone = |process: &&Process| !process.is_many();
        for thread in recording.threads.iter().filter(|thread| thread.tid != 0) {
            let process = recording.processes.get(thread.process.0 as usize).filter(alone);
            process.map(|process| of_process.entry(process.pid).or_default().insert(thread.tid));
        }
        let mut lives: BTreeMap<u32, Life> = BTreeMap::new();
        for process in recording.processes.iter().filter(alone) {
            let end_ns = if process.end_ns == 0 { recording.header.wall_ns } else { process.end_ns };
            let life = lives.entry(process.pid).or_insert(Life { start_ns: process.start_ns, end_ns });
            life.start_ns = life.start_ns.min(process.start_ns);
            life.end_ns = life.end_ns.max(end_ns);
        }
        // A process may be known to have ended only after it was waited for.
        for (pid, end_ns) in exits {
            lives.entry(pid).and_modify(|life| life.end_ns = life.end_ns.min(end_ns).max(life.start_ns));
        }
        Self { waits, of_process, lives, recording }
    }

    /// Returns the life of a process; `None` if it is not watched, or folded with others.
    pub(super) fn life(&self, pid: u32) -> Option<Life> {
        self.lives.get(&pid).copied()
    }

    /// Returns the thread of a process with this id, if it is known.
    pub(super) fn of_id(&self, pid: u32, tid: u64) -> Option<ThreadId> {
        let tid = u32::try_from(tid).ok()?;
        self.of_process.get(&pid)?.contains(&tid).then_some(ThreadId { pid, tid })
    }

    /// Returns the indices of a thread's long waits, by rising time.
    pub(super) fn waits(&self, thread: ThreadId) -> &[usize] {
        self.waits.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Returns true if a thread waited at `at_ns`, and had done so for longer than [`SLACK_NS`].
    fn is_asleep(&self, thread: ThreadId, at_ns: u64) -> bool {
        let waits = self.waits(thread);
        let span = |at: &usize| self.recording.wait_spans.spans.get(*at);
        let later =
            waits.partition_point(|at| span(at).is_some_and(|span| span.begin_ns.saturating_add(SLACK_NS) < at_ns));
        let before = later.checked_sub(1).and_then(|last| span(waits.get(last)?));
        before.is_some_and(|span| span.end_ns() > at_ns)
    }

    /// Returns the ends of watched processes that `parent` made and that are known by their ids, by rising time.
    pub(super) fn ends_of_children(&self, parent: u32) -> Vec<u64> {
        let processes = &self.recording.processes;
        let of_parent = |process: &&Process| {
            !process.is_many()
                && process.pid != parent
                && process.parent.and_then(|id| pid_of(self.recording, id)) == Some(parent)
        };
        let mut pids: Vec<u32> = processes.iter().filter(of_parent).map(|process| process.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        let mut ends: Vec<u64> = pids.into_iter().filter_map(|pid| Some(self.life(pid)?.end_ns)).collect();
        ends.sort_unstable();
        ends
    }

    /// Returns true if all threads of a process but `waiter` waited at `at_ns`, and had done so for some time.
    pub(super) fn is_all_asleep(&self, pid: u32, waiter: ThreadId, at_ns: u64) -> bool {
        let Some(tids) = self.of_process.get(&pid) else { return false };
        let mut others =
            tids.iter().map(|tid| ThreadId { pid, tid: *tid }).filter(|thread| *thread != waiter).peekable();
        others.peek().is_some() && others.all(|thread| self.is_asleep(thread, at_ns))
    }

    /// Returns the only thread of a process that can have done something at `at_ns`; `None` if there are several, or
    /// none. `waiter` is the one for whom it was done.
    pub(super) fn only_awake(&self, pid: u32, waiter: ThreadId, at_ns: u64) -> Option<ThreadId> {
        let all = self.of_process.get(&pid)?.iter().map(|tid| ThreadId { pid, tid: *tid });
        let mut awake = all.filter(|thread| *thread != waiter && !self.is_asleep(*thread, at_ns));
        let only = awake.next()?;
        awake.next().is_none().then_some(only)
    }
}
