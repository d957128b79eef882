//! Callers that give work to libuv's pool of threads, whose own stacks do not lead to them.
//!
//! `uv_fs_stat` gives a request to the pool and wakes a thread; that thread runs `uv__fs_stat`. The stack of the
//! wake-up names the operation and the line that asked for it, and the stack of the work names the operation alone.
//! Therefore the lines that asked for an operation are those at the wake-ups for the same operation.

use std::collections::BTreeMap;
use systoll_model::{FrameClass, FrameId, Recording, Row, RowId, StackId};

/// Function of libuv that gives a request to the pool.
const SUBMITS: &str = "uv__work_submit";
/// Function of libuv that runs a request about files in a thread of the pool.
const WORKS: &str = "uv__fs_work";
/// Names of the functions that ask for an operation, and of those that run it, before the operation's own name.
const ASKS: &str = "uv_fs_";
const RUNS: &str = "uv__fs_";
/// Operations that a thread of the pool runs by calling the C library's function of the same name.
const DIRECT: &[&str] = &[
    "access",
    "chmod",
    "chown",
    "fchmod",
    "fchown",
    "fsync",
    "ftruncate",
    "lchown",
    "link",
    "mkdir",
    "rename",
    "rmdir",
    "symlink",
    "unlink",
];
/// The function that each thread of the pool runs, and its file.
const THREAD: (&str, &str) = ("worker", "/threadpool.c");

/// The callers whose work a pool's threads do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Names of the operations, as libuv has them: `stat`.
    pub operations: Vec<String>,
    /// The lines that asked for these operations, most often seen first, each with the number of samples.
    pub lines: Vec<(FrameId, u64)>,
    /// Calls by which work was given to the pool and taken by its threads, of all operations.
    pub hand_over_calls: u64,
    /// Their time, ns.
    pub hand_over_ns: u64,
}

/// A function on a stack, which may be inlined into others.
struct Function<'r> {
    name: &'r str,
    file: &'r str,
    frame: FrameId,
}

/// Returns who asked for the calls of `rows`; `None` unless each sampled stack of theirs is that of a thread of libuv's
/// pool at work.
pub fn requested(recording: &Recording, rows: &[RowId]) -> Option<Requested> {
    let process = recording.rows.get(rows.first()?.0 as usize)?.process;
    let mut told = Requested::default();
    for (row, stack) in samples(recording).filter(|(row, _)| rows.contains(row)) {
        let functions = functions(recording, stack);
        let operation = operation(&functions).filter(|_| of_pool(&functions))?;
        let known = told.operations.iter().any(|o| o == operation);
        if !known && recording.rows.get(row.0 as usize)?.process == process {
            told.operations.push(operation.to_owned());
        }
    }
    (!told.operations.is_empty()).then_some(())?;
    told.operations.sort_unstable();
    let mut lines: BTreeMap<FrameId, u64> = BTreeMap::new();
    // By row: whether all of its sampled stacks are those of the pool's own calls.
    let mut is_pools: BTreeMap<RowId, bool> = BTreeMap::new();
    let of_process = |row: &RowId| recording.rows.get(row.0 as usize).is_some_and(|r: &Row| r.process == process);
    for (row, stack) in samples(recording).filter(|(row, _)| of_process(row)) {
        let functions = functions(recording, stack);
        let submits = functions.iter().position(|f| f.name == SUBMITS);
        let hands_over = submits.is_some() || of_pool(&functions) && !functions.iter().any(|f| f.name == WORKS);
        let all = is_pools.entry(row).or_insert(true);
        *all &= hands_over;
        let Some(asks) = submits.and_then(|at| functions.get(at + 1..)) else { continue };
        let asked = asks.first().and_then(|f| f.name.strip_prefix(ASKS));
        if asked.is_some_and(|asked| told.operations.iter().any(|o| o == asked))
            && let Some(line) = asks.iter().find(|f| is_users_line(recording, f.frame))
        {
            *lines.entry(line.frame).or_default() += 1;
        }
    }
    told.lines = lines.into_iter().collect();
    told.lines.sort_by_key(|(frame, seen)| (std::cmp::Reverse(*seen), *frame));
    for row in is_pools.into_iter().filter(|(_, all)| *all).filter_map(|(row, _)| recording.rows.get(row.0 as usize)) {
        told.hand_over_calls = told.hand_over_calls.saturating_add(row.counts.calls);
        told.hand_over_ns = told.hand_over_ns.saturating_add(row.counts.toll_ns.unwrap_or(0));
    }
    Some(told)
}

/// Returns true if all calls of `row` are seen to be those of a thread of libuv's pool at work.
pub(crate) fn is_work(recording: &Recording, row: &Row) -> bool {
    recording.row_frames(row).flat_map(|frame| &frame.locations).any(|place| &*place.function == WORKS)
}

/// Returns each call of which a whole stack was sampled.
fn samples(recording: &Recording) -> impl Iterator<Item = (RowId, StackId)> {
    recording.windows.iter().flat_map(|w| &w.calls).filter_map(|call| Some((call.row, call.stack?)))
}

