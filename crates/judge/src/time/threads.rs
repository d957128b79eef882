//! The threads of a run, each with its long waits.

use super::least::MOSTLY;
use crate::collections::sums::Sums;
use crate::semantics::{Effect, Semantics, WAITING_PROGRAMS};
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{Process, ProcessId, Recording, Row, RowId, WaitSpan};

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
pub(super) const SLACK_NS: u64 = 1_000_000;

/// The same where no thread was awake, ns: a box with more threads that compute than processors runs a woken thread after a
/// few slices of 3 to 4 ms (CONFIG_HZ=250). Data that TCP holds back come after 40 ms.
pub(super) const BUSY_SLACK_NS: u64 = 12_000_000;

/// The way in which a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Its time ran out.
    Clock,
    /// Another thread or process acted.
    Other,
}

/// Results of waits whose time ran out: EAGAIN, ETIME, ETIMEDOUT.
pub(super) const RAN_OUT: [i64; 3] = [-11, -62, -110];

/// Returns the name of a row's system call; empty if it has none.
pub(super) fn name_of(recording: &Recording, row: RowId) -> &str {
    recording.rows.get(row.0 as usize).and_then(|row| row.syscall.name()).unwrap_or_default()
}

/// Returns the process's id in the system.
pub(super) fn pid_of(recording: &Recording, process: ProcessId) -> Option<u32> {
    recording.processes.get(process.0 as usize).map(|process| process.pid)
}

/// Returns the process that made this one, or that it was before it ran its program. Of processes between fork and exec that
/// are many, it is the one that made the first of them.
fn made_by<'a>(recording: &'a Recording, process: &Process) -> Option<&'a Process> {
    let of = |process: &Process| process.parent.and_then(|id| recording.processes.get(id.0 as usize));
    match of(process) {
        Some(stub) if stub.is_many() => of(stub).filter(|maker| !maker.is_many()),
        parent => parent,
    }
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

/// Returns the processes that made more processes than are known one by one, where some are folded.
fn with_folded(recording: &Recording, semantics: &Semantics, children: &BTreeMap<u32, BTreeSet<u32>>) -> BTreeSet<u32> {
    if !recording.processes.iter().any(Process::is_many) {
        return BTreeSet::new();
    }
    let mut made: BTreeMap<u32, u64> = BTreeMap::new();
    let forks = |row: &&Row| semantics.lines_of(row.syscall).always_does(|effect| matches!(effect, Effect::Forks));
    for row in recording.rows.iter().filter(forks) {
        let process = recording.processes.get(row.process.0 as usize).filter(|process| !process.is_many());
        let Some(pid) = process.map(|process| process.pid) else { continue };
        made.add(pid, row.counts.calls.saturating_sub(row.counts.failed()));
    }
    // A thread is made by the same calls.
    let known = |pid: u32| {
        let threads = recording.processes.iter().filter(|of| of.pid == pid && !of.is_many()).map(|of| of.threads);
        threads.fold(children.get(&pid).map_or(0, BTreeSet::len) as u64, u64::saturating_add)
    };
    made.into_iter().filter(|(pid, made)| *made > known(*pid)).map(|(pid, _)| pid).collect()
}

/// Function of Go's run-time in a thread that has no work of the program: what it wakes is because of what others do.
const MONITOR: &str = "runtime.sysmon";
/// Function of Java's machine in which the threads that compile, collect and watch wait for most of their time.
const OF_MACHINE: &str = "os::PlatformMonitor::wait";

/// Returns the threads that have no work of the program: they wait in [`MONITOR`], or for most of their time in [`OF_MACHINE`].
fn monitors(recording: &Recording) -> BTreeSet<ThreadId> {
    let (of_monitor, of_machine) = (rows_in(recording, &[MONITOR]), rows_in(recording, &[OF_MACHINE]));
    let mut times: BTreeMap<ThreadId, (u64, u64)> = BTreeMap::new();
    for span in &recording.wait_spans.spans {
        let is_in = |rows: &[bool]| rows.get(span.row.0 as usize) == Some(&true);
        let (all, of_its_own) = times.entry(ThreadId::of(span)).or_default();
        *all = all.saturating_add(span.ns);
        // One wait is enough to know Go's.
        let own = if is_in(&of_monitor) {
            u64::MAX
        } else if is_in(&of_machine) {
            span.ns
        } else {
            0
        };
        *of_its_own = of_its_own.saturating_add(own);
    }
    let mostly =
        |(_, (all, of_its_own)): &(ThreadId, (u64, u64))| *of_its_own as f64 >= MOSTLY * *all as f64 && *of_its_own > 0;
    times.into_iter().filter(mostly).map(|(thread, _)| thread).collect()
}

