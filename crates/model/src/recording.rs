//! The recording: all data that was observed in a run.

use crate::counts::Counts;
use crate::in_place::InPlace;
use crate::ledger::Ledger;
use crate::machine::Machine;
use crate::names::{Frame, FrameId, Module, ModuleId, Stack, StackId};
use crate::prices::Prices;
use crate::problem::Problem;
use crate::process::{Exit, Process, ProcessId};
use crate::request::{ReceivedCalls, RequestKind, RequestKindId};
use crate::row::{ObjectSample, Row, RowId, RowTrunk, WholeStack};
use crate::sysno::Sysno;
use crate::thread::Thread;
use crate::wait_span::WaitSpans;
use crate::window::Window;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The way in which calls were observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// Trampolines in the target counted the calls.
    Inproc,
    /// Programs in the kernel counted the calls.
    Bpf,
    /// PTRACE_SYSCALL stops showed the calls to a tracer.
    Ptrace,
    /// Another tool observed the calls, and its trace was read.
    Import,
}

impl BackendKind {
    /// Returns the backend's name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inproc => "inproc",
            Self::Bpf => "bpf",
            Self::Ptrace => "ptrace",
            Self::Import => "import",
        }
    }

    /// Returns true if another tool observed the calls.
    pub fn is_trace(self) -> bool {
        self == Self::Import
    }

    /// Returns true if the backend records some calls whole, in windows. Without them, it is not known what the calls
    /// were about.
    pub fn samples_calls(self) -> bool {
        self != Self::Import
    }

    /// Returns true if the backend reads the lines of scripts from the memory of their interpreters. That takes a thread
    /// that waits while it is read.
    pub fn reads_scripts(self) -> bool {
        matches!(self, Self::Inproc | Self::Ptrace)
    }

    /// Returns true if the backend stops a thread at its calls: that is slow, and no clock can be read around a call
    /// alone.
    pub fn stops_at_calls(self) -> bool {
        self == Self::Ptrace
    }

    /// Returns true if the backend measures what calls cost, except calls that wait: these cost their number × this box's
    /// price. Other backends with estimated costs estimate all of them.
    pub fn estimates_waits_only(self) -> bool {
        self == Self::Bpf
    }

    /// Returns true if the backend can answer calls in place of the kernel.
    pub fn answers_in_place(self) -> bool {
        self == Self::Inproc
    }

    /// Returns true if calls of one time can be in two buckets of a [`crate::Histogram`]: they are counted by cycles of
    /// the processor's clock.
    pub fn buckets_overlap(self) -> bool {
        self == Self::Inproc
    }

    /// Returns the backend with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Inproc, Self::Bpf, Self::Ptrace, Self::Import].into_iter().find(|b| b.name() == name)
    }
}

/// A part of a program's life. Start-up ends when its `main` is first seen on a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The part before `main`: the loader and constructors run.
    StartUp,
    /// The part while `main` runs.
    #[default]
    Steady,
    /// The part after `main`: exit handlers run.
    Exit,
}

/// The box on which a recording was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Model name of the box's processor.
    pub cpu: String,
    /// Number of the box's processors that are online.
    pub cpus: u32,
    /// Release of the box's kernel.
    pub kernel: String,
    /// The kernel's current clock source.
    pub clock_source: String,
    /// Hypervisor, if there is one.
    pub virtualization: Option<String>,
    /// Size of a page of memory, bytes; 0 if the recording does not say. aarch64 has pages of 4, 16 and 64 KiB.
    pub page: u64,
}

impl Host {
    /// Returns the size of a page of memory, bytes: the usual one, if the recording does not say.
    pub fn page_bytes(&self) -> u64 {
        if self.page == 0 { 4096 } else { self.page }
    }
}

/// The `TZ` variable of a program. The C library reads it; most programs never set it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TimeZone {
    /// The recording does not say: an older version or another tool made it.
    #[default]
    Unknown,
    /// The variable was not set: glibc then reads `/etc/localtime`.
    Unset,
    /// The variable was set to this text.
    Set(String),
}

/// Facts about watching programs that ran already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// Time for which the oldest of the programs had run before, ns.
    pub age_ns: u64,
    /// Longest time for which threads of one of the programs were stopped at once, ns.
    pub longest_stop_ns: u64,
    /// True if some of the programs were left running.
    pub left_running: bool,
}

