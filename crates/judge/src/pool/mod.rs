//! Callers that give work to a pool of threads, whose own stacks do not lead to them.
//!
//! `uv_fs_stat` gives a request to libuv's pool and wakes a thread; that thread runs `uv__fs_stat`. The stack of the
//! wake-up names the operation and the line that asked for it, and the stack of the work names the operation alone.
//! Therefore the lines that asked for an operation are those at the wake-ups for the same operation; those of a pool that
//! names no operations are the lines at all of its wake-ups.

mod kinds;

use self::kinds::{Function, Kind, Part, part};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use systoll_model::{FrameId, ProcessId, Recording, RowId, StackId};

/// The callers whose work a pool's threads do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// The pool, in words: `libuv's pool`.
    pub pool: &'static str,
    /// Functions of the pool that were asked for the work: `uv_fs_stat`. Empty if the pool runs whatever it is given.
    pub operations: Vec<String>,
    /// The lines that asked for these operations, most often seen first, each with the number of samples.
    pub lines: Vec<(FrameId, u64)>,
    /// True if no wake-up was sampled, so that the lines are those that wait for the pool's results.
    pub by_waits: bool,
    /// Calls by which work was given to the pool and taken by its threads, of all operations.
    pub hand_over_calls: u64,
    /// Their time, ns.
    pub hand_over_ns: u64,
    /// Calls that the pool's threads made for tasks, of all operations.
    pub work_calls: u64,
}

/// The sampled calls of a row by their part in a pool's work, with the estimated number of calls that each part has.
#[derive(Debug, Default)]
struct RowParts<'r> {
    /// By octave of the call's number: samples of the pool's work, by operation.
    work: BTreeMap<(u32, Option<&'r str>), u64>,
    /// By octave: samples of handing work over.
    hands_over: BTreeMap<u32, u64>,
    /// By octave: all samples.
    all: BTreeMap<u32, u64>,
    kind: Option<Kind>,
    /// Frames of the stacks of the pool's threads, each with the samples that have it.
    frames: HashMap<FrameId, u64>,
    /// The same of all other samples.
    other_frames: HashMap<FrameId, u64>,
}

/// The work of pools in a recording, as its samples show it.
#[derive(Debug, Default)]
pub(crate) struct Pools<'r> {
    rows: BTreeMap<RowId, RowParts<'r>>,
    /// Lines at the wake-ups, with the number of samples.
    asks: BTreeMap<(ProcessId, Kind, Option<&'r str>), BTreeMap<FrameId, u64>>,
    /// Lines that wait for a pool's results, with the number of samples.
    waits: BTreeMap<(ProcessId, Kind), BTreeMap<FrameId, u64>>,
}

impl<'r> RowParts<'r> {
    /// Returns the share of the row's calls for which `samples` of each octave stand.
    fn share(&self, samples: impl Fn(u32) -> u64) -> f64 {
        let size = |octave: u32| 2f64.powi(octave.min(63) as i32);
        let (mut part, mut all) = (0.0, 0.0);
        for (octave, n) in &self.all {
            all += size(*octave);
            part += size(*octave) * samples(*octave) as f64 / (*n).max(1) as f64;
        }
        if all > 0.0 { part / all } else { 0.0 }
    }

    fn work_share(&self) -> f64 {
        let of = |octave| self.work.iter().filter(|((at, _), _)| *at == octave).map(|(_, n)| n).sum();
        self.share(of)
    }

    fn hand_over_share(&self) -> f64 {
        self.share(|octave| self.hands_over.get(&octave).copied().unwrap_or(0))
    }

    fn operations(&self) -> BTreeSet<Option<&'r str>> {
        self.work.keys().map(|(_, operation)| *operation).collect()
    }
}

/// Share of a row's calls that a pool's threads have to make for their callers to be told.
const MOSTLY: f64 = 0.5;

