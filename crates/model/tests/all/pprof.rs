//! Reads a recording's file with the real `go tool pprof`, and reads back the files that pprof
//! writes.

use crate::common::{program, skip};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use systoll_model::{Errno, ProblemKind, Recording, RowId, RowTrunk, Stack, StackId, Sysno};

/// A folder of this test with a recording in it, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, rec: &Recording) -> Self {
        let dir = std::env::temp_dir().join(format!("systoll-pprof-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary folder");
        let file = std::fs::File::create(dir.join("rec.pb.gz")).expect("create");
        rec.write(file).expect("write");
        Self(dir)
    }

    /// Returns the output of `go tool pprof` with `args`. Without Go, says so and returns `None`.
    fn pprof(&self, args: &[&str]) -> Option<String> {
        let installed = Path::new("/usr/local/go/bin/go");
        let go = if installed.exists() { installed } else { Path::new("go") };
        let mut command = Command::new(go);
        command.args(["tool", "pprof"]).args(args).arg("rec.pb.gz").current_dir(&self.0);
        command.env("PPROF_TMPDIR", &self.0).env("GOTOOLCHAIN", "local").env("GOFLAGS", "");
        if let Some(cache) = own_cache() {
            command.env("GOCACHE", cache.join("build")).env("GOPATH", cache.join("path"));
        }
        let output = match command.output() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                skip("no go in /usr/local/go/bin or PATH");
                return None;
            }
            other => other.unwrap_or_else(|e| panic!("go tool pprof: {e}")),
        };
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "pprof {args:?}: {stderr}");
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Returns a cache folder for a user without a home; it stays, because building pprof takes half a
/// minute. Go builds pprof at its first use, into the user's cache.
fn own_cache() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    if home.is_some_and(|cache| std::fs::create_dir_all(&cache).is_ok()) {
        return None;
    }
    let user = std::fs::metadata("/proc/self").map_or(0, |m| m.uid());
    Some(std::env::temp_dir().join(format!("systoll-test-go-{user}")))
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If the folder can't be removed, it stays among the system's temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a run of three system calls, one with an unknown number, under different APIs.
fn recording() -> Recording {
    let mut rec = program::recording(5, 3);
    rec.rows[3].syscall = Sysno(14);
    rec.rows[3].api = Some("sigsetjmp".into());
    rec.rows[4].syscall = Sysno(500);
    rec.rows[4].api = None;
    rec.rows[4].counts.waited_ns = Some(12);
    rec.rows[4].counts.bytes = 99;
    rec
}

/// Returns the flat figures in the output of `-top`, by function, in whole units.
fn flat(top: &str) -> BTreeMap<String, u64> {
    let lines = top.lines().skip_while(|l| !l.trim_start().starts_with("flat")).skip(1);
    lines
        .filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let digits: String = words.first()?.chars().take_while(char::is_ascii_digit).collect();
            Some((words.get(5..)?.join(" "), digits.parse().ok()?))
        })
        .filter(|(_, n)| *n > 0)
        .collect()
}

#[test]
fn top_shows_system_calls_as_leaves_with_the_same_totals() {
    let rec = recording();
    let folder = Folder::new("top", &rec);
    let total = |f: fn(&systoll_model::Counts) -> u64| {
        let rows = rec.by_syscall().into_iter();
        rows.map(|t| (t.syscall.to_string(), f(&t.counts))).filter(|(_, n)| *n > 0).collect::<BTreeMap<_, _>>()
    };
    for (index, unit, wanted) in [
        ("calls", "count", total(|c| c.calls)),
        ("errors", "count", total(|c| c.failed())),
        ("bytes", "bytes", total(|c| c.bytes)),
        ("waited", "nanoseconds", total(|c| c.waited_ns.unwrap_or(0))),
        ("toll", "nanoseconds", total(|c| c.toll_ns.unwrap_or(0))),
    ] {
        let (sample_index, unit) = (format!("-sample_index={index}"), format!("-unit={unit}"));
        let Some(top) = folder.pprof(&["-top", "-nodefraction=0", &sample_index, &unit]) else { return };
        assert_eq!(flat(&top), wanted, "{index}\n{top}");
        assert!(top.contains(&format!("Type: {index}")), "{top}");
    }
    let top = folder.pprof(&["-top", "-nodefraction=0"]).expect("go ran a moment ago");
    assert!(top.contains("Type: toll"), "toll is the default\n{top}");
    assert!(top.contains("log_line_1") && top.contains("localtime"), "{top}");
}