/// Functions of Go's run-time in a thread that has nothing to run, and waits for work or for what goroutines wait for.
const IDLE: [&str; 2] = ["runtime.stopm", "runtime.findRunnable"];

/// Returns for each row whether a scheduler's thread that has nothing to run makes its calls. The callers of a call that had
/// begun before its process was watched are unknown: most of a scheduler's threads have nothing to run then.
fn idle_rows(recording: &Recording) -> Vec<bool> {
    let mut idle = rows_in(recording, &IDLE);
    let with_scheduler: BTreeSet<ProcessId> =
        recording.rows.iter().zip(&idle).filter(|(_, idle)| **idle).map(|(row, _)| row.process).collect();
    let may_be_idle = |row: &Row| {
        let waits = matches!(row.syscall.name(), Some("futex" | "epoll_pwait" | "epoll_wait"));
        waits && with_scheduler.contains(&row.process) && recording.row_frames(row).nth(1).is_none()
    };
    for (row, idle) in recording.rows.iter().zip(&mut idle) {
        *idle |= may_be_idle(row);
    }
    idle
}

/// Returns for each row whether one of these functions makes its calls.
fn rows_in(recording: &Recording, functions: &[&str]) -> Vec<bool> {
    let is_in = |row: &Row| recording.row_frames(row).any(|frame| functions.contains(&frame.function()));
    recording.rows.iter().map(is_in).collect()
}

/// Returns the indices of the waits in these rows that another thread does not end by a futex, by process and rising time.
fn polls(recording: &Recording, idle_rows: &[bool]) -> BTreeMap<u32, Vec<usize>> {
    let mut polls: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, span) in recording.wait_spans.spans.iter().enumerate() {
        if idle_rows.get(span.row.0 as usize) == Some(&true) && name_of(recording, span.row) != "futex" {
            polls.entry(span.pid).or_default().push(at);
        }
    }
    polls
}

/// Times, ns: each from its beginning to its end, in order and apart.
type Times = Vec<(u64, u64)>;

/// Adds a time that begins no earlier than the last one.
fn join(times: &mut Times, (from, to): (u64, u64)) {
    match times.last_mut() {
        _ if from >= to => {}
        Some(last) if from <= last.1 => last.1 = last.1.max(to),
        _ => times.push((from, to)),
    }
}

/// Returns the times that are in both.
fn in_both(one: &Times, other: &Times) -> Times {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut both = Times::new();
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        join(&mut both, (a.0.max(b.0), a.1.min(b.1)));
        if a.1 <= b.1 {
            one.next()
        } else {
            other.next()
        };
    }
    both
}

/// All threads of a run that are known by their ids.
pub(super) struct Threads<'a> {
    /// Indices of each thread's long waits, by rising time.
    waits: BTreeMap<ThreadId, Vec<usize>>,
    of_process: BTreeMap<u32, BTreeSet<u32>>,
    /// Times at which threads ended, ns, as far as their last call is known.
    ended_ns: BTreeMap<ThreadId, u64>,
    /// The threads that ended their processes.
    ended_by: BTreeMap<u32, ThreadId>,
    /// Threads without work of the program, which watch the others.
    monitors: BTreeSet<ThreadId>,
    /// For each row, whether its calls are those of a scheduler's thread that has nothing to run.
    idle_rows: Vec<bool>,
    /// Indices of the long waits of such threads, by process and rising time, in which one of them waited for files, peers and
    /// timers on behalf of all.
    polls: BTreeMap<u32, Vec<usize>>,
    lives: BTreeMap<u32, Life>,
    /// The processes that each process made.
    children: BTreeMap<u32, BTreeSet<u32>>,
    /// Processes with children that are not known one by one, as they were many.
    with_folded: BTreeSet<u32>,
    /// Processes that another watched one started, and that do nothing but let time pass.
    sleepers: BTreeSet<u32>,
    /// The system calls of the threads of which these are known.
    calls: BTreeMap<ThreadId, BTreeSet<&'static str>>,
    recording: &'a Recording,
}