impl<'r> Pools<'r> {
    /// Returns the work of pools that a recording's samples show.
    pub(crate) fn of(recording: &'r Recording) -> Self {
        let mut pools = Self::default();
        let mut known: HashMap<StackId, Option<Part<'r>>> = HashMap::new();
        let calls = recording.windows.iter().flat_map(|w| &w.calls);
        for (id, nth, stack) in calls.filter_map(|call| Some((call.row, call.nth, call.stack?))) {
            let Some(row) = recording.rows.get(id.0 as usize) else { continue };
            let part = *known.entry(stack).or_insert_with(|| part(&functions(recording, stack)));
            let parts = pools.rows.entry(id).or_default();
            let octave = nth.max(1).ilog2();
            *parts.all.entry(octave).or_default() += 1;
            let is_threads = match part {
                Some(Part::Work(kind, operation)) => {
                    parts.kind = parts.kind.or(Some(kind));
                    *parts.work.entry((octave, operation)).or_default() += 1;
                    true
                }
                Some(Part::HandsOver(kind)) => {
                    parts.kind = parts.kind.or(Some(kind));
                    *parts.hands_over.entry(octave).or_default() += 1;
                    true
                }
                Some(Part::Asks(kind, line, operation)) => {
                    parts.kind = parts.kind.or(Some(kind));
                    *parts.hands_over.entry(octave).or_default() += 1;
                    if let Some(line) = line {
                        let asks = pools.asks.entry((row.process, kind, operation)).or_default();
                        *asks.entry(line).or_default() += 1;
                    }
                    false
                }
                Some(Part::Awaits(kind, line)) => {
                    *pools.waits.entry((row.process, kind)).or_default().entry(line).or_default() += 1;
                    false
                }
                None => false,
            };
            let frames = if is_threads { &mut parts.frames } else { &mut parts.other_frames };
            let of_stack: BTreeSet<FrameId> =
                recording.stacks.get(stack.0 as usize).map(|s| s.frames.iter().copied().collect()).unwrap_or_default();
            of_stack.into_iter().for_each(|frame| *frames.entry(frame).or_default() += 1);
        }
        pools.rows.retain(|_, parts| parts.kind.is_some());
        pools
    }

    /// Returns the share of a row's calls that threads of a pool make for others or to take such work.
    pub(crate) fn share_of_threads(&self, row: RowId) -> f64 {
        self.rows.get(&row).map_or(0.0, |parts| parts.work_share() + parts.hand_over_share())
    }

    /// Returns the number of samples of a row in which a pool has a part.
    pub(crate) fn looks(&self, row: RowId) -> u64 {
        self.rows.get(&row).map_or(0, |parts| parts.all.values().sum())
    }

    /// Returns true if the calls of a row with this frame on their stacks are mostly those of a pool's threads.
    pub(crate) fn is_threads(&self, row: RowId, frame: FrameId) -> bool {
        let Some(parts) = self.rows.get(&row) else { return false };
        let [own, other] = [&parts.frames, &parts.other_frames].map(|f| f.get(&frame).copied().unwrap_or(0));
        own > other
    }

    /// Returns the lines that asked the pool for the calls that its threads make in a row, most often seen first, each
    /// with the number of samples.
    pub(crate) fn asked(&self, process: ProcessId, row: RowId) -> Vec<(FrameId, u64)> {
        let Some(parts) = self.rows.get(&row) else { return vec![] };
        parts.kind.map_or_else(Vec::new, |kind| self.lines(process, kind, &parts.operations()).0)
    }

    /// Returns the lines that asked for `operations`, most often seen first, each with the number of samples; true if
    /// they are those that wait for results, since no wake-up was sampled.
    fn lines(
        &self,
        process: ProcessId,
        kind: Kind,
        operations: &BTreeSet<Option<&str>>,
    ) -> (Vec<(FrameId, u64)>, bool) {
        let mut lines: BTreeMap<FrameId, u64> = BTreeMap::new();
        // Calls that hand over are those of all operations.
        let is_meant = |operation: &Option<&str>| operations.is_empty() || operations.contains(operation);
        let asks = self.asks.iter().filter(|((p, k, operation), _)| *p == process && *k == kind && is_meant(operation));
        for (line, n) in asks.flat_map(|(_, lines)| lines) {
            *lines.entry(*line).or_default() += n;
        }
        let by_waits = lines.is_empty();
        if by_waits {
            lines = self.waits.get(&(process, kind)).cloned().unwrap_or_default();
        }
        let mut lines: Vec<(FrameId, u64)> = lines.into_iter().collect();
        lines.sort_by_key(|(frame, seen)| (std::cmp::Reverse(*seen), *frame));
        (lines, by_waits)
    }

