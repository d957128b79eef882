//! What the tracer knows of each process and thread.

use super::contexts::{Contexts, ReadAhead};
use crate::procfs::{self, IoCalls, Ran, Schedstat};
use crate::raw_window::RawWindow;
use crate::table::ImageId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::RangeInclusive;
use systoll_model::{Audit, Counted, Counts, Errno, Signature, Sysno};
use systoll_symbols::{AddressSpace, Symbols};

/// Processes or threads by their numbers, looked up at every stop.
pub(super) type ById<T> = HashMap<i32, T, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers that the kernel gives out one after the other: nobody can choose them so that they meet.
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
        // The product's middle bits go by all of the number's: the map takes the lowest and the highest of what is told.
        self.0 = (self.0 ^ u64::from(number as u32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A process that is being watched.
pub(super) struct Process {
    pub(super) image: ImageId,
    pub(super) space: AddressSpace,
    /// Contexts of calls it has made, as of what `space` knows.
    pub(super) contexts: Contexts,
    /// Whether its `main` has been seen, or is not to be expected.
    pub(super) main_seen: bool,
    /// Calls looked at whole for want of its `main`.
    pub(super) sought_main: u32,
    pub(super) threads: usize,
    pub(super) start_ns: u64,
    pub(super) audit: IoAudit,
    /// New executable memory may have been mapped since names were last looked up.
    pub(super) maps_stale: bool,
}

impl Process {
    /// Looks up what is mapped now.
    pub(super) fn update(&mut self, symbols: &mut Symbols, pid: i32) {
        self.contexts.clear();
        self.space.update(symbols, pid);
    }
}

/// A thread that is being watched.
pub(super) struct Thread {
    pub(super) pid: i32,
    /// Number within the recording.
    pub(super) ordinal: u32,
    pub(super) pending: Option<Pending>,
    pub(super) window: Option<RawWindow>,
    pub(super) signals: u32,
    /// Whether we were told of a child it has made in the call it is in.
    pub(super) told_of_child: bool,
    /// What the call it is in points to, where that was read at its entry.
    pub(super) ahead: ReadAhead,
    schedstat: Option<Schedstat>,
    tried_schedstat: bool,
    last_ran: LastRan,
    /// When it was last let go, since which it may have run.
    let_go_ns: Option<u64>,
    /// Processor time already accounted for.
    pub(super) cpu_base_ns: u64,
}

/// A call that has been entered.
pub(super) struct Pending {
    pub(super) syscall: Sysno,
    pub(super) signature: Option<&'static Signature>,
    pub(super) args: [u64; 6],
    pub(super) row: u32,
    pub(super) resumed_ns: u64,
    pub(super) ran: Option<RanBefore>,
    pub(super) startup: bool,
    /// Whether the thread's window holds the call as its last.
    pub(super) in_window: bool,
    /// Whether its processor time tells what watching costs.
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
            last_ran: LastRan::default(),
            let_go_ns: None,
            cpu_base_ns: 0,
        }
    }

    /// Its schedstat, opened once while descriptors are to be had.
    pub(super) fn ran(&mut self, tid: i32) -> Option<Ran> {
        if !self.tried_schedstat {
            self.tried_schedstat = true;
            self.schedstat = Schedstat::keep(self.pid, tid);
        }
        let ran = match &self.schedstat {
            Some(stat) => stat.read(),
            None => Schedstat::open(self.pid, tid)?.read(),
        };
        self.last_ran = LastRan { ran, since_ns: 0 };
        ran
    }

    /// What it has run up to the stop it is at. Where `about` is enough, and it has been let go only for moments
    /// since that was last read, it is not read again: to read it costs as much as half a call's stop.
    pub(super) fn ran_before(&mut self, tid: i32, about: bool) -> Option<RanBefore> {
        if about
            && self.last_ran.since_ns <= MOST_UNREAD_NS
            && let Some(ran) = self.last_ran.ran
        {
            return Some(RanBefore { ran, since_ns: self.last_ran.since_ns });
        }
        self.ran(tid).map(|ran| RanBefore { ran, since_ns: 0 })
    }

    /// It is let go at `now`.
    pub(super) fn let_go(&mut self, now: u64) {
        self.let_go_ns = Some(now);
    }

    /// We were told at `told_ns` that it has stopped.
    pub(super) fn stopped(&mut self, told_ns: u64) {
        let ran = self.let_go_ns.take().map_or(u64::MAX, |let_go| told_ns.saturating_sub(let_go));
        self.last_ran.since_ns = self.last_ran.since_ns.saturating_add(ran);
    }

    /// Its file named another task (a thread that took its leader's place by exec).
    pub(super) fn forget_schedstat(&mut self) {
        self.schedstat = None;
        self.tried_schedstat = false;
        self.last_ran = LastRan::default();
    }
}

