//! Collects the calls that windows saw, by thread and in the order of time; no two overlap or are
//! the same call.

use std::collections::BTreeMap;
use systoll_model::{ProcessId, Recording, Sysno, WindowCall};

/// The calls of one thread that windows saw.
pub(crate) struct Lane<'a> {
    pub(crate) process: ProcessId,
    /// The thread's ordinal within the recording.
    pub(crate) thread: u32,
    program: &'a str,
    /// The calls in the order of time; never empty.
    pub(crate) calls: Vec<SeenCall<'a>>,
}

/// A call that a window saw.
pub(crate) struct SeenCall<'a> {
    pub(crate) call: &'a WindowCall,
    pub(crate) syscall: Sysno,
    /// Time of the entry since the run's start, ns.
    pub(crate) start_ns: u64,
    /// Time of the return since the run's start, ns; never after the next call's entry.
    pub(crate) end_ns: u64,
}

impl Lane<'_> {
    /// Returns the lane's name.
    pub(crate) fn name(&self) -> String {
        format!("{}, thread {}", self.program, self.thread)
    }
}

/// Returns a lane for each thread with a call in a window.
pub(crate) fn lanes(rec: &Recording) -> Vec<Lane<'_>> {
    let mut threads: BTreeMap<(ProcessId, u32), Vec<SeenCall<'_>>> = BTreeMap::new();
    for window in &rec.windows {
        let calls = threads.entry((window.process, window.thread)).or_default();
        calls.extend(window.calls.iter().map(|call| SeenCall {
            call,
            syscall: rec.row(call.row).syscall,
            start_ns: call.entry_ns,
            end_ns: call.entry_ns.saturating_add(call.elapsed_ns),
        }));
    }
    let lanes = threads.into_iter().map(|((process, thread), calls)| {
        let program = crate::judged_recording::short(rec.process(process).name());
        Lane { process, thread, program, calls: in_order(calls) }
    });
    lanes.filter(|lane| !lane.calls.is_empty()).collect()
}

fn in_order(mut calls: Vec<SeenCall<'_>>) -> Vec<SeenCall<'_>> {
    calls.sort_by_key(|c| (c.start_ns, c.call.row, c.call.nth));
    // Two windows may hold the same call.
    calls.dedup_by_key(|c| (c.start_ns, c.call.row, c.call.nth));
    let mut before = u64::MAX;
    for call in calls.iter_mut().rev() {
        call.end_ns = call.end_ns.min(before);
        before = call.start_ns;
    }
    calls
}