impl<'a> Threads<'a> {
    pub(super) fn of(recording: &'a Recording, semantics: &Semantics) -> Self {
        let mut waits: BTreeMap<ThreadId, Vec<usize>> = BTreeMap::new();
        let mut of_process: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut exits: BTreeMap<u32, (u64, ThreadId)> = BTreeMap::new();
        let mut ended_ns: BTreeMap<ThreadId, u64> = BTreeMap::new();
        for (at, span) in recording.wait_spans.spans.iter().enumerate() {
            if span.result.is_none() && ends_thread(recording, span) {
                if name_of(recording, span.row) == "exit" {
                    ended_ns.insert(ThreadId::of(span), span.begin_ns);
                }
                if is_exit(recording, span) {
                    exits.insert(span.pid, (span.begin_ns, ThreadId::of(span)));
                }
                continue;
            }
            waits.entry(ThreadId::of(span)).or_default().push(at);
            of_process.entry(span.pid).or_default().insert(span.tid);
        }
        let mut calls: BTreeMap<ThreadId, BTreeSet<&'static str>> = BTreeMap::new();
        let alone = |process: &&Process| !process.is_many();
        for thread in recording.threads.iter().filter(|thread| thread.tid != 0) {
            let process = recording.processes.get(thread.process.0 as usize).filter(alone);
            let Some(process) = process else { continue };
            of_process.entry(process.pid).or_default().insert(thread.tid);
            let of_thread = calls.entry(ThreadId { pid: process.pid, tid: thread.tid }).or_default();
            of_thread.extend(thread.calls.iter().filter_map(|call| call.syscall.name()));
        }
        let mut lives: BTreeMap<u32, Life> = BTreeMap::new();
        for process in recording.processes.iter().filter(alone) {
            let end_ns = if process.end_ns == 0 { recording.header.wall_ns } else { process.end_ns };
            let life = lives.entry(process.pid).or_insert(Life { start_ns: process.start_ns, end_ns });
            life.start_ns = life.start_ns.min(process.start_ns);
            life.end_ns = life.end_ns.max(end_ns);
        }
        // On a busy box a process may be known only after it has waited.
        for span in &recording.wait_spans.spans {
            lives.entry(span.pid).and_modify(|life| life.start_ns = life.start_ns.min(span.begin_ns));
        }
        // A process may be known to have ended only after it was waited for; one that makes hardly a call but its last is known
        // to have begun only then.
        for (pid, (end_ns, _)) in &exits {
            let end_ns = *end_ns;
            lives.entry(*pid).and_modify(|life| {
                life.end_ns = life.end_ns.min(end_ns);
                life.start_ns = life.start_ns.min(life.end_ns);
            });
        }
        let mut children: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for process in recording.processes.iter().filter(alone) {
            let parent = made_by(recording, process).map(|parent| parent.pid).filter(|parent| *parent != process.pid);
            parent.map(|parent| children.entry(parent).or_default().insert(process.pid));
        }
        let is_child = |pid: &u32| children.values().any(|of| of.contains(pid));
        let sleeps = |process: &&Process| {
            let named = process.argv.first().unwrap_or(&process.exe);
            let mut names = [&process.exe, named].into_iter().map(|path| path.rsplit('/').next().unwrap_or_default());
            names.any(|name| WAITING_PROGRAMS.contains(&name))
        };
        let sleepers = recording.processes.iter().filter(alone).filter(sleeps).map(|process| process.pid);
        let sleepers = sleepers.filter(is_child).collect();
        let with_folded = with_folded(recording, semantics, &children);
        let ended_by = exits.into_iter().map(|(pid, (_, thread))| (pid, thread)).collect();
        let monitors = monitors(recording);
        let idle_rows = idle_rows(recording);
        let polls = polls(recording, &idle_rows);
        Self {
            waits,
            of_process,
            ended_ns,
            ended_by,
            monitors,
            idle_rows,
            polls,
            lives,
            children,
            with_folded,
            sleepers,
            calls,
            recording,
        }
    }