#[test]
fn rows_of_several_whole_stacks_are_shared_out_and_add_up() {
    let mut rec = recording();
    let trunk = |stack, weight| RowTrunk { row: RowId(0), stack: StackId(stack), weight, looks: 0 };
    // The third stack is only known to differ from the others.
    rec.stacks.push(Stack::default());
    rec.trunks = vec![trunk(1, 1), trunk(3, 2), trunk(rec.stacks.len() as u32 - 1, 4)];
    let folder = Folder::new("shared", &rec);
    let Some(traces) = folder.pprof(&["-traces", "-sample_index=calls"]) else { return };
    let of_row_0: Vec<&str> = traces.split("-----------").filter(|t| t.contains("log_line_0")).collect();
    let leaf = |t: &&str| t.lines().find_map(|l| l.trim().strip_suffix("newfstatat")?.trim().parse().ok());
    assert_eq!(of_row_0.iter().filter_map(leaf).sum::<u64>(), rec.rows[0].counts.calls, "{traces}");
    assert_eq!(of_row_0.iter().filter_map(leaf).collect::<Vec<u64>>(), [142, 286, 572], "{traces}");
    assert_eq!(of_row_0.iter().filter(|t| t.contains("main")).count(), 2, "{traces}");
}

#[test]
fn raw_shows_chains_labels_and_mappings() {
    let folder = Folder::new("raw", &recording());
    let Some(raw) = folder.pprof(&["-raw"]) else { return };
    for wanted in [
        "calls/count errors/count bytes/bytes waited/nanoseconds toll/nanoseconds[dflt]",
        "syscall:[newfstatat]",
        "process:[app]",
        "pid:[4711]",
        "/lib/libc.so.6 c0ffee",
        "[kernel]",
        "log_line_0 log.c:1",
        "syscall_0x1f4",
        "Comment: crossing ns: 97.25 98.5",
    ] {
        assert!(raw.contains(wanted), "no {wanted}\n{raw}");
    }
    // The chain is newfstatat, localtime, the user's frame and main, without libc's inner frames.
    let traces = folder.pprof(&["-traces", "-sample_index=calls"]).expect("go ran a moment ago");
    let names: Vec<_> = traces.split_whitespace().filter(|w| !w.contains(':')).collect();
    let chain = ["newfstatat", "localtime", "log_line_0", "main"];
    assert!(names.windows(4).any(|w| w == chain), "{traces}");
    assert_eq!(traces.matches("__tz_convert").count(), 1, "only where there is no API\n{traces}");
}

#[test]
fn a_file_that_pprof_rewrote_opens_as_counts_and_prices() {
    let rec = recording();
    let folder = Folder::new("proto", &rec);
    if folder.pprof(&["-proto", "-output=out.pb.gz"]).is_none() {
        return;
    }
    let file = std::fs::File::open(folder.0.join("out.pb.gz")).expect("pprof wrote a file");
    let read = Recording::read(file).expect("it opens");
    assert_eq!(read.problems.iter().map(|p| p.kind).collect::<Vec<_>>(), [ProblemKind::Stripped]);
    assert!(!read.exact());
    let figures = |rec: &Recording| {
        let rows = rec.rows.iter().map(|r| {
            let user = r.user.map(|f| rec.frame(f).location().cloned());
            (r.syscall, r.api.clone(), r.counts.calls, r.counts.failed(), r.counts.bytes, r.counts.toll_ns, user)
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|r| (r.2, r.0));
        rows
    };
    let mut wanted = figures(&rec);
    // Without an API the profile does not tell which frame was the user's.
    wanted.iter_mut().filter(|r| r.1.is_none()).for_each(|r| r.6 = None);
    assert_eq!(figures(&read), wanted);
    assert_eq!(read.prices.crossing_ns(), 97.25);
    assert_eq!(read.header.wall_ns, rec.header.wall_ns);
    assert_eq!(read.rows[0].counts.errors.keys().collect::<Vec<_>>(), [&Errno::UNKNOWN]);
    assert_eq!(read.process(read.rows[0].process).name(), "app");
    assert_eq!(read.module(read.rows[0].api_module.expect("an API's module")).file_name(), "libc.so.6");
    // Written again by systoll, the recording is whole, and still names the lost data.
    let mut again = Vec::new();
    read.write(&mut again).expect("write");
    assert!(Recording::read(again.as_slice()).expect("read") == read);
}
