//! Callers that give work to a pool of threads, whose own stacks do not lead to them.
//!
//! `uv_fs_stat` gives a request to libuv's pool and wakes a thread; that thread runs `uv__fs_stat`. The stack of the
//! wake-up names the operation and the line that asked for it, and the stack of the work names the operation alone.
//! Therefore the lines that asked for an operation are those at the wake-ups for the same operation; those of a pool that
//! names no operations are the lines at all of its wake-ups.

mod kinds;

use self::kinds::{Function, Kind, Part, part};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use systoll_model::{FrameId, ProcessId, Recording, RowId, RowTrunk, StackId, WholeStack};

/// The callers whose work a pool's threads do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requested {
    /// The pool, in words: `libuv's pool`.
    pub pool: &'static str,
    /// Functions of the pool that were asked for the work: `uv_fs_stat`. Empty if the pool runs whatever it is given.
    pub operations: Vec<String>,
    /// The lines that asked for these operations, those with the largest share first.
    pub lines: Vec<AskingLine>,
    /// True if no wake-up was sampled, so that the lines are those that wait for the pool's results.
    pub by_waits: bool,
    /// The calls at which the lines were seen, in words: `at its wake-ups`.
    pub asked_at: &'static str,
    /// Calls by which work was given to the pool and taken by its threads, of all operations.
    pub hand_over_calls: u64,
    /// Time of the hand-over calls, ns.
    pub hand_over_ns: u64,
    /// Calls that the pool's threads made for tasks, of all operations.
    pub work_calls: u64,
}

/// A line that asks a pool for work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AskingLine {
    /// The line's frame.
    pub frame: FrameId,
    /// Number of the pool's wake-ups at which the line was seen.
    pub looks: u64,
    /// Estimated share of the wake-ups, from 0 to 1.
    pub share: f64,
}

/// Number of calls of a row for which samples stand, by the part that these calls have in a pool's work.
#[derive(Debug, Default)]
struct RowParts<'r> {
    kind: Option<Kind>,
    /// Calls made for tasks, by operation.
    work: BTreeMap<Option<&'r str>, f64>,
    hands_over: f64,
    all: f64,
    looks: u64,
    /// Calls of the pool's threads whose stack has this frame.
    frames: HashMap<FrameId, f64>,
    /// All other calls whose stack has this frame.
    other_frames: HashMap<FrameId, f64>,
}

/// The samples at which a line was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    looks: u64,
    /// Number of calls for which the samples stand.
    calls: f64,
}

impl Seen {
    fn add(&mut self, looks: u64, calls: f64) {
        self.looks = self.looks.saturating_add(looks);
        self.calls += calls;
    }
}

/// The work of pools in a recording, as its samples show it.
#[derive(Debug, Default)]
pub(crate) struct Pools<'r> {
    rows: BTreeMap<RowId, RowParts<'r>>,
    /// Lines at the wake-ups.
    asks: BTreeMap<(ProcessId, Kind, Option<&'r str>), BTreeMap<FrameId, Seen>>,
    /// Lines that wait for a pool's results.
    waits: BTreeMap<(ProcessId, Kind), BTreeMap<FrameId, Seen>>,
}

/// A sampled stack of a row, with the number of calls for which it stands.
struct Sample<'r> {
    row: RowId,
    /// The stack's parts, innermost first.
    stack: [&'r [FrameId]; 2],
    calls: f64,
    /// Number of looks that met the stack.
    looks: u64,
}

impl RowParts<'_> {
    fn work_share(&self) -> f64 {
        if self.all > 0.0 { self.work.values().sum::<f64>() / self.all } else { 0.0 }
    }

    fn hand_over_share(&self) -> f64 {
        if self.all > 0.0 { self.hands_over / self.all } else { 0.0 }
    }
}

/// Share of a row's calls that a pool's threads have to make for their callers to be told.
const MOSTLY: f64 = 0.5;

impl<'r> Pools<'r> {
    /// Returns the work of pools that a recording's samples show.
    pub(crate) fn of(recording: &'r Recording) -> Self {
        let mut pools = Self::default();
        let mut known: HashMap<[*const FrameId; 2], Option<Part<'r>>> = HashMap::new();
        let samples = samples(recording, &|_| true);
        for sample in &samples {
            let addresses = sample.stack.map(<[FrameId]>::as_ptr);
            let part = *known.entry(addresses).or_insert_with(|| part(&functions(recording, sample.stack)));
            pools.note(recording, sample, part);
        }
        pools.note_creators(recording, &samples);
        pools.rows.retain(|_, parts| parts.kind.is_some());
        pools
    }

