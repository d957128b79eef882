//! Tests the names of descriptors in windows that threads write. The test has a file of its own, because a backend
//! waits for all children of its process.

mod window_data;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use window_data::written_and_asked;

#[test]
fn derived_names_equal_the_kernels() {
    let tree = tempfile::tempdir().unwrap();
    for folder in ["a/b", "a/.c/d", "e"] {
        std::fs::create_dir_all(tree.path().join(folder)).unwrap();
        std::fs::write(tree.path().join(folder).join("file"), "include").unwrap();
    }
    std::os::unix::fs::symlink("a/b", tree.path().join("link")).unwrap();
    let root = std::fs::canonicalize(tree.path()).unwrap().into_os_string().into_string().unwrap();
    // Each command must show calls about at least this many files, most of those that exist, whichever calls are in
    // windows.
    for (command, call, least) in [
        (&["find", &root, "-name", "*.h"][..], "getdents64", 4),
        (&["grep", "-r", "include", &root], "read", 1),
        (&["find", "-L", &root, "-type", "f"], "getdents64", 2),
    ] {
        let [written, _] = written_and_asked(command, &root);
        let told = written.into_keys().map(|(name, object, _)| (name, object));
        let told: BTreeSet<_> = told.filter(|(name, _)| BY_DESCRIPTOR.contains(&&**name)).collect();
        let real = by_strace(command, &root);
        assert!(told.is_subset(&real), "{command:?}: {:?}", told.difference(&real));
        let below = told.iter().filter(|(name, object)| name == call && *object != root).count();
        assert!(below >= least, "{command:?}: {told:?}");
    }
}

/// Calls whose object is the file behind their first argument, a descriptor.
const BY_DESCRIPTOR: [&str; 4] = ["read", "getdents64", "close", "fcntl"];

/// Returns a command's calls of [`BY_DESCRIPTOR`], with their objects in a folder, according to strace.
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
