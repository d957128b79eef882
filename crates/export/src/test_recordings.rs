//! Recordings for tests.

use systoll_model::{Counts, Process, ProcessId, Recording, Row, Stack, Sysno};

/// Returns a recording of one process with so many calls.
pub(crate) fn recording_of(calls: &[(&str, u64)]) -> Recording {
    let mut recording = Recording { stacks: vec![Stack::default()], ..Recording::default() };
    recording.header.wall_ns = 1_000;
    recording.processes.push(Process { exe: "/bin/app".into(), cpu_ns: Some(5), ..Process::default() });
    for (name, calls) in calls {
        let counts = Counts { calls: *calls, toll_ns: Some(100 * calls), ..Counts::default() };
        recording.rows.push(Row::new(ProcessId(0), Sysno::from_name(name).unwrap(), counts));
    }
    recording
}
