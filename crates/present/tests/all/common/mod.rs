//! Recordings and judgements made by hand, for every test of this crate.
#![allow(unreachable_pub, reason = "only tests use it")]

pub mod schema;
pub mod stories;

use std::sync::Arc;
use systoll_judge::{Advice, Confidence, Estimate, Evidence, Finding, Judgement, Kind};
use systoll_model::{
    BackendKind, Counts, Errno, Exit, Frame, FrameClass, FrameId, Header, Location, LongCall, Module, ModuleId, Prices,
    Process, ProcessId, Recording, Row, RowId, Spread, Stack, StackId, Sysno,
};
use systoll_present::{ReportOptions, Style, write_report};

/// A recording that is built row by row.
pub struct Builder {
    pub rec: Recording,
}

impl Builder {
    /// Creates the recording of a run of `command` by one thread, watched in-process on a box with
    /// a crossing of 97 ns.
    pub fn new(command: &[&str]) -> Self {
        let spread = Spread { min: 97.1, median: 97.6, high: 99.2 };
        let header = Header {
            version: "0.1.0".into(),
            command: command.iter().map(|w| (*w).to_owned()).collect(),
            backend: BackendKind::Inproc,
            exit: Some(Exit::Code(0)),
            observer_ns_per_call: 14.0,
            observer_wall_ns_per_call: 14.0,
            threads: 1,
            ..Header::default()
        };
        let mut rec = Recording { header, ..Recording::default() };
        rec.prices = Prices { crossing_before: spread, crossing_after: spread, ..Prices::default() };
        rec.processes = vec![Process {
            pid: 4711,
            exe: format!("/usr/bin/{}", command.first().unwrap_or(&"x")).into(),
            argv: command.iter().map(|w| Arc::from(*w)).collect(),
            instances: 1,
            threads: 1,
            ..Process::default()
        }];
        rec.stacks.push(Stack::default());
        Self { rec }
    }

    /// Sets the run's wall and processor time, in ms.
    pub fn times(mut self, wall: f64, cpu: f64) -> Self {
        let ns = |ms: f64| (ms * 1e6) as u64;
        let h = &mut self.rec.header;
        (h.wall_ns, h.user_ns, h.sys_ns, h.own_cpu_ns) = (ns(wall), ns(cpu / 2.0), ns(cpu / 2.0), Some(ns(cpu)));
        self
    }

    /// Changes the recording to one of the ptrace backend: slow, with estimated tolls.
    pub fn by_ptrace(mut self) -> Self {
        let h = &mut self.rec.header;
        h.backend = BackendKind::Ptrace;
        h.toll_estimated = true;
        h.observer_wall_ns_per_call = 12_500.0;
        h.observer_ns_per_call = 4_100.0;
        self
    }

    pub fn module(&mut self, path: &str) -> ModuleId {
        let found = self.rec.modules.iter().position(|m| &*m.path == path);
        let index = found.unwrap_or_else(|| {
            self.rec.modules.push(Module { path: path.into(), build_id: None });
            self.rec.modules.len() - 1
        });
        ModuleId(index as u32)
    }

    /// Adds a frame of `function` in `module`, at `place` (`file:line`, or empty).
    pub fn frame(&mut self, module: &str, class: FrameClass, function: &str, place: &str) -> FrameId {
        let (file, line) = match place.rsplit_once(':') {
            Some((file, line)) => (Some(Arc::from(file)), line.parse().ok()),
            None => (None, None),
        };
        let frame = Frame {
            module: Some(self.module(module)),
            address: 0x1000 + self.rec.frames.len() as u64,
            class,
            locations: vec![Location { function: function.into(), file, line }],
            callee: None,
            language: None,
        };
        self.rec.frames.push(frame);
        FrameId(self.rec.frames.len() as u32 - 1)
    }

    pub fn stack(&mut self, frames: &[FrameId]) -> StackId {
        self.rec.stacks.push(Stack { frames: frames.to_vec(), complete: true });
        StackId(self.rec.stacks.len() as u32 - 1)
    }

