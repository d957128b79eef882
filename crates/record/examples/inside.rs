//! Counts a command from inside, and with -2 also by ptrace: `cargo run -r --example inside -- [-2] ls /`.

#![allow(clippy::print_stderr, reason = "an example prints")]

use std::collections::BTreeMap;
use systoll_model::{BackendKind, Errno, Recording};
use systoll_record::{Backend, Launch, PtraceBackend, Quiet, backend};

type Table = BTreeMap<String, (u64, BTreeMap<Errno, u64>)>;

fn table(recording: &Recording) -> Table {
    recording
        .by_syscall()
        .into_iter()
        .map(|t| (t.syscall.to_string(), (t.counts.calls, t.counts.errors)))
        .filter(|(_, (calls, _))| *calls > 0)
        .collect()
}

fn main() {
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    let beside = words.first().is_some_and(|w| w == "-2");
    if beside {
        words.remove(0);
    }
    let launch = Launch { command: words, ..Launch::default() };
    let recording = match backend(BackendKind::Inproc).run(&launch, &mut Quiet) {
        Ok(recording) => recording,
        Err(e) => return eprintln!("{e}"),
    };
    for problem in &recording.problems {
        eprintln!("  {:?}: {problem}", problem.kind);
    }
    if let Err(why) = recording.check() {
        eprintln!("BAD {why}");
    }
    let ours = table(&recording);
    eprintln!(
        "{} calls, {} rows, {} processes, vdso {:?}, {:?}, exact {}, {:.1} ms",
        recording.calls(),
        recording.rows.len(),
        recording.processes.len(),
        recording.header.vdso_calls,
        recording.header.exit,
        recording.exact(),
        recording.header.wall_ns as f64 / 1e6,
    );
    if !beside {
        for total in recording.by_syscall() {
            let c = &total.counts;
            eprintln!(
                "{:>9} {:>6} {:>4} {:>9} ns {:>9?} waited  {}",
                c.calls,
                c.failed(),
                c.unreturned,
                c.toll_ns.unwrap_or(0) / c.calls.max(1),
                c.waited_ns,
                total.syscall
            );
        }
        let calls: usize = recording.windows.iter().map(|w| w.calls.len()).sum();
        eprintln!(
            "{} windows of {calls} calls, {:?} refused",
            recording.windows.len(),
            recording.header.windows_refused
        );
        for window in recording.windows.iter().filter(|_| std::env::var_os("WINDOWS").is_some()) {
            eprintln!("window of {} octave {}", recording.row(window.row).syscall, window.octave);
            for c in &window.calls {
                let text: Vec<_> =
                    c.data.iter().map(|d| String::from_utf8_lossy(&d.bytes).escape_debug().to_string()).collect();
                eprintln!(
                    "   {} nth {} {:?} {} ns {:?} {:?}",
                    recording.row(c.row).syscall,
                    c.nth,
                    c.result,
                    c.elapsed_ns,
                    c.fd,
                    text
                );
            }
        }
        for row in recording.rows.iter().filter(|_| std::env::var_os("ROWS").is_some()) {
            let frames: Vec<_> = recording.row_frames(row).map(|f| f.function().to_owned()).collect();
            eprintln!("{:>7} {} {:?} {}", row.counts.calls, row.syscall, row.api, frames.join(" < "));
        }
        return;
    }
    let theirs = match PtraceBackend::new().run(&launch, &mut Quiet) {
        Ok(recording) => table(&recording),
        Err(e) => return eprintln!("{e}"),
    };
    for name in ours.keys().chain(theirs.keys()).collect::<std::collections::BTreeSet<_>>() {
        let (a, b) = (ours.get(name), theirs.get(name));
        if a != b {
            eprintln!("DIFFERENT {name}: inside {a:?}, ptrace {b:?}");
        }
    }
    eprintln!("{}", if ours == theirs { "equal" } else { "unequal" });
}
