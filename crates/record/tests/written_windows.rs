//! Windows that threads write by themselves, beside those that the launcher looks at.

use std::collections::BTreeMap;
use std::time::Duration;
use systoll_model::Recording;
use systoll_record::inproc::InprocBackend;
use systoll_record::{Backend, Launch, Quiet};

/// The first call of windows about each object: what it returned, and what its arguments pointed to.
fn looked_at(recording: &Recording) -> BTreeMap<(String, String), (Option<i64>, Vec<String>)> {
    let mut windows: Vec<_> = recording.windows.iter().collect();
    windows.sort_by_key(|w| w.calls.first().map(|c| c.entry_ns));
    let mut seen = BTreeMap::new();
    for call in windows.into_iter().flat_map(|w| &w.calls) {
        let syscall = recording.row(call.row).syscall;
        let Some(object) = call.object(syscall) else { continue };
        // Names of pipes are of the run, and so are times in what is told of files that are written to.
        if !object.starts_with("/etc") {
            continue;
        }
        let data = call.data.iter().map(|d| format!("{} {:?} {} {:?}", d.arg, d.at, d.cut, d.bytes)).collect();
        let mapped = syscall.name() == Some("mmap");
        seen.entry((syscall.to_string(), object)).or_insert((call.result.filter(|_| !mapped), data));
    }
    seen
}

#[test]
fn windows_that_threads_write_are_those_that_the_launcher_looks_at() {
    let run = |calls: usize| {
        let mut launch = Launch {
            command: ["cat", "/etc/passwd", "/etc/of/nobody", "/etc/group"].map(Into::into).to_vec(),
            discard_output: true,
            ..Launch::default()
        };
        // Of another length than threads write, all are looked at by the launcher.
        launch.windows.calls = calls;
        launch.windows.allowance = Duration::from_secs(10);
        InprocBackend::new().run(&launch, &mut Quiet).unwrap()
    };
    let (written, asked) = (looked_at(&run(32)), looked_at(&run(31)));
    assert_eq!(written, asked);
    let has = |name: &str, object: &str| written.contains_key(&(name.to_owned(), object.to_owned()));
    assert!(has("openat", "/etc/of/nobody") && has("read", "/etc/group") && has("close", "/etc/passwd"), "{written:?}");
}