    /// Returns the thread that ended a process, and the moment, ns, from which on it is followed: its first long wait, or the
    /// last wait of the process's first thread, if that never returned. Returns the first thread if it is not known.
    pub(super) fn last_of(&self, pid: u32) -> (ThreadId, u64) {
        let first = ThreadId { pid, tid: pid };
        let Some(last) = self.ended_by.get(&pid).copied().filter(|last| *last != first) else { return (first, 0) };
        let span = |at: Option<&usize>| at.and_then(|at| self.recording.wait_spans.spans.get(*at));
        let begin = span(self.waits(last).first()).map_or(u64::MAX, |wait| wait.begin_ns);
        let left = span(self.waits(first).last()).filter(|wait| wait.result.is_none());
        (last, left.map_or(begin, |wait| wait.begin_ns.min(begin)))
    }

    /// Returns the parts of a wait in which no other thread of the process ran, if a scheduler's thread had nothing to run then:
    /// what it ran before, another thread may run. The whole wait, if it is another one. A thread is known to be there from its
    /// first long wait to its last.
    pub(super) fn unused(&self, wait: &WaitSpan, (begin, end): (u64, u64)) -> Times {
        let mut left = vec![(begin, end)];
        if !self.is_idle(wait) {
            return left;
        }
        let tids = self.of_process.get(&wait.pid).into_iter().flatten();
        let others = tids.map(|tid| ThreadId { pid: wait.pid, tid: *tid });
        for other in others.filter(|other| *other != ThreadId::of(wait) && !self.monitors.contains(other)) {
            left = in_both(&left, &self.asleep_within(other, (begin, end)));
        }
        left
    }

    /// Returns the parts of a time in which a thread of the process's scheduler waited for files, peers and timers, each with the
    /// index of that wait, if another thread of the scheduler had nothing to run then. No parts for any other wait.
    pub(super) fn polls(&self, wait: &WaitSpan, (begin, end): (u64, u64)) -> Vec<(usize, (u64, u64))> {
        if !self.is_idle(wait) {
            return Vec::new();
        }
        let polls = self.polls.get(&wait.pid).map_or(&[][..], Vec::as_slice);
        let span = |at: &usize| self.recording.wait_spans.spans.get(*at);
        let before = polls.partition_point(|at| span(at).is_some_and(|span| span.begin_ns <= begin));
        let (mut parts, mut now) = (Vec::new(), begin);
        for at in polls.get(before.saturating_sub(1)..).into_iter().flatten() {
            let Some(span) = span(at).filter(|span| span.tid != wait.tid) else { continue };
            if span.begin_ns >= end {
                break;
            }
            let until = if span.result.is_none() { end } else { span.end_ns().min(end) };
            let from = span.begin_ns.max(now);
            if from < until {
                parts.push((*at, (from, until)));
                now = until;
            }
        }
        parts
    }

    /// Returns true for a wait of a scheduler's thread that had nothing to run.
    fn is_idle(&self, wait: &WaitSpan) -> bool {
        self.idle_rows.get(wait.row.0 as usize).is_some_and(|idle| *idle)
    }

    /// Returns the times within an interval in which a thread waited, or was not known to be there.
    fn asleep_within(&self, thread: ThreadId, (begin, end): (u64, u64)) -> Times {
        let waits = self.waits(thread);
        let span = |at: &usize| self.recording.wait_spans.spans.get(*at);
        let before = waits.partition_point(|at| span(at).is_some_and(|span| span.begin_ns <= begin));
        let within = waits.get(before.saturating_sub(1)..).into_iter().flatten().filter_map(span);
        let mut asleep = Times::new();
        let first = waits.first().and_then(span).map_or(u64::MAX, |span| span.begin_ns);
        join(&mut asleep, (begin, first.clamp(begin, end)));
        for span in within.take_while(|span| span.begin_ns < end) {
            let until = if span.result.is_none() { end } else { span.end_ns().min(end) };
            join(&mut asleep, (span.begin_ns.max(begin), until));
        }
        let last = waits.last().and_then(span).map_or(0, WaitSpan::end_ns);
        join(&mut asleep, (last.clamp(begin, end), end));
        asleep
    }