    fn note(&mut self, recording: &Recording, sample: &Sample<'r>, part: Option<Part<'r>>) {
        let Some(row) = recording.rows.get(sample.row.0 as usize) else { return };
        let parts = self.rows.entry(sample.row).or_default();
        let Sample { calls, looks, .. } = *sample;
        parts.all += calls;
        parts.looks = parts.looks.saturating_add(looks);
        let mut is_threads = false;
        let add = |lines: &mut BTreeMap<FrameId, Seen>, line| lines.entry(line).or_default().add(looks, calls);
        match part {
            Some(Part::Work(kind, operation)) => {
                parts.kind = parts.kind.or(Some(kind));
                *parts.work.entry(operation).or_default() += calls;
                is_threads = true;
            }
            Some(Part::HandsOver(kind)) => {
                parts.kind = parts.kind.or(Some(kind));
                parts.hands_over += calls;
                is_threads = true;
            }
            Some(Part::Asks(kind, line, operation)) => {
                if kind.hands_over() {
                    parts.kind = parts.kind.or(Some(kind));
                    parts.hands_over += calls;
                }
                let asks = self.asks.entry((row.process, kind, operation)).or_default();
                line.into_iter().for_each(|line| add(asks, line));
            }
            Some(Part::Awaits(kind, line)) => add(self.waits.entry((row.process, kind)).or_default(), line),
            None => {}
        }
        let frames = if is_threads { &mut parts.frames } else { &mut parts.other_frames };
        let of_stack: BTreeSet<FrameId> = sample.stack.iter().copied().flatten().copied().collect();
        of_stack.into_iter().for_each(|frame| *frames.entry(frame).or_default() += calls);
    }

    /// Notes the lines of the program that called the creators of goroutines which make calls without a line of it.
    fn note_creators(&mut self, recording: &'r Recording, samples: &[Sample<'r>]) {
        let of_goroutines = self.rows.values().filter(|parts| parts.kind == Some(Kind::Goroutine));
        let creators: BTreeSet<&str> = of_goroutines.flat_map(|parts| parts.work.keys().flatten().copied()).collect();
        if creators.is_empty() {
            return;
        }
        for sample in samples {
            let Some(row) = recording.rows.get(sample.row.0 as usize) else { continue };
            let functions = functions(recording, sample.stack);
            let Some(at) = functions.iter().position(|f| f.is_own) else { continue };
            let (inner, outer) = functions.split_at(at);
            let (Some(own), Some(creator)) = (outer.first(), inner.iter().rev().find(|f| creators.contains(f.name)))
            else {
                continue;
            };
            let asks = self.asks.entry((row.process, Kind::Goroutine, Some(creator.name))).or_default();
            asks.entry(own.frame).or_default().add(sample.looks, sample.calls);
        }
    }

    /// Returns the share of a row's calls that threads of a pool make for others or to take such work.
    pub(crate) fn share_of_threads(&self, row: RowId) -> f64 {
        self.rows.get(&row).map_or(0.0, |parts| parts.work_share() + parts.hand_over_share())
    }

    /// Returns the number of samples of a row in which a pool has a part.
    pub(crate) fn looks(&self, row: RowId) -> u64 {
        self.rows.get(&row).map_or(0, |parts| parts.looks)
    }

    /// Returns true if the calls of a row with this frame on their stacks are mostly those of a pool's threads.
    pub(crate) fn is_threads(&self, row: RowId, frame: FrameId) -> bool {
        let Some(parts) = self.rows.get(&row) else { return false };
        let [own, other] = [&parts.frames, &parts.other_frames].map(|f| f.get(&frame).copied().unwrap_or(0.0));
        own > other
    }

    /// Returns the lines that asked the pool for the calls that its threads make in a row, those with the largest share
    /// first.
    pub(crate) fn asked(&self, process: ProcessId, row: RowId) -> Vec<AskingLine> {
        let Some(parts) = self.rows.get(&row) else { return vec![] };
        let operations = parts.work.keys().copied().collect();
        parts.kind.map_or_else(Vec::new, |kind| self.lines(process, kind, &operations).0)
    }

    /// Returns the lines that asked for `operations`, those with the largest share first; true if they are those that
    /// wait for results, since no wake-up was sampled.
    fn lines(&self, process: ProcessId, kind: Kind, operations: &BTreeSet<Option<&str>>) -> (Vec<AskingLine>, bool) {
        let mut lines: BTreeMap<FrameId, Seen> = BTreeMap::new();
        // Calls that hand over are those of all operations.
        let is_named = |operation: &Option<&str>| operations.is_empty() || operations.contains(operation);
        let of_kind = || self.asks.iter().filter(|((p, k, _), _)| *p == process && *k == kind);
        // The compiler may hide the names from all callers, of which each may then have asked.
        let any_name = of_kind().any(|((_, _, operation), _)| operation.is_some());
        let is_meant = |operation: &Option<&str>| is_named(operation) || kind.names_some() && !any_name;
        for (line, seen) in of_kind().filter(|((_, _, operation), _)| is_meant(operation)).flat_map(|(_, lines)| lines)
        {
            lines.entry(*line).or_default().add(seen.looks, seen.calls);
        }
        let waiting = self.waits.get(&(process, kind));
        // Who uses a transport says more of its calls than who made it.
        let by_waits = lines.is_empty() || kind == Kind::Transport && waiting.is_some();
        if by_waits {
            lines = waiting.cloned().unwrap_or_default();
        }
        let all: f64 = lines.values().map(|seen| seen.calls).sum();
        let line = |(frame, seen): (FrameId, Seen)| AskingLine { frame, looks: seen.looks, share: seen.calls / all };
        let mut lines: Vec<AskingLine> = lines.into_iter().filter(|(_, seen)| seen.calls > 0.0).map(line).collect();
        lines.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.frame.cmp(&b.frame)));
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
        let operations: BTreeSet<Option<&str>> = parts().flat_map(|parts| parts.work.keys().copied()).collect();
        let (lines, by_waits) = self.lines(process, kind, &operations);
        if !kind.hands_over() && lines.is_empty() {
            return None;
        }
        let mut told = Requested {
            pool: kind.name(),
            by_waits,
            asked_at: kind.asked_at(by_waits),
            operations: operations.iter().flatten().map(|name| kind.operation(name)).collect(),
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
    // Few findings are about a pool's work, and a recording may have many rows.
    let is_work = |sample: &Sample<'_>| matches!(part(&functions(recording, sample.stack)), Some(Part::Work(..)));
    let of_these = |row: RowId| rows.contains(&row);
    samples(recording, &of_these).iter().any(is_work).then(|| Pools::of(recording).requested(recording, rows))?
}

