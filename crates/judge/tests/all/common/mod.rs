//! Makes recordings from traces the way a backend does: exact rows, a window at each row's first
//! call and then one an octave, two in the newest.

pub(crate) mod large;

use std::collections::HashMap;
use std::sync::Arc;
use systoll_judge::{Catalogue, Finding, Judgement, Kind, Options, judge};
use systoll_model::*;

/// Processor time of a program besides its calls, ns, beside which they cost enough.
pub(crate) const BUSY: u64 = 2_000_000;
/// AT_FDCWD, as the kernel gets it.
pub(crate) const CWD: u64 = (-100i32) as u32 as u64;

/// Asserts that a finding is of this kind and has this cause.
pub(crate) fn is(f: &Finding, kind: Kind, cause: &str) {
    assert_eq!((f.kind, f.cause.as_deref()), (kind, Some(cause)), "{f:#?}");
}

/// A call of a trace.
#[derive(Clone, Default)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    /// The API and, after a colon, the user's function: calls with different ones belong to different rows.
    pub(crate) api: &'static str,
    pub(crate) args: [u64; 6],
    pub(crate) ins: Vec<(u8, Vec<u8>)>,
    pub(crate) outs: Vec<(u8, Vec<u8>)>,
    pub(crate) result: i64,
    pub(crate) fd: Option<&'static str>,
    pub(crate) signals: u32,
    pub(crate) waited_ns: u64,
    pub(crate) startup: bool,
    /// Number of page faults so far.
    pub(crate) faults: Option<u64>,
    pub(crate) vdso: bool,
    pub(crate) thread: u32,
    /// Processor time of the call itself, ns.
    pub(crate) toll_ns: u64,
}

pub(crate) fn call(name: &'static str, api: &'static str, args: &[u64], result: i64) -> Call {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    Call { name, api, args: all, result, toll_ns: 120, ..Call::default() }
}

impl Call {
    pub(crate) fn path(mut self, arg: u8, path: &str) -> Self {
        self.ins.push((arg, path.as_bytes().to_vec()));
        self
    }
    pub(crate) fn input(mut self, arg: u8, bytes: &[u8]) -> Self {
        self.ins.push((arg, bytes.to_vec()));
        self
    }
    pub(crate) fn output(mut self, arg: u8, bytes: &[u8]) -> Self {
        self.outs.push((arg, bytes.to_vec()));
        self
    }
    pub(crate) fn fd(mut self, name: &'static str) -> Self {
        self.fd = Some(name);
        self
    }
    pub(crate) fn toll(mut self, ns: u64) -> Self {
        self.toll_ns = ns;
        self
    }
    pub(crate) fn waited(mut self, ns: u64) -> Self {
        self.waited_ns = ns;
        self
    }
    pub(crate) fn startup(mut self) -> Self {
        self.startup = true;
        self
    }
}

/// Returns a `struct stat` with this change time; the access time changes by itself.
pub(crate) fn stat_bytes(ctime: u64, atime: u64) -> Vec<u8> {
    let mut stat = vec![7; 144];
    stat[72..80].copy_from_slice(&atime.to_le_bytes());
    stat[104..112].copy_from_slice(&ctime.to_le_bytes());
    stat
}

pub(crate) fn stat(path: &str, api: &'static str, ctime: u64, atime: u64) -> Call {
    call("newfstatat", api, &[(-100i32) as u32 as u64, 1, 2, 0], 0)
        .path(1, path)
        .output(2, &stat_bytes(ctime, atime))
        .toll(1_100)
}

/// Returns a call that blocks, unblocks or sets the mask; `old` is the mask that the kernel returns, if it was asked
/// for.
pub(crate) fn sigmask(api: &'static str, how: u64, set: Option<u64>, old: Option<u64>) -> Call {
    let pointer = |p: Option<u64>| p.map_or(0, |_| 0x7fff_0000);
    let mut c = call("rt_sigprocmask", api, &[how, pointer(set), pointer(old), 8], 0);
    if let Some(set) = set {
        c = c.input(1, &set.to_le_bytes());
    }
    if let Some(old) = old {
        c = c.output(2, &old.to_le_bytes());
    }
    c
}

/// Returns the recording that a backend would make of a run of these calls with `other_cpu_ns` of processor time
/// beside them.
pub(crate) fn recording(trace: &[Call], other_cpu_ns: u64) -> Recording {
    let mut made = Maker::default();
    for (at, call) in trace.iter().enumerate() {
        made.count(trace, at, call);
    }
    made.finish(other_cpu_ns)
}

#[derive(Default)]
struct Maker {
    rec: Recording,
    rows: HashMap<(&'static str, &'static str, bool), usize>,
    due: Vec<Vec<u64>>,
    windows: Vec<Vec<Window>>,
    open: u64,
    places: Vec<(usize, u64)>,
    random: u64,
}

impl Maker {
    fn row(&mut self, call: &Call) -> usize {
        if let Some(row) = self.rows.get(&(call.name, call.api, call.vdso)) {
            return *row;
        }
        if self.rec.processes.is_empty() {
            let exe: Arc<str> = "/srv/app/app".into();
            self.rec.processes.push(Process { exe, instances: 1, main_at_ns: Some(1), ..Process::default() });
            self.rec.stacks.push(Stack::default());
        }
        let class = if call.vdso { FrameClass::Vdso } else { FrameClass::Libc };
        let function: Arc<str> = call.api.into();
        let location = Location { function, file: None, line: None };
        self.rec.frames.push(Frame { class, locations: vec![location], ..Frame::default() });
        let frame = FrameId(self.rec.frames.len() as u32 - 1);
        self.rec.stacks.push(Stack { frames: vec![frame], complete: false });
        let api = call.api.rsplit(':').next().filter(|a| !a.is_empty()).map(Arc::from);
        self.rec.rows.push(Row {
            context: StackId(self.rec.stacks.len() as u32 - 1),
            api,
            user: Some(frame),
            ..Row::new(
                ProcessId(0),
                Sysno::from_name(call.name).unwrap(),
                Counts { waited_ns: Some(0), toll_ns: Some(0), ..Counts::default() },
            )
        });
        self.due.push(Vec::new());
        self.windows.push(Vec::new());
        self.rows.insert((call.name, call.api, call.vdso), self.rec.rows.len() - 1);
        self.rec.rows.len() - 1
    }