/// Returns the functions on a stack, innermost first.
fn functions(recording: &Recording, stack: StackId) -> Vec<Function<'_>> {
    let frames = recording.stacks.get(stack.0 as usize).map_or(&[][..], |s| &s.frames);
    let of_frame = |id: &FrameId| {
        let frame = *id;
        let locations = recording.frames.get(id.0 as usize).map_or(&[][..], |f| &f.locations);
        locations.iter().map(move |l| Function {
            name: &l.function,
            file: l.file.as_deref().unwrap_or_default(),
            frame,
        })
    };
    frames.iter().flat_map(of_frame).collect()
}

/// Returns the operation that a thread of the pool runs.
fn operation<'f>(functions: &'f [Function<'_>]) -> Option<&'f str> {
    let works = functions.iter().position(|f| f.name == WORKS)?;
    let name = functions.get(works.checked_sub(1)?)?.name;
    name.strip_prefix(RUNS).or_else(|| DIRECT.contains(&name).then_some(name))
}

/// Returns true if a stack is that of a thread of the pool.
fn of_pool(functions: &[Function<'_>]) -> bool {
    functions.iter().any(|f| f.name == THREAD.0 && f.file.ends_with(THREAD.1))
}

/// Returns true for a line of a script that is the user's own.
fn is_users_line(recording: &Recording, frame: FrameId) -> bool {
    let frame = recording.frames.get(frame.0 as usize);
    frame.is_some_and(|f| f.language.is_some() && f.class == FrameClass::User)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, Frame, Language, Location, ProcessId, Stack, Sysno, Window, WindowCall};

    /// Returns a recording with a row for each stack, each seen in one window. A function that begins with `@` is a
    /// script's.
    fn recording(stacks: &[&[&str]]) -> Recording {
        let mut recording = Recording::default();
        for (n, names) in stacks.iter().enumerate() {
            let mut frames = Vec::new();
            for name in *names {
                frames.push(FrameId(recording.frames.len() as u32));
                let script = name.strip_prefix('@');
                let file = Some(if *name == "worker" { "deps/uv/src/threadpool.c".into() } else { "app.js".into() });
                recording.frames.push(Frame {
                    locations: vec![Location { function: script.unwrap_or(name).into(), file, line: Some(1) }],
                    language: script.map(|_| Language::JavaScript),
                    class: if script.is_some() { FrameClass::User } else { FrameClass::Runtime },
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
            let call = WindowCall { row, stack: Some(stack), ..WindowCall::default() };
            recording.windows.push(Window { process: ProcessId(0), thread: 0, row, octave: 0, calls: vec![call] });
        }
        recording
    }

    const WORK: &[&str] = &["uv__statx", "uv__fs_stat", "uv__fs_work", "worker", "start_thread"];
    const WAKE: &[&str] = &["uv_cond_signal", "uv__work_submit", "uv_fs_stat", "node::fs::Stat", "@ask", "@(script)"];

    #[test]
    fn lines_that_wake_the_pool_for_an_operation_ask_for_it() {
        let other = &["uv_cond_signal", "uv__work_submit", "uv_fs_open", "node::fs::Open", "@save"];
        let reply = &["write", "uv__async_send", "worker", "start_thread"];
        let recording = recording(&[WORK, WAKE, other, reply]);
        let told = requested(&recording, &[RowId(0)]).expect("work of the pool");
        let line = told.lines.first().and_then(|(frame, _)| recording.frames.get(frame.0 as usize));
        assert_eq!((told.lines.len(), line.map(Frame::function)), (1, Some("ask")));
        assert_eq!((told.operations, told.hand_over_calls, told.hand_over_ns), (vec!["stat".to_owned()], 30, 3000));
    }

    #[test]
    fn nobody_is_told_where_the_wake_up_was_not_seen_or_the_work_is_not_the_pools() {
        assert_eq!(requested(&recording(&[WORK]), &[RowId(0)]).map(|r| r.lines), Some(vec![]));
        let own: &[&str] = &["uv__statx", "uv__fs_stat", "uv__fs_work", "uv_fs_stat", "node::fs::Stat", "@ask"];
        let none = Requested::default;
        for rows in [&[own, WAKE][..], &[WAKE], &[]] {
            assert_eq!(requested(&recording(rows), &[RowId(0)]).unwrap_or_else(none), none());
        }
        let all = recording(&[WORK, WAKE]);
        let [work, wake] = [0, 1].map(|n| all.rows.get(n).is_some_and(|row| is_work(&all, row)));
        assert!(work && !wake);
        let direct =
            recording(&[&["mkdir", "uv__fs_work", "worker"], &["futex", "uv__work_submit", "uv_fs_mkdir", "@f"]]);
        let told = requested(&direct, &[RowId(0)]).map(|told| (told.operations, told.lines.len()));
        assert_eq!(told, Some((vec!["mkdir".to_owned()], 1)));
        // A row that makes calls of both kinds is told by neither.
        let mut both = recording(&[WORK, WAKE, own]);
        both.windows
            .iter_mut()
            .flat_map(|w| &mut w.calls)
            .for_each(|c| c.row = if c.row.0 == 2 { RowId(0) } else { c.row });
        assert_eq!(requested(&both, &[RowId(0)]), None);
    }
}
