//! Turns a trace that was read to its end into a recording.

use crate::gaps::Computed;
use crate::trace::Trace;
use std::sync::Arc;
use systoll_model::{BackendKind, Header, LongCall, Problem, ProblemKind, Recording, RowId, name_objects};

/// Returns the recording of a trace.
pub(crate) fn recording(mut trace: Trace, seed: u64) -> Recording {
    trace.family.finish(&mut trace.table, trace.clock.now);
    let late = trace.clock.late_by();
    let now = trace.clock.now.saturating_sub(late);
    for image in &mut trace.table.images {
        image.start_ns = image.start_ns.saturating_sub(late);
        image.end_ns = image.end_ns.saturating_sub(late);
    }
    let command = command(&trace);
    let computed = trace.gaps.computed();
    let problems = problems(&trace, &computed);
    let windows_opened = trace.windows.opened;
    let mut windows = trace.windows.finish();
    for call in windows.iter_mut().flat_map(|window| &mut window.calls) {
        call.entry_ns = call.entry_ns.saturating_sub(late);
    }
    let started_unix = trace.clock.started_unix();
    let (exit, threads) = (trace.family.exit, trace.family.seen);
    let mut longest: Vec<_> = trace.longest.into_iter().map(|long| long.0).collect();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    let longest = longest.into_iter().map(|long| LongCall {
        row: RowId(long.row),
        ns: long.ns,
        at_ns: long.at_ns.saturating_sub(late),
        thread: Arc::from(if long.tid == 0 { String::new() } else { long.tid.to_string() }),
        startup: false,
    });
    let mut wait_spans = trace.waits.waits();
    wait_spans.spans.iter_mut().for_each(|span| span.begin_ns = span.begin_ns.saturating_sub(late));
    let header = Header {
        version: env!("CARGO_PKG_VERSION").into(),
        command,
        backend: BackendKind::Import,
        machine: trace.machine,
        started_unix,
        exit,
        wall_ns: now,
        own_cpu_most_ns: if let Computed::About(ns) = computed { Some(ns) } else { None },
        toll_estimated: true,
        threads,
        seed,
        windows_opened,
        ..Header::default()
    };
    let threads = trace.table.threads();
    let mut recording = Recording {
        header,
        processes: trace.table.images,
        modules: trace.frames.modules,
        frames: trace.frames.frames,
        stacks: trace.frames.stacks,
        rows: trace.table.rows,
        threads,
        windows,
        ledgers: trace.ledger.ledgers(),
        trunks: Vec::new(),
        longest: longest.collect(),
        wait_spans,
        problems,
        ..Recording::default()
    };
    name_objects(&mut recording);
    recording
}

/// Returns the command's words; none if the trace does not tell them.
fn command(trace: &Trace) -> Vec<String> {
    let is_told = !trace.notes.only_summed_up || trace.table.images.len() == 1;
    trace.table.images.first().filter(|_| is_told).map_or_else(Vec::new, |image| {
        if image.argv.is_empty() && !image.exe.is_empty() {
            vec![image.exe.to_string()]
        } else {
            image.argv.iter().map(|word| word.to_string()).collect()
        }
    })
}

/// Returns what weakens the trace's figures.
fn problems(trace: &Trace, computed: &Computed) -> Vec<Problem> {
    let mut problems = trace.notes.problems(!trace.frames.frames.is_empty());
    if *computed == Computed::Disturbed {
        problems.push(Problem::new(
            ProblemKind::Partial,
            "other programs kept the processors busy while this was traced: the program's processor time is unknown",
        ));
    }
    if trace.table.images_folded() {
        problems.push(Problem::new(ProblemKind::Bounded, "processes beyond the first 96 are reported by program"));
    }
    if trace.table.rows_folded || trace.frames.bounded {
        problems.push(Problem::new(ProblemKind::Bounded, "callers beyond a bound are reported as one"));
    }
    problems
}