    fn count(&mut self, trace: &[Call], at: usize, call: &Call) {
        let row = self.row(call);
        let counts = &mut self.rec.rows[row].counts;
        counts.calls += 1;
        let elapsed = call.waited_ns + call.toll_ns + 12_000;
        counts.elapsed_ns += elapsed;
        counts.max_ns = counts.max_ns.max(elapsed);
        counts.histogram.add(elapsed);
        *counts.toll_ns.as_mut().unwrap() += call.toll_ns;
        *counts.waited_ns.as_mut().unwrap() += call.waited_ns;
        if call.startup {
            counts.startup_calls += 1;
            counts.startup_waited_ns += call.waited_ns;
        }
        let nth = counts.calls;
        self.places.push((row, nth));
        self.rec.header.wall_ns += elapsed;
        if call.waited_ns >= 1_000_000 {
            let (row, startup) = (RowId(row as u32), call.startup);
            let thread = "app".into();
            self.rec.longest.push(LongCall { row, ns: elapsed, at_ns: at as u64, thread, startup });
        }
        let octave = nth.ilog2();
        if nth == 1 << octave {
            let two = if octave >= 5 { 2 } else { 1 };
            self.due[row] = (0..two).map(|_| nth + self.below(nth)).collect();
            self.due[row].sort_unstable();
        }
        if self.open > at as u64 || self.due[row].first().is_none_or(|d| *d > nth) {
            return;
        }
        self.due[row].remove(0);
        self.open = (at + 32) as u64;
        let of_thread = trace.iter().enumerate().skip(at).filter(|(_, other)| other.thread == call.thread);
        self.windows[row].push(Window {
            process: ProcessId(0),
            thread: call.thread,
            row: RowId(row as u32),
            octave: octave as u8,
            calls: of_thread.take(32).map(|(at, c)| window_call(c, at as u64)).collect(),
        });
        if self.windows[row].len() > 8 {
            self.windows[row].remove(1);
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    fn finish(mut self, other_cpu_ns: u64) -> Recording {
        let mut windows: Vec<Window> = self.windows.drain(..).flatten().collect();
        windows.sort_by_key(|w| w.calls[0].entry_ns);
        for call in windows.iter_mut().flat_map(|w| &mut w.calls) {
            let (row, nth) = self.places[call.entry_ns as usize];
            (call.row, call.nth) = (RowId(row as u32), nth);
        }
        self.rec.windows = windows;
        let toll: u64 = self.rec.rows.iter().filter_map(|r| r.counts.toll_ns).sum();
        self.rec.header.own_cpu_ns = Some(toll + other_cpu_ns);
        self.rec.header.wall_ns += other_cpu_ns;
        self.rec.header.threads = 1;
        self.rec.header.observer_wall_ns_per_call = 12_000.0;
        self.rec.header.command = vec!["./app".into()];
        let main_at: u64 = self.rec.longest.iter().filter(|l| l.startup).map(|l| l.ns).sum();
        if let Some(process) = self.rec.processes.first_mut() {
            process.main_at_ns = Some(main_at + 1_000_000);
        }
        self.rec.check().unwrap();
        self.rec
    }
}

fn window_call(call: &Call, at: u64) -> WindowCall {
    let data = |at, all: &[(u8, Vec<u8>)]| {
        all.iter().map(|(arg, bytes)| ArgData { arg: *arg, at, bytes: bytes.clone(), cut: false }).collect::<Vec<_>>()
    };
    let mut all = data(Moment::Entry, &call.ins);
    all.extend(data(Moment::Exit, &call.outs));
    WindowCall {
        row: RowId(0),
        nth: 0,
        args: call.args,
        data: all,
        fd: call.fd.map(Arc::from),
        result: Some(call.result),
        entry_ns: at,
        elapsed_ns: call.waited_ns + 12_000,
        waited_ns: Some(call.waited_ns),
        signals_before: call.signals,
        faults: call.faults,
        stack: None,
        before: systoll_model::Before::Unknown,
        request: None,
    }
}

/// Returns `n` rounds of the calls that `round` makes.
pub(crate) fn rounds(n: u64, round: impl Fn(u64) -> Vec<Call>) -> Vec<Call> {
    (0..n).flat_map(round).collect()
}

pub(crate) fn judged(trace: &[Call], other_cpu_ns: u64) -> Judgement {
    judge(&recording(trace, other_cpu_ns), &Catalogue::builtin(), &Options::default())
}

/// Returns the only finding.
pub(crate) fn only(judgement: Judgement) -> Finding {
    assert_eq!(judgement.findings.len(), 1, "{judgement:#?}");
    judgement.findings.into_iter().next().unwrap()
}

pub(crate) fn silent(trace: &[Call], other_cpu_ns: u64) {
    let judgement = judged(trace, other_cpu_ns);
    assert!(judgement.findings.is_empty() && judgement.also.is_empty(), "{judgement:#?}");
}

pub(crate) fn no_finding(trace: &[Call], other_cpu_ns: u64) {
    let judgement = judged(trace, other_cpu_ns);
    assert!(judgement.findings.is_empty(), "{judgement:#?}");
}
