//! The call that takes most of a run's processor time, and the call in which its main thread waits longest: a reader wants
//! to know them also where no call is needless.

use super::Sentences;
use crate::access::{row, rows_of};
use crate::units::percent;
use systoll_judge::{Doubt, Finding, WaitClass};
use systoll_model::{Process, Row, RowId, Sysno};

/// Least share of a run's processor time or elapsed time, 0 to 1, of a call that is named.
const MOST: f64 = 0.2;
/// Least time, ns, of a call or pattern that is named: nobody notices less in one run. The start of a C program makes `execve` its
/// costliest call, 14 % of less than a millisecond.
pub(crate) const NOTICED_NS: u64 = 10_000_000;

/// Calls in which a thread waits for others to give it work, or for its own threads and processes, whose calls are counted.
const FOR_WORK: [&str; 20] = [
    "accept",
    "accept4",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "futex",
    "futex_wait",
    "futex_waitv",
    "io_getevents",
    "io_uring_enter",
    "pause",
    "poll",
    "ppoll",
    "pselect6",
    "restart_syscall",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "select",
    "wait4",
    "waitid",
];
/// Those of them that wait for any of several descriptors, or for time to pass.
const ON_DESCRIPTORS: [&str; 7] = ["epoll_pwait", "epoll_pwait2", "epoll_wait", "poll", "ppoll", "pselect6", "select"];
/// Calls in which a server waits for its clients.
const FOR_CLIENTS: [&str; 5] = ["read", "readv", "recvfrom", "recvmmsg", "recvmsg"];
/// Calls in which a process waits for what its children write, as a shell does for `$(…)`.
const FROM_CHILDREN: [&str; 2] = ["read", "readv"];
/// Calls by which a server takes up clients.
const SERVES: [&str; 3] = ["accept", "accept4", "listen"];

/// A system call that takes much of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most<'a> {
    /// The system call.
    pub(crate) syscall: Sysno,
    /// Number of calls: all of the run's, or those of the main thread that waits.
    pub(crate) calls: u64,
    /// Processor time that they take, or time that they wait, ns.
    pub(crate) ns: u64,
    /// Their share of the run's processor time or elapsed time, 0 to 1.
    pub(crate) share: f64,
    /// The row with most of that time; `None` if several threads may share it.
    pub(crate) row: Option<(RowId, &'a Row)>,
}