/// Time let go since its schedstat was read, ns, up to which a thread's is not read again.
const MOST_UNREAD_NS: u64 = 40_000;

/// What a thread had run when that was last read.
#[derive(Debug, Default)]
struct LastRan {
    ran: Option<Ran>,
    /// For how long it has been let go since, ns.
    since_ns: u64,
}

/// What a thread had run before a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct RanBefore {
    ran: Ran,
    /// How long before the call that was, less the time it was stopped, ns: it ran for about as long meanwhile.
    since_ns: u64,
}

impl RanBefore {
    /// By how much [`RanBefore::inside`] may be too little, ns.
    pub(super) fn since_ns(self) -> u64 {
        self.since_ns
    }

    /// What it ran and was queued for a processor in the call alone, at whose end it had run `after`.
    pub(super) fn inside(self, after: Ran) -> Ran {
        let cpu_ns = after.cpu_ns.saturating_sub(self.ran.cpu_ns);
        let queued_ns = after.queued_ns.saturating_sub(self.ran.queued_ns);
        let rest = self.since_ns.saturating_sub(cpu_ns);
        Ran { cpu_ns: cpu_ns.saturating_sub(self.since_ns), queued_ns: queued_ns.saturating_sub(rest) }
    }
}

/// The free audit: our count of read and write calls beside the kernel's.
#[derive(Clone, Debug, Default)]
pub(super) struct IoAudit {
    base: Option<IoCalls>,
    reads: (u64, u64),
    writes: (u64, u64),
}

impl IoAudit {
    /// Starts anew from the kernel's present figures.
    pub(super) fn restart(&mut self, pid: i32) {
        *self = Self { base: procfs::io_calls(pid), ..Self::default() };
    }

    /// A forked child starts at nought.
    pub(super) fn of_child() -> Self {
        Self { base: Some(IoCalls::default()), ..Self::default() }
    }

    /// A child was waited for: the kernel adds its whole count to its parent's. `None` where that
    /// is not known, which leaves nothing to compare with.
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

    /// A call returned.
    pub(super) fn returned(&mut self, audit: Option<Audit>, result: i64) {
        let Some(audit) = audit else { return };
        let counted = match Errno::from_result(result) {
            Some(errno) => audit.failure(errno),
            None => audit.success(),
        };
        self.add(audit, counted);
    }

    /// A call never returned.
    pub(super) fn unreturned(&mut self, audit: Option<Audit>) {
        if let Some(audit) = audit {
            self.add(audit, Counted::Perhaps);
        }
    }

    fn add(&mut self, audit: Audit, counted: Counted) {
        let low = u64::from(counted == Counted::Yes);
        let high = u64::from(counted != Counted::No);
        for (applies, range) in [(audit.reads(), &mut self.reads), (audit.writes(), &mut self.writes)] {
            if applies {
                range.0 += low;
                range.1 += high;
            }
        }
    }

    /// What differs from the kernel's figures, in words; `None` where they agree or can't be read.
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

/// Bytes a returned call moved.
pub(super) fn bytes_moved(signature: Option<&Signature>, result: i64) -> u64 {
    match signature {
        Some(s) if s.transfers => u64::try_from(result).unwrap_or(0),
        _ => 0,
    }
}

/// Adds the share of `other` that calls made so far have: used to take the observer's cost off.
pub(super) fn calls_of(counts: &Counts) -> u64 {
    counts.calls + counts.unreturned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(cpu_ns: u64, queued_ns: u64) -> Ran {
        Ran { cpu_ns, queued_ns }
    }

    #[test]
    fn what_ran_before_the_call_is_none_of_its() {
        let inside = |since_ns, after| {
            let inside = RanBefore { ran: ran(1_000, 500), since_ns }.inside(after);
            (inside.cpu_ns, inside.queued_ns)
        };
        assert_eq!(inside(0, ran(1_300, 600)), (300, 100));
        assert_eq!(inside(200, ran(1_300, 600)), (100, 100));
        // It had been queued as well.
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
        // Whose stop was not told of as one that followed our letting go may have run for any time.
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
