//! What windows tell, as threads write them and as the launcher looks at them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use systoll_model::Recording;
use systoll_record::inproc::InprocBackend;
use systoll_record::{Backend, Launch, Quiet};

/// By call, object and what was returned: what the arguments pointed to.
pub(crate) type Looked = BTreeMap<(String, String, Option<i64>), BTreeSet<Vec<String>>>;

/// Calls of windows about objects in a folder: what they returned, and what their arguments pointed to.
fn looked_at(recording: &Recording, folder: &str) -> Looked {
    let mut seen = Looked::new();
    for call in recording.windows.iter().flat_map(|w| &w.calls) {
        let syscall = recording.row(call.row).syscall;
        let Some(object) = call.object(syscall) else { continue };
        // Names of pipes are of the run, and so are times in what is told of files that are written to.
        if !object.starts_with(folder) {
            continue;
        }
        let data = call.data.iter().map(|d| format!("{} {:?} {} {:?}", d.arg, d.at, d.cut, d.bytes)).collect();
        let mapped = syscall.name() == Some("mmap");
        seen.entry((syscall.to_string(), object, call.result.filter(|_| !mapped))).or_default().insert(data);
    }
    seen
}

/// What windows tell of a command's objects in a folder: as threads write them, and as the launcher looks at them.
pub(crate) fn written_and_asked(command: &[&str], folder: &str) -> [Looked; 2] {
    // Of another length than threads write, all are looked at by the launcher.
    [32, 31].map(|calls| {
        let mut launch =
            Launch { command: command.iter().map(Into::into).collect(), discard_output: true, ..Launch::default() };
        launch.windows.calls = calls;
        launch.windows.allowance = Duration::from_secs(10);
        looked_at(&InprocBackend::new().run(&launch, &mut Quiet).unwrap(), folder)
    })
}
