//! The processes to which signals come all the time.

use crate::collections::hash::{Map, Set};
use crate::collections::sums::Sums;
use systoll_model::{Recording, Row, WindowCall};

/// Calls that send a signal, with the receiver in their first argument and the signal in the second.
const SENDS: [&str; 3] = ["kill", "rt_sigqueueinfo", "tgkill"];
/// Least number of signals, sent by one row or handled by one process, for them to come all the time.
const OFTEN: u64 = 100;

/// Returns the processes that get signals from others all the time. A signal is a message then: it keeps the handler
/// away to block it, and what the process writes may be what the sender waits for.
pub(super) fn signalled(recording: &Recording) -> Set<u32> {
    let sends = |row: &Row| row.counts.calls >= OFTEN && row.syscall.name().is_some_and(|name| SENDS.contains(&name));
    let rows: Vec<bool> = recording.rows.iter().map(sends).collect();
    let mut signalled = Set::default();
    if recording.processes.len() < 2 || !rows.contains(&true) {
        return signalled;
    }
    let mut processes: Map<u64, Vec<u32>> = Map::default();
    for (at, process) in (0u32..).zip(&recording.processes) {
        processes.entry(process.pid.into()).or_default().push(at);
    }
    for window in &recording.windows {
        let is_sent = |call: &&WindowCall| {
            rows.get(call.row.0 as usize) == Some(&true) && call.result == Some(0) && call.args[1] as u32 != 0
        };
        for call in window.calls.iter().filter(is_sent) {
            let receivers = processes.get(&call.args[0]).into_iter().flatten();
            signalled.extend(receivers.filter(|at| **at != window.process.0));
        }
    }
    signalled
}

/// Returns the processes whose signal handlers returned at least [`OFTEN`] times: a mask may keep a handler from data that
/// the program is changing.
pub(super) fn handling(recording: &Recording) -> Set<u32> {
    let rows = recording.rows.iter().filter(|row| row.syscall.name() == Some("rt_sigreturn"));
    let returns: Map<u32, u64> = Sums::of(rows.map(|row| (row.process.0, row.counts.calls)));
    returns.into_iter().filter_map(|(process, calls)| (calls >= OFTEN).then_some(process)).collect()
}