/// Returns the sampled stacks of each row that `wanted` accepts: those with all frames; if there are none, those of its
/// calls in windows; if no window has one, the row's own.
fn samples<'r>(recording: &'r Recording, wanted: &dyn Fn(RowId) -> bool) -> Vec<Sample<'r>> {
    let frames = |id: StackId| recording.stacks.get(id.0 as usize).map_or(&[][..], |s| &s.frames);
    let mut octaves: BTreeMap<RowId, BTreeMap<u32, Vec<StackId>>> = BTreeMap::new();
    let is_whole = |row: RowId| !recording.whole_stacks_of(row).is_empty();
    for call in recording.windows.iter().flat_map(|w| &w.calls).filter(|call| wanted(call.row) && !is_whole(call.row)) {
        if let Some(stack) = call.stack {
            octaves.entry(call.row).or_default().entry(call.nth.max(1).ilog2()).or_default().push(stack);
        }
    }
    let whole = recording.whole_stacks.iter().filter(|whole| wanted(whole.row));
    let sample =
        |w: &WholeStack| Sample { row: w.row, stack: [frames(w.stack), &[]], calls: w.weight as f64, looks: w.looks };
    let mut samples: Vec<Sample<'_>> = whole.map(sample).collect();
    for (row, octaves) in &octaves {
        for (octave, stacks) in octaves {
            // The samples of an octave of the row's count stand for the calls of that octave.
            let calls = 2f64.powi((*octave).min(63) as i32) / stacks.len() as f64;
            samples.extend(stacks.iter().map(|id| Sample { row: *row, stack: [frames(*id), &[]], calls, looks: 1 }));
        }
    }
    let mut trunks: HashMap<RowId, Vec<&RowTrunk>> = HashMap::new();
    recording.trunks.iter().for_each(|trunk| trunks.entry(trunk.row).or_default().push(trunk));
    for (at, row) in recording.rows.iter().enumerate() {
        let id = RowId(at as u32);
        if octaves.contains_key(&id) || !wanted(id) || is_whole(id) {
            continue;
        }
        let inner = frames(row.context);
        match trunks.get(&id) {
            Some(trunks) => samples.extend(trunks.iter().map(|trunk| Sample {
                row: id,
                stack: [inner, frames(trunk.stack)],
                calls: trunk.weight as f64,
                looks: 1,
            })),
            None => {
                let calls = row.counts.calls as f64;
                samples.push(Sample { row: id, stack: [inner, frames(row.outer)], calls, looks: 1 });
            }
        }
    }
    samples
}

