//! Windows that threads write by themselves, beside those that the launcher looks at.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::Duration;
use systoll_model::Recording;
use systoll_record::inproc::InprocBackend;
use systoll_record::{Backend, Launch, Quiet};

/// By call and object: what it returned, and what its arguments pointed to.
type Looked = BTreeMap<(String, String), (Option<i64>, Vec<String>)>;

/// The first call of windows about each object in a folder: what it returned, and what its arguments pointed to.
fn looked_at(recording: &Recording, folder: &str) -> Looked {
    let mut windows: Vec<_> = recording.windows.iter().collect();
    windows.sort_by_key(|w| w.calls.first().map(|c| c.entry_ns));
    let mut seen = BTreeMap::new();
    for call in windows.into_iter().flat_map(|w| &w.calls) {
        let syscall = recording.row(call.row).syscall;
        let Some(object) = call.object(syscall) else { continue };
        // Names of pipes are of the run, and so are times in what is told of files that are written to.
        if !object.starts_with(folder) {
            continue;
        }
        let data = call.data.iter().map(|d| format!("{} {:?} {} {:?}", d.arg, d.at, d.cut, d.bytes)).collect();
        let mapped = syscall.name() == Some("mmap");
        seen.entry((syscall.to_string(), object)).or_insert((call.result.filter(|_| !mapped), data));
    }
    seen
}

/// What windows tell of a command's objects in a folder: as threads write them, and as the launcher looks at them.
fn written_and_asked(command: &[&str], folder: &str) -> [Looked; 2] {
    // Of another length than threads write, all are looked at by the launcher.
    [32, 31].map(|calls| {
        let mut launch =
            Launch { command: command.iter().map(Into::into).collect(), discard_output: true, ..Launch::default() };
        launch.windows.calls = calls;
        launch.windows.allowance = Duration::from_secs(10);
        looked_at(&InprocBackend::new().run(&launch, &mut Quiet).unwrap(), folder)
    })
}

#[test]
fn windows_that_threads_write_are_those_that_the_launcher_looks_at() {
    let [written, asked] = written_and_asked(&["cat", "/etc/passwd", "/etc/of/nobody", "/etc/group"], "/etc");
    assert_eq!(written, asked);
    let has = |name: &str, object: &str| written.contains_key(&(name.to_owned(), object.to_owned()));
    assert!(has("openat", "/etc/of/nobody") && has("read", "/etc/group") && has("close", "/etc/passwd"), "{written:?}");
}

#[test]
fn names_that_follow_from_others_are_those_that_the_kernel_tells() {
    let tree = tempfile::tempdir().unwrap();
    for folder in ["a/b", "a/.c/d", "e"] {
        std::fs::create_dir_all(tree.path().join(folder)).unwrap();
        std::fs::write(tree.path().join(folder).join("file"), "include").unwrap();
    }
    std::os::unix::fs::symlink("a/b", tree.path().join("link")).unwrap();
    let root = std::fs::canonicalize(tree.path()).unwrap().into_os_string().into_string().unwrap();
    for (command, call, object) in [
        (&["find", &root, "-name", "*.h"][..], "getdents64", "a/.c/d"),
        (&["grep", "-r", "include", &root], "read", "a/b/file"),
        (&["find", "-L", &root, "-type", "f"], "getdents64", "a/b"),
    ] {
        let [written, _] = written_and_asked(command, &root);
        let told: BTreeSet<_> = written.into_keys().filter(|(name, _)| BY_DESCRIPTOR.contains(&&**name)).collect();
        let real = by_strace(command, &root);
        assert!(told.is_subset(&real), "{command:?}: {:?}", told.difference(&real));
        assert!(told.contains(&(call.to_owned(), format!("{root}/{object}"))), "{command:?}: {told:?}");
    }
}

/// Calls whose object is what their first argument, a descriptor, is behind.
const BY_DESCRIPTOR: [&str; 4] = ["read", "getdents64", "close", "fcntl"];

/// Such calls of a command, and their objects in a folder, as strace has the kernel tell them.
fn by_strace(command: &[&str], folder: &str) -> BTreeSet<(String, String)> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let only = format!("trace={}", BY_DESCRIPTOR.join(","));
    let mut strace = Command::new("strace");
    strace.args(["-y", "-e", &only, "-o"]).arg(log.path()).arg("--").args(command).stdout(Stdio::null());
    assert!(strace.status().unwrap().success());
    let log = std::fs::read_to_string(log.path()).unwrap();
    let call = |line: &str| {
        let (name, arguments) = line.split_once('(')?;
        let object = arguments.split_once('<')?.1.split_once('>')?.0;
        object.starts_with(folder).then(|| (name.to_owned(), object.to_owned()))
    };
    log.lines().filter_map(call).collect()
}