impl<'a> Sentences<'a> {
    /// Returns the system call outside of findings that takes most processor time, if that is much of the run.
    pub(crate) fn most_cpu(&self) -> Option<Most<'a>> {
        let own = self.own_cpu_ns().filter(|own| *own > 0)?;
        let named = [&self.judgement.findings[..], &self.judgement.also[..]].map(rows_of);
        let is_named = |id: &RowId| named.iter().any(|rows| rows.contains(id));
        let rest: Vec<(RowId, &Row)> = (0..).map(RowId).zip(&self.rec.rows).filter(|(id, _)| !is_named(id)).collect();
        let toll = |row: &Row| row.counts.toll_ns.unwrap_or(0);
        let mut sums: Vec<(Sysno, u64, u64)> = vec![];
        for (_, row) in &rest {
            match sums.iter_mut().find(|(syscall, ..)| *syscall == row.syscall) {
                Some(sum) => *sum = (sum.0, sum.1.saturating_add(row.counts.calls), sum.2.saturating_add(toll(row))),
                None => sums.push((row.syscall, row.counts.calls, toll(row))),
            }
        }
        let (syscall, calls, ns) = sums.into_iter().max_by_key(|(_, _, ns)| *ns)?;
        let row = rest.into_iter().filter(|(_, row)| row.syscall == syscall).max_by_key(|(_, row)| toll(row));
        self.much(Most { syscall, calls, ns, share: ns as f64 / own as f64, row })
    }

    /// Returns the system call in which the main thread waits longest, if that is much of the run and not for work. A
    /// finding about waiting names its calls itself.
    pub(crate) fn most_waiting(&self) -> Option<Most<'a>> {
        let wall = self.rec.header.wall_ns;
        if wall == 0 || self.slowed() {
            return None;
        }
        let main = self.rec.processes.first()?.pid;
        let of_main = |process: &Process| process.pid == main && !process.is_many();
        let is_main = |at: u32| self.rec.processes.get(at as usize).is_some_and(of_main);
        let threads = self.rec.threads.iter().filter(|thread| is_main(thread.process.0) && thread.tid == main);
        let mut sums: Vec<(Sysno, u64, u64)> = vec![];
        for calls in threads.flat_map(|thread| &thread.calls).filter(|calls| !self.is_for_work(calls.syscall)) {
            let ns = calls.waited_ns.unwrap_or(0);
            match sums.iter_mut().find(|(syscall, ..)| *syscall == calls.syscall) {
                Some(sum) => *sum = (sum.0, sum.1.saturating_add(calls.calls), sum.2.saturating_add(ns)),
                None => sums.push((calls.syscall, calls.calls, ns)),
            }
        }
        // A thread that is ready waits for a processor wherever it was: that is not the call's doing.
        let parts = self.wall_time(false).map_or(&[][..], |wall| &wall.parts);
        let queued = |of: Sysno| {
            let queued = parts.iter().filter(|part| part.class == WaitClass::Processor);
            let of_call = queued.filter(|part| row(self.rec, part.row).is_some_and(|row| row.syscall == of));
            of_call.fold(0u64, |sum, part| sum.saturating_add(part.ns))
        };
        let sums = sums.into_iter().map(|(syscall, calls, ns)| (syscall, calls, ns.saturating_sub(queued(syscall))));
        let (syscall, calls, ns) = sums.max_by_key(|(_, _, ns)| *ns)?;
        let rows = (0..).map(RowId).zip(&self.rec.rows);
        let rows = rows.filter(|(_, row)| row.syscall == syscall && is_main(row.process.0));
        let row = rows.max_by_key(|(_, row)| row.counts.waited_ns);
        // Another thread's row may wait longer than the main thread does.
        let row = row.filter(|(_, row)| row.counts.waited_ns.is_some_and(|waited| waited <= ns));
        // What may keep a pace is named by its call.
        let waits = |finding: &&Finding| finding.is_about_waiting() && finding.doubt != Some(Doubt::Pace);
        let found: Vec<&Finding> = self.judgement.findings.iter().chain(&self.judgement.also).filter(waits).collect();
        let is_found = |id: &RowId| found.iter().any(|finding| finding.rows.contains(id));
        if row.is_some_and(|(id, _)| is_found(&id)) {
            return None;
        }
        self.much(Most { syscall, calls, ns, share: ns as f64 / wall as f64, row })
    }

    fn much(&self, most: Most<'a>) -> Option<Most<'a>> {
        Some(most).filter(|most| most.ns >= NOTICED_NS && (MOST..=1.0).contains(&most.share))
    }

    /// Returns true if the main thread waits for work in this call, or for threads and processes of its own.
    fn is_for_work(&self, syscall: Sysno) -> bool {
        let is_any_of = |names: &[&str]| syscall.name().is_some_and(|name| names.contains(&name));
        let for_children = crate::access::processes(self.rec) > 1 && is_any_of(&FROM_CHILDREN);
        self.is_idle(syscall) || for_children || self.serves() && is_any_of(&FOR_CLIENTS)
    }

    /// Returns true if threads that make this call mostly have nothing to do. The only thread of a program that serves nobody
    /// waits in `poll` and its like for an answer, or for time to pass.
    pub(crate) fn is_idle(&self, syscall: Sysno) -> bool {
        let is_any_of = |names: &[&str]| syscall.name().is_some_and(|name| names.contains(&name));
        let alone = self.rec.header.threads <= crate::access::processes(self.rec) && !self.serves();
        is_any_of(&FOR_WORK) && !(alone && is_any_of(&ON_DESCRIPTORS))
    }

    /// Returns true if the program serves clients, or if it ran before it was watched, when it may have begun to.
    fn serves(&self) -> bool {
        let takes_up = |row: &Row| row.syscall.name().is_some_and(|name| SERVES.contains(&name));
        self.rec.header.attached.is_some() || self.rec.rows.iter().any(takes_up)
    }

    /// Writes what takes most of the run, without the calls' line: `41 % of CPU goes to mremap`.
    pub(crate) fn most(&self) -> Vec<String> {
        let cpu = self
            .most_cpu()
            .and_then(|most| Some(format!("{} of CPU goes to {}", self.share_of_own_cpu(most.share)?, most.syscall)));
        let waiting = self.most_waiting().and_then(|most| {
            Some(format!("{} of the time is spent waiting in {}", percent(most.share)?, most.syscall))
        });
        waiting.or_else(|| self.most_of_wall()).into_iter().chain(cpu).collect()
    }

    /// Writes what most of the elapsed time was waited for, if much of it was. A server waits for its clients' requests.
    fn most_of_wall(&self) -> Option<String> {
        let wall = self.wall_time(false).filter(|_| self.rec.header.attached.is_none())?;
        let share = |ns: u64| ns as f64 / wall.wall_ns.max(1) as f64;
        let (class, ns) = wall.by_class().into_iter().next()?;
        let of_own = matches!(class, WaitClass::Thread | WaitClass::Process | WaitClass::Disk | WaitClass::Kernel);
        let is_client = || self.rec.rows.iter().any(|row| row.syscall.name() == Some("connect"));
        if self.serves() && !of_own && !is_client() {
            return None;
        }
        let of = percent(share(ns)).filter(|_| share(ns) >= MOST)?;
        Some(format!("{of} of the time is spent waiting {}", class.waits_for()))
    }
}