/// The moment that a run was watched until: the program is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// The sign of that moment, as typed: `port:8080`.
    pub sign: String,
    /// True if the sign was seen, and watching ended there; false if the program ended, or was left, before.
    pub seen: bool,
}

/// Facts about the run as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Version of systoll that recorded.
    pub version: String,
    /// Words of the command, as typed.
    pub command: Vec<String>,
    /// The backend that observed the run.
    pub backend: BackendKind,
    /// The kind of machine on which the run took place; `None` if a trace of another tool does not show it.
    pub machine: Option<Machine>,
    /// The box on which the run took place.
    pub host: Host,
    /// The box's own name (`uname -n`); empty if it is not known.
    pub node: String,
    /// The `TZ` variable that the command got.
    pub time_zone: TimeZone,
    /// Start of the run, in seconds since 1970.
    pub started_unix: u64,
    /// The way in which the command's own process ended; `None` if it was still running, or if that
    /// was not reported.
    pub exit: Option<Exit>,
    /// Facts about attaching, if running programs were watched for a while; their start is then
    /// unknown.
    pub attached: Option<Attached>,
    /// The moment that the run was watched until; `None` if that was the program's end.
    pub until: Option<Until>,
    /// Time from the start to the end of the last watched process, in ns, as watched.
    pub wall_ns: u64,
    /// User time of the whole process tree, as watched, ns.
    pub user_ns: u64,
    /// System time of the whole process tree, as watched, ns.
    pub sys_ns: u64,
    /// Estimate of the tree's processor time in an unwatched run, in ns: the whole that shares of
    /// CPU refer to. `None` if it is not known to within a half; then there are no shares, and a
    /// problem says so.
    pub own_cpu_ns: Option<u64>,
    /// Lower bound of `own_cpu_ns`, ns; `None` if it is not known.
    pub own_cpu_least_ns: Option<u64>,
    /// Upper bound of `own_cpu_ns`, ns; `None` if it is not known.
    pub own_cpu_most_ns: Option<u64>,
    /// Processor time that watching adds to the target, ns a call.
    pub observer_ns_per_call: f64,
    /// Wall time that watching adds to the target, ns a call.
    pub observer_wall_ns_per_call: f64,
    /// Time for which threads waited for systoll's own work, ns: it started programs, hooked code and answered questions.
    /// Threads may have waited at the same time.
    pub watching_ns: u64,
    /// True if tolls are calls × price, false if each call was measured.
    pub toll_estimated: bool,
    /// Number of calls that are known to have been missed.
    pub lost: u64,
    /// Number of calls into the vDSO; `None` if the backend can't see them.
    pub vdso_calls: Option<u64>,
    /// Number of threads that the process tree ever had; 0 if it is not known.
    pub threads: u64,
    /// Seed by which the windows' places were drawn.
    pub seed: u64,
    /// Number of windows opened.
    pub windows_opened: u64,
    /// Number of windows that were not opened because the budget was spent.
    pub windows_refused: u64,
    /// Sites of system calls by the way in which they were hooked; `None` if the backend hooks
    /// none.
    pub sites: Option<Sites>,
}

/// Numbers of `syscall` instructions by the way in which they were hooked, over all files of a run,
/// each file once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// Number of sites whose calls are counted and seen to return: with errors, and with time if
    /// the clock allows.
    pub timed: u64,
    /// Number of sites whose calls are only counted.
    pub counted: u64,
    /// Number of sites, among `timed` and `counted`, that were hooked while the program ran, when
    /// it mapped the file.
    pub on_arrival: u64,
    /// Number of sites that are not hooked: their calls are not counted.
    pub not_covered: u64,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            version: String::new(),
            command: Vec::new(),
            backend: BackendKind::Ptrace,
            machine: None,
            host: Host::default(),
            node: String::new(),
            time_zone: TimeZone::Unknown,
            started_unix: 0,
            exit: None,
            attached: None,
            until: None,
            wall_ns: 0,
            user_ns: 0,
            sys_ns: 0,
            own_cpu_ns: None,
            own_cpu_least_ns: None,
            own_cpu_most_ns: None,
            observer_ns_per_call: 0.0,
            observer_wall_ns_per_call: 0.0,
            watching_ns: 0,
            toll_estimated: false,
            lost: 0,
            vdso_calls: None,
            threads: 0,
            seed: 0,
            windows_opened: 0,
            windows_refused: 0,
            sites: None,
        }
    }
}