    /// Returns true if a process made children that are not known one by one.
    pub(super) fn has_folded_children(&self, pid: u32) -> bool {
        self.with_folded.contains(&pid)
    }

    /// Returns the processes that a process made, and those that these made, which lived in the course of a wait and at its
    /// end.
    pub(super) fn descendants(&self, wait: &WaitSpan) -> BTreeSet<u32> {
        let lives = |pid: &u32| {
            let is_there =
                |life: Life| life.start_ns <= wait.end_ns() && life.end_ns.saturating_add(SLACK_NS) >= wait.end_ns();
            self.life(*pid).is_some_and(is_there)
        };
        let (mut all, mut left) = (BTreeSet::new(), vec![wait.pid]);
        while let Some(parent) = left.pop() {
            let new = self.children.get(&parent).into_iter().flatten().filter(|pid| all.insert(**pid));
            left.extend(new);
        }
        all.remove(&wait.pid);
        all.retain(lives);
        all
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

    /// Returns true if the thread's end is known.
    pub(super) fn has_ended(&self, thread: ThreadId) -> bool {
        self.ended_ns.contains_key(&thread)
    }

    /// Returns the begin of a thread's first long wait, ns.
    pub(super) fn first_wait_ns(&self, thread: ThreadId) -> Option<u64> {
        let first = self.waits(thread).first()?;
        self.recording.wait_spans.spans.get(*first).map(|span| span.begin_ns)
    }

    /// Returns the indices of a thread's long waits, by rising time.
    pub(super) fn waits(&self, thread: ThreadId) -> &[usize] {
        self.waits.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Returns true if a thread waited at `at_ns`, and had done so for longer than [`SLACK_NS`].
    fn is_asleep(&self, thread: ThreadId, at_ns: u64) -> bool {
        self.asleep_since(thread, at_ns).is_some()
    }

    /// Returns the beginning of the wait in which a thread was at `at_ns`, if that was longer than [`SLACK_NS`] ago. A call that
    /// never returned lasts for ever.
    fn asleep_since(&self, thread: ThreadId, at_ns: u64) -> Option<u64> {
        let waits = self.waits(thread);
        let span = |at: &usize| self.recording.wait_spans.spans.get(*at);
        let later =
            waits.partition_point(|at| span(at).is_some_and(|span| span.begin_ns.saturating_add(SLACK_NS) < at_ns));
        let before = later.checked_sub(1).and_then(|last| span(waits.get(last)?));
        before.filter(|span| span.end_ns() > at_ns || span.result.is_none()).map(|span| span.begin_ns)
    }

    /// Returns the watched processes that `parent` made and that are known by their ids, each with its end.
    pub(super) fn ends_of_children(&self, parent: u32) -> Vec<(u32, u64)> {
        let children = self.children.get(&parent).into_iter().flatten();
        children.filter_map(|pid| Some((*pid, self.life(*pid)?.end_ns))).collect()
    }

    /// Returns true if all threads of a process but `waiter` waited at `at_ns`, and had done so for longer than
    /// [`BUSY_SLACK_NS`]: what one of them did right before may have ended the wait of one that then waited for a processor.
    pub(super) fn is_all_asleep(&self, pid: u32, waiter: ThreadId, at_ns: u64) -> bool {
        let Some(tids) = self.of_process.get(&pid) else { return false };
        let slept = |thread: ThreadId| {
            self.asleep_since(thread, at_ns).is_some_and(|since| since.saturating_add(BUSY_SLACK_NS) < at_ns)
        };
        let mut others =
            tids.iter().map(|tid| ThreadId { pid, tid: *tid }).filter(|thread| *thread != waiter).peekable();
        others.peek().is_some() && others.all(slept)
    }

    /// Returns the last long wait that a thread began before `at_ns`.
    fn last_wait(&self, thread: ThreadId, at_ns: u64) -> Option<&WaitSpan> {
        let waits = self.waits(thread);
        let span = |at: &usize| self.recording.wait_spans.spans.get(*at);
        let later = waits.partition_point(|at| span(at).is_some_and(|span| span.begin_ns < at_ns));
        span(waits.get(later.checked_sub(1)?)?)
    }

    /// Returns true if a row's callers are known by their functions.
    fn is_code_known(&self, row: RowId) -> bool {
        let row = self.recording.rows.get(row.0 as usize);
        row.is_some_and(|row| self.recording.row_frames(row).any(|frame| !frame.locations.is_empty()))
    }

    /// Returns what woke a thread in the millisecond before `at_ns`; `None` if its last wait ended earlier, or failed.
    fn just_woken_by(&self, thread: ThreadId, at_ns: u64) -> Option<By> {
        let last = self.last_wait(thread, at_ns)?;
        if last.end_ns().saturating_add(SLACK_NS) < at_ns {
            return None;
        }
        let call = self.recording.rows.get(last.row.0 as usize).and_then(|row| row.syscall.signature());
        // A futex returns 0, other waits say how much there is.
        match last.result? {
            1.. => Some(By::Other),
            0 if name_of(self.recording, last.row) == "futex" => Some(By::Other),
            0 => call.is_some_and(|call| call.waits).then_some(By::Clock),
            errno => RAN_OUT.contains(&errno).then_some(By::Clock),
        }
    }

    /// Returns true for a process that another one started, and that does nothing but let time pass.
    pub(super) fn is_sleeper(&self, pid: u32) -> bool {
        self.sleepers.contains(&pid)
    }

    /// Returns true if a process made another one.
    pub(super) fn is_child(&self, pid: u32, of: u32) -> bool {
        self.children.get(&of).is_some_and(|children| children.contains(&pid))
    }

    /// Returns the only thread of these processes that can have ended `wait` by one of the calls `wakes`: one that makes
    /// such calls and was awake at the wait's end, or that fell asleep last in its course. Where several were awake, as when one
    /// wakes many, it is the one that was not just woken by another, or of these the one that the clock just woke. Returns
    /// `None` if there are several, or none.
    pub(super) fn waker(&self, pids: &[u32], wait: &WaitSpan, wakes: &[&str]) -> Option<ThreadId> {
        let (waiter, end_ns) = (ThreadId::of(wait), wait.end_ns());
        let of = |pid: &u32| {
            let tids = self.of_process.get(pid).into_iter().flatten();
            tids.map(|tid| ThreadId { pid: *pid, tid: *tid }).collect::<Vec<_>>()
        };
        let can = |thread: &ThreadId| {
            let calls = self.calls.get(thread);
            let lives = self.ended_ns.get(thread).is_none_or(|end| end.saturating_add(SLACK_NS) >= end_ns);
            *thread != waiter
                && lives
                && !self.monitors.contains(thread)
                && calls.is_none_or(|calls| wakes.iter().any(|wake| calls.contains(wake)))
        };
        let able: Vec<ThreadId> = pids.iter().flat_map(of).filter(can).collect();
        let awake: Vec<ThreadId> = able.iter().copied().filter(|thread| !self.is_asleep(*thread, end_ns)).collect();
        if let [only] = awake[..] {
            return Some(only);
        }
        if !awake.is_empty() {
            let woken = awake.into_iter().map(|thread| (thread, self.just_woken_by(thread, end_ns)));
            let first: Vec<_> = woken.filter(|(_, by)| *by != Some(By::Other)).collect();
            // Of processes that share a lock, one that has just slept asks for it like the others; and a thread whose code is
            // not known may be such a monitor.
            let is_known =
                |thread: ThreadId| self.last_wait(thread, end_ns).is_some_and(|last| self.is_code_known(last.row));
            let is_futex = name_of(self.recording, wait.row) == "futex";
            let by_clock =
                |(thread, by): &&(ThreadId, Option<By>)| *by == Some(By::Clock) && is_futex && is_known(*thread);
            let mut by_clock = first.iter().filter(by_clock);
            return match first[..] {
                [(only, _)] => Some(only),
                _ => by_clock.next().filter(|_| by_clock.next().is_none()).map(|(thread, _)| *thread),
            };
        }
        // On a busy box the waiter may have waited for a processor for long after it was woken.
        let asleep = |thread: &ThreadId| Some((self.asleep_since(*thread, end_ns)?, *thread));
        let in_course =
            |(since, _): &(u64, ThreadId)| *since > wait.begin_ns && since.saturating_add(BUSY_SLACK_NS) >= end_ns;
        able.iter().filter_map(asleep).filter(in_course).max_by_key(|(since, _)| *since).map(|(_, thread)| thread)
    }
}