    /// Returns who asked for the calls of `rows`; `None` unless threads of a pool make most of them.
    pub(crate) fn requested(&self, recording: &Recording, rows: &[RowId]) -> Option<Requested> {
        let calls_of = |row: &RowId| recording.rows.get(row.0 as usize).map_or(0, |r| r.counts.calls);
        let process = recording.rows.get(rows.first()?.0 as usize)?.process;
        let all: u64 = rows.iter().map(calls_of).fold(0, u64::saturating_add);
        let work = |row: &RowId| self.rows.get(row).map_or(0.0, |parts| calls_of(row) as f64 * parts.work_share());
        (rows.iter().map(work).sum::<f64>() >= all as f64 * MOSTLY && all > 0).then_some(())?;
        let parts = || rows.iter().filter_map(|row| self.rows.get(row)).filter(|parts| !parts.work.is_empty());
        let kind = parts().find_map(|parts| parts.kind)?;
        let operations: BTreeSet<Option<&str>> = parts().flat_map(RowParts::operations).collect();
        let (lines, by_waits) = self.lines(process, kind, &operations);
        let mut told = Requested {
            pool: kind.name(),
            by_waits,
            operations: operations.iter().flatten().map(|name| format!("{}{name}", kinds::UV_ASKS)).collect(),
            lines,
            ..Requested::default()
        };
        for (id, parts) in self.rows.iter().filter(|(_, parts)| parts.kind == Some(kind)) {
            let Some(row) = recording.rows.get(id.0 as usize).filter(|row| row.process == process) else { continue };
            let part = |n: u64, share: f64| (n as f64 * share) as u64;
            let share = parts.hand_over_share();
            told.hand_over_calls = told.hand_over_calls.saturating_add(part(row.counts.calls, share));
            told.hand_over_ns = told.hand_over_ns.saturating_add(part(row.counts.toll_ns.unwrap_or(0), share));
            told.work_calls = told.work_calls.saturating_add(part(row.counts.calls, parts.work_share()));
        }
        Some(told)
    }
}

/// Returns who asked for the calls of `rows`; `None` unless threads of a pool make most of them.
pub fn requested(recording: &Recording, rows: &[RowId]) -> Option<Requested> {
    Pools::of(recording).requested(recording, rows)
}