/// Calls of one vDSO function by one process image from one calling context. They are no system
/// calls. If the vDSO has to make one, that is in a [`Row`] as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VdsoRow {
    /// The process image that made the calls.
    pub process: ProcessId,
    /// The system call that the function replaces: `clock_gettime`, `gettimeofday`, `time` or
    /// `getcpu`.
    pub function: Arc<str>,
    /// Calling context: the frames from the function's entry up to the user's frame.
    pub context: StackId,
    /// Public API that the user's frame called.
    pub api: Option<Arc<str>>,
    /// The user's own frame, if it is known.
    pub user: Option<FrameId>,
    /// Number of calls of the function in the context.
    pub calls: u64,
}

/// One of the slowest single calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongCall {
    /// The row to which the call belongs.
    pub row: RowId,
    /// Elapsed time of the call, ns.
    pub ns: u64,
    /// Time of the call's entry, ns since the run's start.
    pub at_ns: u64,
    /// Name and id of the thread that made the call.
    pub thread: Arc<str>,
    /// True if the call was made before `main`.
    pub startup: bool,
}

/// An installed package to which some of a script's sources belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Path of the package's sources: a folder, or its only file.
    pub home: Arc<str>,
    /// Version of the package: numbers between dots.
    pub version: Arc<str>,
}

/// Everything observed in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Facts about the run as a whole.
    pub header: Header,
    /// Process images of the run.
    pub processes: Vec<Process>,
    /// Files that were mapped executable.
    pub modules: Vec<Module>,
    /// Distinct frames, to which stacks refer.
    pub frames: Vec<Frame>,
    /// Distinct stacks, to which rows and windows refer.
    pub stacks: Vec<Stack>,
    /// The exact table: one row for each process image, system call and calling context.
    pub rows: Vec<Row>,
    /// Calls into the vDSO. If [`Header::vdso_calls`] is `None`, the backend could not see them.
    pub vdso: Vec<VdsoRow>,
    /// The calls of each thread; empty if the backend does not tell threads apart.
    pub threads: Vec<Thread>,
    /// Windows, in the order they were opened.
    pub windows: Vec<Window>,
    /// The kinds of received requests, which windows name by number; empty unless requests were to be reported.
    pub request_kinds: Vec<RequestKind>,
    /// The receives that were looked at one by one, by row and kind; empty unless requests were to be reported.
    pub received: Vec<ReceivedCalls>,
    /// The objects of rows' calls over the whole run, most calls first. Some rows have no ledger.
    pub ledgers: Vec<Ledger>,
    /// Whole stacks of the rows that were seen with several, by rising row.
    pub trunks: Vec<RowTrunk>,
    /// Sampled stacks with all frames, those of interpreters too, of rows whose trunks leave some frames out; sorted by row.
    pub whole_stacks: Vec<WholeStack>,
    /// Samples by object, of the rows that serve several lines or callers; sorted by row.
    pub object_samples: Vec<ObjectSample>,
    /// The slowest single calls, slowest first.
    pub longest: Vec<LongCall>,
    /// The calls that waited for a millisecond or more.
    pub wait_spans: WaitSpans,
    /// Packages of scripts' sources whose version is known.
    pub packages: Vec<Package>,
    /// Prices measured around the run.
    pub prices: Prices,
    /// Gaps and uncertainties of the recording.
    pub problems: Vec<Problem>,
    /// Counts of the calls that were to be answered in place, one entry for each system call.
    pub in_place: Vec<InPlace>,
}

/// The sum of all rows of one system call.
#[derive(Clone, Debug, PartialEq)]
pub struct SyscallTotal {
    /// The system call that the sum is for.
    pub syscall: Sysno,
    /// The sum of the rows' figures.
    pub counts: Counts,
}

