//! Compares windows written by threads with windows observed by the launcher.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use systoll_model::Recording;
use systoll_record::inproc::InprocBackend;
use systoll_record::{Backend, Launch, Quiet};

/// Contents of arguments by call, object and result.
pub(crate) type WindowData = BTreeMap<(String, String, Option<i64>), BTreeSet<Vec<String>>>;

/// Returns the calls of windows about objects in a folder: their results, and the contents of their arguments.
fn looked_at(recording: &Recording, folder: &str) -> WindowData {
    let mut seen = WindowData::new();
    for call in recording.windows.iter().flat_map(|w| &w.calls) {
        let syscall = recording.row(call.row).syscall;
        let Some(object) = call.object(syscall) else { continue };
        // Only objects in the folder are compared: names of pipes differ between runs, as do times of files that are
        // written to.
        if !object.starts_with(folder) {
            continue;
        }
        let data = call.data.iter().map(|d| format!("{} {:?} {} {:?}", d.arg, d.at, d.cut, d.bytes)).collect();
        let mapped = syscall.name() == Some("mmap");
        seen.entry((syscall.to_string(), object, call.result.filter(|_| !mapped))).or_default().insert(data);
    }
    seen
}

/// Returns the windows' calls about a command's objects in a folder: as threads write them, and as the launcher
/// observes them.
pub(crate) fn written_and_asked(command: &[&str], folder: &str) -> [WindowData; 2] {
    // Threads write windows of this length only; the launcher observes those of another length.
    [32, 31].map(|calls| {
        let mut launch =
            Launch { command: command.iter().map(Into::into).collect(), discard_output: true, ..Launch::default() };
        launch.how.windows.calls = calls;
        launch.how.windows.allowance = Duration::from_secs(10);
        looked_at(&InprocBackend::new().run(&launch, &mut Quiet).unwrap(), folder)
    })
}
