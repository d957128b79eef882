//! What the tracer knows of each process and thread.

use super::contexts::Contexts;
use crate::procfs::{self, IoCalls, Ran, Schedstat};
use crate::table::ImageId;
use crate::windows::RawWindow;
use std::ops::RangeInclusive;
use systoll_model::{Audit, Counted, Counts, Errno, Signature, Sysno};
use systoll_symbols::{AddressSpace, Symbols};

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
    schedstat: Option<Schedstat>,
    tried_schedstat: bool,
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
    pub(super) ran: Option<Ran>,
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
            schedstat: None,
            tried_schedstat: false,
            cpu_base_ns: 0,
        }
    }

    /// Its schedstat, opened once while descriptors are to be had.
    pub(super) fn ran(&mut self, tid: i32) -> Option<Ran> {
        if !self.tried_schedstat {
            self.tried_schedstat = true;
            self.schedstat = Schedstat::keep(self.pid, tid);
        }
        match &self.schedstat {
            Some(stat) => stat.read(),
            None => Schedstat::open(self.pid, tid)?.read(),
        }
    }

    /// Its file named another task (a thread that took its leader's place by exec).
    pub(super) fn forget_schedstat(&mut self) {
        self.schedstat = None;
        self.tried_schedstat = false;
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