impl Recording {
    /// Returns true if every call is counted and no audit disagreed.
    pub fn exact(&self) -> bool {
        self.header.lost == 0 && !self.problems.iter().any(|p| p.kind.spoils_exactness())
    }

    /// Returns the number of calls in all rows.
    pub fn calls(&self) -> u64 {
        self.rows.iter().fold(0, |sum, r| sum.saturating_add(r.counts.calls))
    }

    /// Returns the sum of all rows.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for row in &self.rows {
            total.merge(&row.counts);
        }
        total
    }

    /// Returns the most processor time that the program can have taken in an unwatched run, ns: its measured time, or
    /// else the upper bound; `None` if neither is known.
    pub fn own_cpu_at_most_ns(&self) -> Option<u64> {
        self.header.own_cpu_ns.or(self.header.own_cpu_most_ns)
    }

    /// Returns the program's processor time in an unwatched run, in ns: the whole that shares of
    /// CPU refer to. It includes the calls' toll. Returns `None` if it is not known, or if the toll
    /// exceeds it by more than a tenth (both are estimates).
    pub fn own_cpu_ns(&self) -> Option<u64> {
        let own = self.header.own_cpu_ns?;
        let toll = self.rows.iter().filter_map(|row| row.counts.toll_ns).fold(0u64, u64::saturating_add);
        let known = own > 0 && toll <= own.saturating_add(own / 10);
        known.then_some(own.max(toll))
    }

    /// Returns the interval of [`Recording::own_cpu_ns`], or `None` if it is not known. Its lower
    /// bound is no less than the calls' toll.
    pub fn own_cpu_span_ns(&self) -> Option<RangeInclusive<u64>> {
        let (own, header) = (self.own_cpu_ns()?, &self.header);
        let (least, most) = (header.own_cpu_least_ns?, header.own_cpu_most_ns?);
        let toll = self.rows.iter().filter_map(|row| row.counts.toll_ns).fold(0u64, u64::saturating_add);
        Some(least.clamp(toll.min(own), own)..=most.max(own))
    }

    /// Returns one entry per system call, most calls first.
    pub fn by_syscall(&self) -> Vec<SyscallTotal> {
        let mut totals: BTreeMap<Sysno, Counts> = BTreeMap::new();
        for row in &self.rows {
            totals.entry(row.syscall).or_default().merge(&row.counts);
        }
        let mut totals: Vec<_> = totals.into_iter().map(|(syscall, counts)| SyscallTotal { syscall, counts }).collect();
        totals.sort_by_key(|t| (std::cmp::Reverse(t.counts.calls), t.syscall));
        totals
    }

    /// Returns the row `id`. Panics if the recording has no such row: [`Recording::check`] holds
    /// for every recording read from a file.
    pub fn row(&self, id: RowId) -> &Row {
        &self.rows[id.0 as usize]
    }

    /// Returns the frame `id`; panics as [`Recording::row`] does.
    pub fn frame(&self, id: FrameId) -> &Frame {
        &self.frames[id.0 as usize]
    }

    /// Returns the stack `id`; panics as [`Recording::row`] does.
    pub fn stack(&self, id: StackId) -> &Stack {
        &self.stacks[id.0 as usize]
    }

    /// Returns the module `id`; panics as [`Recording::row`] does.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize]
    }

    /// Returns the process image `id`; panics as [`Recording::row`] does.
    pub fn process(&self, id: ProcessId) -> &Process {
        &self.processes[id.0 as usize]
    }

    /// Returns the frames of a row from the system call outwards: its exact context, then the
    /// frames that all its sampled stacks have in common.
    pub fn row_frames(&self, row: &Row) -> impl Iterator<Item = &Frame> {
        self.row_frame_ids(row).map(|id| self.frame(id))
    }

    /// Returns the handles of the frames that [`Recording::row_frames`] returns.
    pub fn row_frame_ids(&self, row: &Row) -> impl Iterator<Item = FrameId> {
        let [context, outer] = [row.context, row.outer].map(|id| &self.stack(id).frames);
        context.iter().chain(outer).copied()
    }

    /// Returns true if a receive of this kind begins a request; false for a kind that the recording does not have.
    pub fn begins_request(&self, kind: RequestKindId) -> bool {
        self.request_kinds.get(kind.0 as usize).is_some_and(|kind| kind.protocol.has_requests())
    }

    /// Checks that every handle points into its table, every frame has a location and every
    /// window a call.
    ///
    /// # Errors
    /// A text that names the first violation, in one line.
    pub fn check(&self) -> Result<(), String> {
        let frame = |f: &FrameId| (f.0 as usize) < self.frames.len();
        let stack = |s: StackId| (s.0 as usize) < self.stacks.len();
        let process = |p: ProcessId| (p.0 as usize) < self.processes.len();
        let module = |m: &Option<ModuleId>| m.is_none_or(|m| (m.0 as usize) < self.modules.len());
        let row = |r: RowId| (r.0 as usize) < self.rows.len();
        if !self.frames.iter().all(|f| module(&f.module) && !f.locations.is_empty()) {
            return Err("a frame names no module of the file".into());
        }
        if !self.stacks.iter().all(|s| s.frames.iter().all(frame)) {
            return Err("a stack names no frame of the file".into());
        }
        if !self.processes.iter().all(|p| p.parent.is_none_or(process)) {
            return Err("a process names no parent of the file".into());
        }
        let row_ok = |r: &Row| {
            process(r.process)
                && stack(r.context)
                && stack(r.outer)
                && module(&r.api_module)
                && r.user.iter().all(frame)
                && r.lines.iter().all(|l| frame(&l.frame))
        };
        if !self.rows.iter().all(row_ok) {
            return Err("a row names no process, stack, module or frame of the file".into());
        }
        let vdso_ok = |v: &VdsoRow| process(v.process) && stack(v.context) && v.user.iter().all(frame);
        if !self.vdso.iter().all(vdso_ok) {
            return Err("calls into the vDSO name no process, stack or frame of the file".into());
        }
        if !self.threads.iter().all(|t| process(t.process)) {
            return Err("a thread names no process of the file".into());
        }
        let kind = |k: RequestKindId| (k.0 as usize) < self.request_kinds.len();
        let call_ok =
            |c: &crate::window::WindowCall| row(c.row) && c.stack.is_none_or(stack) && c.request.is_none_or(kind);
        let window_ok =
            |w: &Window| process(w.process) && row(w.row) && !w.calls.is_empty() && w.calls.iter().all(call_ok);
        if !self.windows.iter().all(window_ok) {
            return Err("a window names no process, row, stack or request of the file".into());
        }
        if !self.ledgers.iter().all(|l| row(l.row)) {
            return Err("a ledger names no row of the file".into());
        }
        if !self.trunks.iter().all(|t| row(t.row) && stack(t.stack)) || !self.trunks.is_sorted_by_key(|t| t.row) {
            return Err("a whole stack names no row or stack of the file, or stands out of order".into());
        }
        let whole = &self.whole_stacks;
        if !whole.iter().all(|w| row(w.row) && stack(w.stack)) || !whole.is_sorted_by_key(|w| w.row) {
            return Err("a sampled stack names no row or stack of the file, or stands out of order".into());
        }
        let samples = &self.object_samples;
        let sample_ok =
            |s: &ObjectSample| row(s.row) && stack(s.above) && stack(s.whole) && s.line.as_ref().is_none_or(frame);
        if !samples.iter().all(sample_ok) || !samples.is_sorted_by_key(|s| s.row) {
            return Err("a sample of an object names no row, stack or frame of the file, or stands out of order".into());
        }
        if !self.received.iter().all(|r| row(r.row) && kind(r.kind)) {
            return Err("a receive names no row or request of the file".into());
        }
        if !self.longest.iter().all(|l| row(l.row)) {
            return Err("a long call names no row of the file".into());
        }
        let waits = &self.wait_spans;
        let line_ok = |w: &crate::wait_span::WaitSpan| w.line.as_ref().is_none_or(frame);
        if !waits.spans.iter().all(|w| row(w.row) && line_ok(w)) || !waits.dropped.iter().all(|d| row(d.row)) {
            return Err("a wait names no row or frame of the file".into());
        }
        if !waits.spans.is_sorted_by_key(|w| w.begin_ns) {
            return Err("a wait stands out of order".into());
        }
        Ok(())
    }
}