/// Returns the functions on a stack, innermost first.
fn functions<'r>(recording: &'r Recording, stack: [&[FrameId]; 2]) -> Vec<Function<'r>> {
    let of = |id: &FrameId| recording.frames.get(id.0 as usize).map(|frame| Function::of(*id, frame));
    stack.into_iter().flatten().filter_map(of).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::author::Author;
    use crate::code::language::CodeLanguage;
    use crate::code::owner::Owner;
    use systoll_model::{
        Counts, Frame, FrameClass, Language, Location, Process, Row, RowLine, Stack, Sysno, Window, WindowCall,
    };

    const JAVA_WORKER: &str = "~java.util.concurrent.ThreadPoolExecutor.runWorker";

    /// Returns a recording with a row for each stack, each seen in one window. The first letter of a function tells
    /// what it is: `@` a script's own, `~` Java's, `^` of Python's module `concurrent.futures.thread`, `=` and `*` of
    /// asyncio's `base_events` and `selector_events`, `?` of Node's streams of files, `+` the program's own.
    fn recording(stacks: &[&[&str]]) -> Recording {
        let mut recording = Recording::default();
        for (n, names) in stacks.iter().enumerate() {
            let mut frames = Vec::new();
            for name in *names {
                frames.push(FrameId(recording.frames.len() as u32));
                let bare = name.trim_start_matches(['@', '~', '^', '=', '*', '?', '+']);
                let file = match name.get(..1) {
                    Some("^") => "/usr/lib/python3.11/concurrent/futures/thread.py",
                    Some("=") => "/usr/lib/python3.11/asyncio/base_events.py",
                    Some("*") => "/usr/lib/python3.11/asyncio/selector_events.py",
                    Some("?") => "node:internal/fs/streams",
                    _ if bare == "worker" => "deps/uv/src/threadpool.c",
                    _ => "app.js",
                };
                recording.frames.push(Frame {
                    locations: vec![Location { function: bare.into(), file: Some(file.into()), line: Some(1) }],
                    language: match name.get(..1) {
                        Some("@") => Some(Language::JavaScript),
                        Some("~") => Some(Language::Java),
                        Some("^" | "=" | "*") => Some(Language::Python),
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
        let line = |line: &AskingLine| recording.frame(line.frame).function().to_owned();
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
        let copies: &[&str] =
            &["open", "uv__fs_open", "uv__fs_work", "uv_fs_open", "uv__fs_copyfile", "uv__fs_work", "worker"];
        let writes: &[&str] = &["write", "uv__fs_write", "uv__fs_write_all", "uv__fs_work", "worker"];
        for (work, operation) in [(copies, "uv_fs_copyfile"), (writes, "uv_fs_write")] {
            let told = told(&[work, &["futex", "uv__work_submit", operation, "@f"]]);
            assert_eq!(
                told.map(|(lines, told)| (lines, told.operations)),
                Some((vec!["f".into()], vec![operation.into()]))
            );
        }
        let stream: &[&str] = &["futex", "uv__work_submit", "uv_fs_stat", "read", "?_read", "flow"];
        assert_eq!(told(&[WORK, stream]).map(|(lines, _)| lines), Some(vec!["_read".to_owned()]));
        // The requesters of a row that mostly makes calls of another kind are unknown.
        let mut both = recording(&[WORK, WAKE, own, own]);
        let calls = both.windows.iter_mut().flat_map(|w| &mut w.calls);
        calls.filter(|c| c.row.0 >= 2).for_each(|c| c.row = RowId(0));
        assert_eq!(requested(&both, &[RowId(0)]), None);
    }

    #[test]
    fn what_threads_do_for_a_line_is_the_scripts() {
        let owner = |stacks: &[&[&str]]| {
            let mut recording = recording(stacks);
            recording.processes.push(Process { exe: "/usr/bin/node".into(), ..Process::default() });
            let asks = recording.frames.iter().position(|frame| frame.function() == "ask").expect("a line");
            recording.rows[1].lines.push(RowLine { frame: FrameId(asks as u32), looks: 1, weight: 10 });
            let Author { language, owner, .. } = Author::of(&recording, &recording.rows[0]);
            (language, owner)
        };
        assert_eq!(owner(&[WORK, WAKE]), (Some(CodeLanguage::JavaScript), Owner::Reader));
        let reads: &[&str] = &["read", "uv__inotify_read", "uv__io_poll", "uv_run", "main"];
        assert_eq!(owner(&[reads, WAKE]).1, Owner::Program("node".into()));
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
        let lines = |stacks: &[&[&str]]| told(stacks).map(|(lines, told)| (lines, told.by_waits));
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
        let lines = |stacks: &[&[&str]]| told(stacks).map(|(lines, told)| (lines.join(" "), told.operations.join(" ")));
        assert_eq!(lines(&[run, gives]), Some(("app::settings::{{closure}}".to_owned(), String::new())));
        // Of two callers, the one that asked for the operation is told; both, where it is not known.
        let link: &[&str] = &[
            "readlink",
            "tokio::fs::read_link::read_link::{{closure}}::{{closure}}",
            poll,
            "tokio::runtime::blocking::pool::Inner::run",
        ];
        let asks: &[&str] = &[
            "futex",
            "tokio::runtime::blocking::pool::Spawner::spawn_task",
            "tokio::fs::asyncify::{{closure}}",
            "tokio::fs::read_link::read_link::{{closure}}",
            "+app::links::{{closure}}",
        ];
        let one = Some(("app::links::{{closure}}".to_owned(), "tokio::fs::read_link".to_owned()));
        assert_eq!(lines(&[link, asks, gives]), one);
        let either = lines(&[link, gives]).map(|(lines, _)| lines);
        assert_eq!(either, Some("app::settings::{{closure}}".to_owned()));
        let others: &[&str] =
            &["futex", "tokio::runtime::blocking::pool::Spawner::spawn_task", "tokio::fs::read::read", "+f"];
        assert_eq!(lines(&[link, others]).map(|(lines, _)| lines), Some(String::new()));
    }

    #[test]
    fn transports_of_asyncio_work_for_the_line_that_made_them() {
        let reads: &[&str] = &["recv", "*_read_ready__data_received", "*_read_ready", "^_run", "=_run_once", "@main"];
        let makes: &[&str] = &["listen", "=create_server", "^start_server", "@serve", "^_run", "=_run_once", "@main"];
        let (lines, told) = told(&[reads, makes]).expect("work for a transport");
        assert_eq!((lines, told.pool, told.hand_over_calls), (vec!["serve".to_owned()], "asyncio's transports", 0));
        assert_eq!(told.asked_at, "where they were made");
        // What a protocol itself does has its line, which tells of a transport that was there before.
        let own: &[&str] = &["send", "@data_received", "*_read_ready", "^_run", "=_run_once"];
        let (lines, told) = self::told(&[reads, own]).expect("work for a transport");
        assert_eq!((lines, told.asked_at), (vec!["data_received".to_owned()], "where the program uses them"));
        // A coroutine that writes to it has its line, too, which tells more than that of the maker.
        let writes: &[&str] = &["send", "*write", "^write", "@handle", "^_run", "=_run_once", "@main"];
        let (lines, told) = self::told(&[reads, writes, makes]).expect("work for a transport");
        assert_eq!((lines, told.asked_at), (vec!["handle".to_owned()], "where the program uses them"));
        let wakes: &[&str] = &["recv", "*_read_from_self", "^_run", "=_run_once"];
        assert_eq!(self::told(&[own, makes]), None);
        assert_eq!(self::told(&[wakes, makes]), None);
        assert_eq!(self::told(&[reads]), None);
    }

    #[test]
    fn goroutines_of_a_library_work_for_the_line_that_called_their_creator() {
        let serves: &[&str] = &["read", "net/http.(*conn).serve", "net/http.(*Server).Serve.gowrap3", "runtime.goexit"];
        let accepts: &[&str] =
            &["accept4", "net/http.(*Server).Serve", "net/http.Serve", "+main.main.gowrap1", "runtime.goexit"];
        let (lines, goroutines) = told(&[serves, accepts]).expect("work of a goroutine");
        assert_eq!((lines, goroutines.pool), (vec!["main.main.gowrap1".to_owned()], "goroutines"));
        assert_eq!(goroutines.operations, ["net/http.(*Server).Serve"]);
        let own: &[&str] = &["read", "+main.main.func1", "runtime.goexit"];
        assert_eq!(told(&[own, accepts]), None);
    }
}