    /// Adds a row of `syscall` made by `api` of libc, called in `frames[0]`, with the other frames
    /// above it.
    pub fn row(&mut self, syscall: &str, api: Option<&str>, frames: &[FrameId], counts: Counts) -> RowId {
        let libc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        let leaf = self.frame(libc, FrameClass::Libc, &format!("__{syscall}"), "");
        let (user, outer) = frames.split_at(frames.len().min(1));
        let context: Vec<_> = [leaf].iter().chain(user).copied().collect();
        let row = Row {
            process: ProcessId(0),
            syscall: Sysno::from_name(syscall).expect("a known system call"),
            context: self.stack(&context),
            outer: self.stack(outer),
            api: api.map(Arc::from),
            api_module: api.map(|_| self.module(libc)),
            user: user.first().copied(),
            lines: vec![],
            counts,
        };
        self.rec.rows.push(row);
        RowId(self.rec.rows.len() as u32 - 1)
    }

    /// Adds a row whose figures don't matter.
    pub fn plain(&mut self, syscall: &str, calls: u64, toll_ns: u64) -> RowId {
        self.row(syscall, None, &[], counts(calls, toll_ns))
    }

    pub fn long_call(&mut self, row: RowId, ms: f64, at_ms: f64, startup: bool) {
        let (ns, at_ns) = ((ms * 1e6) as u64, (at_ms * 1e6) as u64);
        self.rec.longest.push(LongCall { row, ns, at_ns, thread: "app 4711".into(), startup });
    }

    pub fn build(self) -> Recording {
        self.rec.check().expect("a recording whose handles hold");
        self.rec
    }
}

/// Returns the counts of calls and their cost, all of it time paid.
pub fn counts(calls: u64, toll_ns: u64) -> Counts {
    let mut counts = Counts { calls, toll_ns: Some(toll_ns), elapsed_ns: toll_ns, ..Counts::default() };
    if let Some(each) = toll_ns.checked_div(calls) {
        counts.max_ns = each;
        counts.histogram.add_many(each, calls);
    }
    counts
}

/// Returns `counts` in which this number of calls failed.
pub fn failing(mut counts: Counts, errno: &str, calls: u64) -> Counts {
    counts.errors.insert(Errno::from_name(errno).expect("a known errno"), calls);
    counts
}

/// Returns a certain finding about all calls of `rows`.
pub fn finding(rec: &Recording, kind: Kind, cause: Option<&str>, rows: &[RowId]) -> Finding {
    let all: Vec<&Row> = rows.iter().map(|r| rec.row(*r)).collect();
    let calls = all.iter().map(|r| r.counts.calls).sum();
    let toll_ns = all.iter().filter_map(|r| r.counts.toll_ns).sum();
    let mut syscalls: Vec<_> = all.iter().map(|r| r.syscall).collect();
    syscalls.dedup();
    Finding {
        cause: cause.map(Arc::from),
        kind,
        confidence: Confidence::High,
        rows: rows.to_vec(),
        strands: rows.to_vec(),
        syscalls,
        apis: all.iter().filter_map(|r| r.api.clone()).collect(),
        user: all.first().and_then(|r| r.user),
        calls,
        needless: Estimate { estimate: calls, low: calls - calls / 20, high: calls },
        toll_ns,
        needless_toll_ns: toll_ns,
        share_of_cpu: rec.header.own_cpu_ns.map(|own| toll_ns as f64 / own as f64),
        share_of_calls: calls as f64 / rec.calls() as f64,
        evidence: Evidence { windows: 24, agree: 24, calls: 700, claimed: 699 },
        ..Finding::default()
    }
}

/// Returns a cure that gives up `gives_up`.
pub fn cure(how: &str, gives_up: &str) -> Advice {
    Advice { gives_up: gives_up.into(), ..Advice::general(how) }
}

/// Returns the report as text.
pub fn report(rec: &Recording, judgement: &Judgement, options: &ReportOptions, style: &Style) -> String {
    let mut out = vec![];
    write_report(&mut out, rec, judgement, options, style).expect("writing to memory");
    String::from_utf8(out).expect("UTF-8")
}
