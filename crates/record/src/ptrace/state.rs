//! The tracer's state of each process and thread.

use super::arch::{OfProcess, OfThread};
use super::contexts::{Contexts, ReadAhead};
use crate::procfs::{self, IoCalls, SchedTimes, Schedstat};
use crate::raw_window::RawWindow;
use crate::table::ImageId;
use crate::tracee::Waits;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::RangeInclusive;
use systoll_model::{Attached, Audit, AuditDecision, Counts, Errno, Signature, Sysno};
use systoll_symbols::{AddressSpace, Symbols};

/// A map by process or thread number; it is read at every stop.
pub(super) type ById<T> = HashMap<i32, T, BuildHasherDefault<NumberHasher>>;

/// Hasher for numbers that the kernel assigns consecutively. Nobody can choose them to collide.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i32(i32::from(*byte));
        }
    }

    fn write_i32(&mut self, number: i32) {
        // The middle bits of the product depend on all bits of the number; the map uses the lowest and the highest of
        // the result.
        self.0 = (self.0 ^ u64::from(number as u32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Watching of processes that ran already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attachment {
    pub(super) facts: Attached,
    /// Time at which watching ends, ns.
    pub(super) deadline: Option<u64>,
    /// Number of calls after which watching ends.
    pub(super) calls: Option<u64>,
    /// True if processes that the watched ones make are not watched.
    pub(super) no_children: bool,
    /// User and system time of the processes that were left running, ns.
    pub(super) used_by_left: Option<(u64, u64)>,
}

/// The tracer's state of a watched process.
pub(super) struct Process {
    pub(super) image: ImageId,
    pub(super) space: AddressSpace,
    /// Known contexts of the process's calls, valid for the mappings in `space`.
    pub(super) contexts: Contexts,
    /// True if the process's `main` has been seen, or is not expected.
    pub(super) main_seen: bool,
    /// Number of calls whose whole stack was unwound to find `main`.
    pub(super) sought_main: u32,
    pub(super) threads: usize,
    pub(super) start_ns: u64,
    pub(super) audit: IoAudit,
    /// True if executable memory may have been mapped since `space` was updated.
    pub(super) maps_stale: bool,
    pub(super) inside: OfProcess,
}

impl Process {
    /// Reads the current mappings.
    pub(super) fn update(&mut self, symbols: &mut Symbols, pid: i32) {
        self.contexts.clear();
        self.space.update(symbols, pid);
    }
}

/// The tracer's state of a watched thread.
pub(super) struct Thread {
    pub(super) pid: i32,
    /// The thread's number within the recording.
    pub(super) ordinal: u32,
    pub(super) pending: Option<Pending>,
    pub(super) window: Option<RawWindow>,
    pub(super) signals: u32,
    /// True if the kernel reported a child made in the current call.
    pub(super) told_of_child: bool,
    /// The string that the current call points to, if it was read at the call's entry.
    pub(super) ahead: ReadAhead,
    schedstat: Option<Schedstat>,
    tried_schedstat: bool,
    last_ran: LastTimes,
    /// Time at which the thread was last resumed, ns; it may have run since then.
    let_go_ns: Option<u64>,
    /// The thread's processor time that is already accounted for, ns.
    pub(super) cpu_base_ns: u64,
    /// The call in which the thread waited when it was entered, until it has stopped.
    pub(super) entered: Option<Waits>,
    #[cfg_attr(not(target_arch = "aarch64"), expect(dead_code, reason = "threads count themselves on aarch64 only"))]
    pub(super) inside: OfThread,
}

/// A call that a thread has entered and not left.
pub(super) struct Pending {
    pub(super) syscall: Sysno,
    pub(super) signature: Option<&'static Signature>,
    pub(super) args: [u64; 6],
    pub(super) row: u32,
    pub(super) resumed_ns: u64,
    pub(super) ran: Option<TimesBefore>,
    pub(super) startup: bool,
    /// True if the call is the last one of the thread's window.
    pub(super) in_window: bool,
    /// True if the call's processor time is a sample of the cost of watching.
    pub(super) sampled: bool,
}

impl Thread {
    pub(super) fn new(pid: i32, ordinal: u32) -> Self {
        Self {
            pid,
            ordinal,
            pending: None,
            window: None,
            signals: 0,
            told_of_child: false,
            ahead: ReadAhead::default(),
            schedstat: None,
            tried_schedstat: false,
            last_ran: LastTimes::default(),
            let_go_ns: None,
            cpu_base_ns: 0,
            entered: None,
            inside: OfThread::default(),
        }
    }

    /// Returns the thread's running and waiting time from its schedstat. Opens that file once, while descriptors are
    /// available.
    pub(super) fn ran(&mut self, tid: i32) -> Option<SchedTimes> {
        if !self.tried_schedstat {
            self.tried_schedstat = true;
            self.schedstat = Schedstat::keep(self.pid, tid);
        }
        let ran = match &self.schedstat {
            Some(stat) => stat.read(),
            None => Schedstat::open(self.pid, tid)?.read(),
        };
        self.last_ran = LastTimes { ran, since_ns: 0 };
        ran
    }

    /// Returns the thread's times at its stop. If an approximation is enough (`about`), and the thread has run only for
    /// moments since the last reading, that reading is reused: a new one costs half as much as a stop.
    pub(super) fn ran_before(&mut self, tid: i32, about: bool) -> Option<TimesBefore> {
        if about
            && self.last_ran.since_ns <= MOST_UNREAD_NS
            && let Some(ran) = self.last_ran.ran
        {
            return Some(TimesBefore { ran, since_ns: self.last_ran.since_ns });
        }
        self.ran(tid).map(|ran| TimesBefore { ran, since_ns: 0 })
    }

    /// Notes that the thread is resumed at `now`.
    pub(super) fn let_go(&mut self, now: u64) {
        self.let_go_ns = Some(now);
    }

    /// Notes a stop that was reported at `told_ns`.
    pub(super) fn stopped(&mut self, told_ns: u64) {
        let ran = self.let_go_ns.take().map_or(u64::MAX, |let_go| told_ns.saturating_sub(let_go));
        self.last_ran.since_ns = self.last_ran.since_ns.saturating_add(ran);
    }

    /// Forgets the thread's open schedstat file. It belonged to another task if the thread took its leader's place by
    /// an exec.
    pub(super) fn forget_schedstat(&mut self) {
        self.schedstat = None;
        self.tried_schedstat = false;
        self.last_ran = LastTimes::default();
    }
}

/// Time that a thread may run before its schedstat is read again, ns.
const MOST_UNREAD_NS: u64 = 40_000;

/// The last reading of a thread's running time.
#[derive(Debug, Default)]
struct LastTimes {
    ran: Option<SchedTimes>,
    /// Time for which the thread has been running since the reading, ns.
    since_ns: u64,
}

/// Running and waiting time of a thread before a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimesBefore {
    ran: SchedTimes,
    /// Time for which the thread was running between the reading and the call, ns. Its running time may be greater by
    /// that.
    since_ns: u64,
}

impl TimesBefore {
    /// Returns the time by which [`TimesBefore::inside`] may be too low, ns.
    pub(super) fn since_ns(self) -> u64 {
        self.since_ns
    }

    /// Returns the time for which the thread ran, and was queued, inside the call alone. `after` is the reading at the
    /// call's end.
    pub(super) fn inside(self, after: SchedTimes) -> SchedTimes {
        let cpu_ns = after.cpu_ns.saturating_sub(self.ran.cpu_ns);
        let queued_ns = after.queued_ns.saturating_sub(self.ran.queued_ns);
        let rest = self.since_ns.saturating_sub(cpu_ns);
        SchedTimes { cpu_ns: cpu_ns.saturating_sub(self.since_ns), queued_ns: queued_ns.saturating_sub(rest) }
    }
}

/// An audit that costs nothing: compares our count of read and write calls with the kernel's.
#[derive(Clone, Debug, Default)]
pub(super) struct IoAudit {
    base: Option<IoCalls>,
    reads: (u64, u64),
    writes: (u64, u64),
}

impl IoAudit {
    /// Restarts the audit from the kernel's present figures.
    pub(super) fn restart(&mut self, pid: i32) {
        *self = Self { base: procfs::io_calls(pid), ..Self::default() };
    }

    /// Creates the audit of a forked child, whose figures start at 0.
    pub(super) fn of_child() -> Self {
        Self { base: Some(IoCalls::default()), ..Self::default() }
    }

    /// Adds the counts of a child that was waited for: the kernel adds them to its parent's. If they are unknown, there
    /// is nothing left to compare with.
    pub(super) fn reaped(&mut self, child: Option<IoCalls>) {
        let Some(child) = child else {
            self.base = None;
            return;
        };
        for (range, calls) in [(&mut self.reads, child.reads), (&mut self.writes, child.writes)] {
            range.0 += calls;
            range.1 += calls;
        }
    }

    /// Adds calls that returned.
    pub(super) fn returned(&mut self, audit: Option<Audit>, result: i64, calls: u64) {
        let Some(audit) = audit else { return };
        let counted = match Errno::from_result(result) {
            Some(errno) => audit.failure(errno),
            None => audit.success(),
        };
        self.add(audit, counted, calls);
    }

    /// Adds a call that never returned.
    pub(super) fn unreturned(&mut self, audit: Option<Audit>) {
        if let Some(audit) = audit {
            self.add(audit, AuditDecision::Perhaps, 1);
        }
    }

    fn add(&mut self, audit: Audit, counted: AuditDecision, calls: u64) {
        let low = if counted == AuditDecision::Yes { calls } else { 0 };
        let high = if counted == AuditDecision::No { 0 } else { calls };
        for (applies, range) in [(audit.reads(), &mut self.reads), (audit.writes(), &mut self.writes)] {
            if applies {
                range.0 += low;
                range.1 += high;
            }
        }
    }

    /// Returns the difference between our figures and the kernel's as text; `None` if they agree or can't be read.
    pub(super) fn differs(&self, pid: i32) -> Option<String> {
        let (base, now) = (self.base?, procfs::io_calls(pid)?);
        let differ = |name: &str, ours: (u64, u64), theirs: u64| {
            let range: RangeInclusive<u64> = ours.0..=ours.1;
            (!range.contains(&theirs))
                .then(|| format!("{theirs} {name} calls by the kernel's count, {} by ours", ours.1))
        };
        differ("read", self.reads, now.reads.saturating_sub(base.reads))
            .or_else(|| differ("write", self.writes, now.writes.saturating_sub(base.writes)))
    }
}

/// Returns the bytes that a returned call moved.
pub(super) fn bytes_moved(signature: Option<&Signature>, result: i64) -> u64 {
    match signature {
        Some(s) if s.transfers => u64::try_from(result).unwrap_or(0),
        _ => 0,
    }
}

/// Returns the number of calls made, including those that have not returned.
pub(super) fn calls_of(counts: &Counts) -> u64 {
    counts.calls + counts.unreturned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(cpu_ns: u64, queued_ns: u64) -> SchedTimes {
        SchedTimes { cpu_ns, queued_ns }
    }

    #[test]
    fn time_before_the_call_is_not_counted_as_its_own() {
        let inside = |since_ns, after| {
            let inside = TimesBefore { ran: ran(1_000, 500), since_ns }.inside(after);
            (inside.cpu_ns, inside.queued_ns)
        };
        assert_eq!(inside(0, ran(1_300, 600)), (300, 100));
        assert_eq!(inside(200, ran(1_300, 600)), (100, 100));
        // The thread ran for all of the 300 ns before the call, and was queued for the other 50.
        assert_eq!(inside(350, ran(1_300, 600)), (0, 50));
        assert_eq!(inside(5_000, ran(1_300, 600)), (0, 0));
        assert_eq!(inside(0, ran(900, 400)), (0, 0));
    }

    #[test]
    fn a_thread_let_go_for_moments_is_not_asked_again() {
        let me = std::process::id() as i32;
        let mut thread = Thread::new(me, 0);
        let first = thread.ran_before(me, true).unwrap();
        assert_eq!(first.since_ns(), 0);
        thread.let_go(1_000);
        thread.stopped(11_000);
        let about = thread.ran_before(me, true).unwrap();
        assert_eq!((about.since_ns(), about.ran.cpu_ns), (10_000, first.ran.cpu_ns));
        assert_eq!(thread.ran_before(me, false).unwrap().since_ns(), 0);
        thread.let_go(20_000);
        thread.stopped(20_001 + MOST_UNREAD_NS);
        assert_eq!(thread.ran_before(me, true).unwrap().since_ns(), 0);
        // A thread whose stop did not follow our resuming it may have run for any time.
        thread.stopped(30_000);
        assert_eq!(thread.ran_before(me, true).unwrap().since_ns(), 0);
    }

    #[test]
    fn numbers_that_follow_one_another_do_not_meet() {
        let hash = |number: i32| {
            let mut hasher = NumberHasher::default();
            hasher.write_i32(number);
            hasher.finish() & 0xfff
        };
        let apart: std::collections::HashSet<u64> = (30_000..31_000).map(hash).collect();
        assert!(apart.len() > 700, "{}", apart.len());
    }
}