/// Returns the functions on a stack, innermost first.
fn functions(recording: &Recording, stack: StackId) -> Vec<Function<'_>> {
    let frames = recording.stacks.get(stack.0 as usize).map_or(&[][..], |s| &s.frames);
    let of = |id: &FrameId| recording.frames.get(id.0 as usize).map(|frame| Function::of(*id, frame));
    frames.iter().filter_map(of).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, Frame, FrameClass, Language, Location, Row, Stack, Sysno, Window, WindowCall};

    const JAVA_WORKER: &str = "~java.util.concurrent.ThreadPoolExecutor.runWorker";

    /// Returns a recording with a row for each stack, each seen in one window. The first letter of a function tells
    /// what it is: `@` a script's own, `~` Java's, `^` of Python's module `concurrent.futures.thread`, `+` the
    /// program's own.
    fn recording(stacks: &[&[&str]]) -> Recording {
        let mut recording = Recording::default();
        for (n, names) in stacks.iter().enumerate() {
            let mut frames = Vec::new();
            for name in *names {
                frames.push(FrameId(recording.frames.len() as u32));
                let bare = name.trim_start_matches(['@', '~', '^', '+']);
                let file = match name.get(..1) {
                    Some("^") => "/usr/lib/python3.11/concurrent/futures/thread.py",
                    _ if bare == "worker" => "deps/uv/src/threadpool.c",
                    _ => "app.js",
                };
                recording.frames.push(Frame {
                    locations: vec![Location { function: bare.into(), file: Some(file.into()), line: Some(1) }],
                    language: match name.get(..1) {
                        Some("@") => Some(Language::JavaScript),
                        Some("~") => Some(Language::Java),
                        Some("^") => Some(Language::Python),
                        _ => None,
                    },
                    class: if name.starts_with(['@', '+']) { FrameClass::User } else { FrameClass::Runtime },
                    ..Frame::default()
                });
            }
            let (row, stack) = (RowId(n as u32), StackId(n as u32));
            recording.stacks.push(Stack { frames, complete: true });
            recording.rows.push(Row {
                process: ProcessId(0),
                syscall: Sysno::named("statx"),
                context: stack,
                outer: stack,
                api: None,
                api_module: None,
                user: None,
                lines: vec![],
                counts: Counts { calls: 10, toll_ns: Some(1000), ..Counts::default() },
            });
            let call = WindowCall { row, nth: 1, stack: Some(stack), ..WindowCall::default() };
            recording.windows.push(Window { process: ProcessId(0), thread: 0, row, octave: 0, calls: vec![call] });
        }
        recording
    }

    const WORK: &[&str] = &["uv__statx", "uv__fs_stat", "uv__fs_work", "worker", "start_thread"];
    const WAKE: &[&str] = &["uv_cond_signal", "uv__work_submit", "uv_fs_stat", "node::fs::Stat", "@ask", "@(script)"];

    /// Returns the lines that asked for the calls of the first stack's row, and the other figures.
    fn told(stacks: &[&[&str]]) -> Option<(Vec<String>, Requested)> {
        let recording = recording(stacks);
        let told = requested(&recording, &[RowId(0)])?;
        let line = |(frame, _): &(FrameId, u64)| recording.frame(*frame).function().to_owned();
        Some((told.lines.iter().map(line).collect(), told))
    }

    #[test]
    fn lines_that_wake_the_pool_for_an_operation_ask_for_it() {
        let other = &["uv_cond_signal", "uv__work_submit", "uv_fs_open", "node::fs::Open", "@save"];
        let reply = &["write", "uv__async_send", "worker", "start_thread"];
        let (lines, told) = told(&[WORK, WAKE, other, reply]).expect("work of the pool");
        assert_eq!((lines, told.pool), (vec!["ask".to_owned()], "libuv's pool"));
        assert_eq!((told.operations, told.work_calls), (vec!["uv_fs_stat".to_owned()], 10));
        assert_eq!((told.hand_over_calls, told.hand_over_ns), (30, 3000));
    }

    #[test]
    fn nobody_is_told_where_the_wake_up_was_not_seen_or_the_work_is_not_the_pools() {
        assert_eq!(told(&[WORK]).map(|(lines, _)| lines), Some(vec![]));
        let own: &[&str] = &["uv__statx", "uv__fs_stat", "uv__fs_work", "uv_fs_stat", "node::fs::Stat", "@ask"];
        for stacks in [&[own, WAKE][..], &[WAKE], &[]] {
            assert_eq!(told(stacks), None);
        }
        let direct = told(&[&["mkdir", "uv__fs_work", "worker"], &["futex", "uv__work_submit", "uv_fs_mkdir", "@f"]]);
        let direct = direct.map(|(lines, told)| (lines, told.operations));
        assert_eq!(direct, Some((vec!["f".to_owned()], vec!["uv_fs_mkdir".to_owned()])));
        // Of a row that mostly makes calls of another kind, nobody is told.
        let mut both = recording(&[WORK, WAKE, own, own]);
        let calls = both.windows.iter_mut().flat_map(|w| &mut w.calls);
        calls.filter(|c| c.row.0 >= 2).for_each(|c| c.row = RowId(0));
        assert_eq!(requested(&both, &[RowId(0)]), None);
    }

    #[test]
    fn executors_of_java_and_python_work_for_the_line_that_gave_them_a_task() {
        let run: &[&str] = &["fstatat", "~java.io.File.exists", "~java.util.concurrent.FutureTask.run", JAVA_WORKER];
        let takes: &[&str] = &["futex", "~java.util.concurrent.LinkedBlockingQueue.take", JAVA_WORKER];
        let gives: &[&str] = &[
            "futex",
            "~jdk.internal.misc.Unsafe.unpark",
            "~java.util.concurrent.ThreadPoolExecutor.execute",
            "@App.ask",
        ];
        let (lines, java) = told(&[run, gives, takes]).expect("work of the executor");
        assert_eq!((lines, java.hand_over_calls, java.work_calls), (vec!["App.ask".to_owned()], 20, 10));
        // A task that the giving thread runs itself wakes nobody, and a task of the program's own has its line.
        let itself: &[&str] =
            &["fstatat", "~java.io.File.exists", "~java.util.concurrent.ThreadPoolExecutor.execute", "@App.ask"];
        assert_eq!(told(&[run, itself]).map(|(lines, _)| lines), Some(vec![]));
        let own: &[&str] = &["fstatat", "~java.io.File.exists", "@App.task", JAVA_WORKER];
        assert_eq!(told(&[own, gives]), None);
        let waits: &[&str] = &["futex", "~java.util.concurrent.FutureTask.get", "@App.wait"];
        let lines = |stacks| told(stacks).map(|(lines, told)| (lines, told.by_waits));
        assert_eq!(lines(&[run, takes, waits]), Some((vec!["App.wait".to_owned()], true)));
        assert_eq!(lines(&[run, gives, waits]), Some((vec!["App.ask".to_owned()], false)));
        let run: &[&str] = &["fstatat", "^run", "^_worker", "^_bootstrap"];
        let (lines, python) = told(&[run, &["futex", "^submit", "@ask"]]).expect("work of the executor");
        assert_eq!((lines, python.pool), (vec!["ask".to_owned()], "a ThreadPoolExecutor"));
    }

    #[test]
    fn blocking_threads_of_tokio_work_for_the_programs_own_function() {
        let poll = "<tokio::runtime::blocking::task::BlockingTask<T> as core::future::future::Future>::poll";
        let run: &[&str] = &["statx", "std::fs::metadata", poll, "tokio::runtime::blocking::pool::Inner::run"];
        let gives: &[&str] = &[
            "futex",
            "parking_lot::condvar::Condvar::notify_one_slow",
            "tokio::runtime::blocking::pool::Spawner::spawn_task",
            "tokio::fs::asyncify::asyncify::{{closure}}",
            "+app::settings::{{closure}}",
        ];
        let lines = told(&[run, gives]).map(|(lines, _)| lines);
        assert_eq!(lines, Some(vec!["app::settings::{{closure}}".to_owned()]));
    }
}
