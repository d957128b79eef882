//! Compares whole stacks with gdb's, frame by frame, at every system call with a known caller.

#![expect(clippy::print_stdout, reason = "how many of how many is what it is run for")]

use crate::common::*;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Calls that the programs in tests/programs/names make, by number and by gdb's name. Left out are calls that gdb
/// makes a program make, and calls of other threads.
const CALLS: &[(u64, &str)] = &[
    (110, "getppid"),
    (124, "getsid"),
    (102, "getuid"),
    (104, "getgid"),
    (108, "getegid"),
    (121, "getpgid"),
    (14, "rt_sigprocmask"),
    (100, "times"),
    (140, "getpriority"),
    (146, "sched_get_priority_max"),
    (147, "sched_get_priority_min"),
    (95, "umask"),
    (63, "uname"),
    (79, "getcwd"),
    (120, "getresgid"),
    (118, "getresuid"),
    (257, "openat"),
    (0, "read"),
    (1, "write"),
    (3, "close"),
    (262, "newfstatat"),
    (9, "mmap"),
    (231, "exit_group"),
];

/// Script for gdb that prints the number and the return addresses of each call that the first thread makes once its
/// input has ended.
const SCRIPT: &str = r#"
import gdb
for setting in ("pagination off", "confirm off", "backtrace past-main on", "backtrace past-entry on", "debuginfod enabled off"):
    gdb.execute("set " + setting)
gdb.execute("handle SIGUSR1 nostop noprint pass")
gdb.execute("catch syscall " + CALLS)
gdb.execute("run < /dev/null > /dev/null")
while gdb.selected_thread() and gdb.selected_thread().is_valid():
    if gdb.selected_thread().num == 1 and int(gdb.parse_and_eval("(long)$rax")) == -38:
        with open(f"/proc/{gdb.selected_inferior().pid}/maps") as f:
            code = [[int(a, 16) for a in line.split()[0].split("-")] for line in f if line.split()[1][2] == "x"]
        stack, frame = [], gdb.newest_frame()
        # Behind the function that a coroutine returns to, gdb goes on into its data.
        while frame and len(stack) < 256 and any(a <= frame.pc() < b for a, b in code):
            # Functions that jumped to the next are no frames on the stack; gdb guesses them.
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                stack.append(frame.pc())
            frame = frame.older()
        print("STACK", int(gdb.parse_and_eval("(long)$orig_rax")), *stack)
    gdb.execute("continue")
"#;

/// Returns the stacks that gdb finds in `exe`; `None` if gdb is not installed.
fn by_gdb(bench: &Bench, exe: &Path) -> Option<Vec<(u64, Vec<u64>)>> {
    let mut probe = Command::new("gdb");
    bench.run("gdb", {
        probe.arg("--version").stdout(Stdio::null());
        probe
    })?;
    let names: Vec<_> = CALLS.iter().map(|(_, name)| *name).collect();
    let script = bench.file("stacks.py", &format!("CALLS = {:?}\n{SCRIPT}", names.join(" ")));
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx", "-x"]).arg(script).arg(exe).env_remove("TZ").env_remove("DEBUGINFOD_URLS");
    let out = gdb.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let stack = |line: &str| {
        let mut words = line.strip_prefix("STACK ")?.split(' ').map(|w| w.parse().unwrap());
        Some((words.next()?, words.collect()))
    };
    Some(text.lines().filter_map(stack).collect())
}

/// Returns the stacks that this crate finds in `exe`. Address randomization is off, as under gdb, so that the
/// addresses are equal.
fn by_us(exe: &Path) -> Vec<(u64, Vec<u64>, bool)> {
    let run = Stopped::start_by(Command::new("setarch").arg("-R").arg(exe)).finish();
    let asked = |nr| CALLS.iter().any(|(n, _)| *n == nr);
    run.calls.iter().filter(|c| asked(c.nr)).map(|c| (c.nr, c.ips.clone(), c.complete)).collect()
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/names").canonicalize().unwrap()
}

/// Builds a source as a program that waits until its input ends before it begins.
fn build(bench: &Bench, compiler: &str, flags: &[&str], out: &str) -> Option<PathBuf> {
    let sources = sources();
    if compiler != "rustc" {
        let file = if compiler == "g++" { "calls.cpp" } else { "calls.c" };
        let text = format!(
            "#define main watched\n#include \"{}\"\n#undef main\nint main(void) {{ wait_for_us(); return watched(); }}",
            sources.join(file).display()
        );
        let flags = [flags, &["-pthread", "-w", "-D_GNU_SOURCE"]].concat();
        return bench.compile(compiler, &flags, &text, out);
    }
    let text = format!(
        "mod calls {{ include!({:?}); pub fn go() {{ main() }} }}\n\
         fn main() {{ std::io::Read::read_to_end(&mut std::io::stdin(), &mut Vec::new()).unwrap(); calls::go() }}",
        sources.join("calls.rs")
    );
    let (source, exe) = (bench.file(&format!("{out}.rs"), &text), bench.dir.path().join(out));
    let mut command = Command::new("rustc");
    command
        .args(["--edition=2024", "-Awarnings", "-g", "-o"])
        .arg(&exe)
        .args(flags)
        .arg(source)
        .current_dir(bench.dir.path());
    bench.run("rustc", command).map(|()| exe)
}

#[test]
fn stacks_are_gdbs_frame_by_frame() {
    let bench = Bench::new();
    // Where address randomization can't be turned off (in some containers), addresses differ from gdb's.
    if !Command::new("setarch").args(["-R", "true"]).status().is_ok_and(|s| s.success()) {
        return skip("setarch -R is not possible");
    }
    let flavours: &[(&str, &[&str])] = &[
        ("gcc", &["-O0"]),
        ("gcc", &["-O2", "-fomit-frame-pointer", "-fno-plt"]),
        ("gcc", &["-O3", "-fno-omit-frame-pointer"]),
        ("gcc", &["-O2", "-static"]),
        ("gcc", &["-Os", "-static-pie", "-s"]),
        ("g++", &["-O0", "-std=c++20"]),
        ("g++", &["-O2", "-std=c++20", "-s"]),
        ("rustc", &["-O"]),
        ("rustc", &[]),
    ];
    let (mut same, mut all, mut complete_ones, mut other) = (0, 0, 0, String::new());
    for (n, (compiler, flags)) in flavours.iter().enumerate() {
        let Some(exe) = build(&bench, compiler, flags, &format!("prog{n}")) else { continue };
        let Some(expected) = by_gdb(&bench, &exe) else { return };
        // A gdb older than the compiler may not understand the program; for C it must.
        if *compiler == "rustc" && expected.len() <= 20 {
            skip(&format!("{compiler} {flags:?}: this gdb can't follow it ({} calls seen)", expected.len()));
            continue;
        }
        assert!(expected.len() > 20, "{compiler} {flags:?}: gdb has seen {} calls", expected.len());
        // This crate's stacks begin when the program was released, gdb's at the program's start.
        let mut expected: VecDeque<_> = expected.into();
        let ours = by_us(&exe);
        expected.drain(..expected.len().saturating_sub(ours.len()));
        let numbers = |stacks: &mut dyn Iterator<Item = u64>| stacks.collect::<Vec<_>>();
        let (mine, theirs) = (numbers(&mut ours.iter().map(|o| o.0)), numbers(&mut expected.iter().map(|e| e.0)));
        assert_eq!(mine, theirs, "{compiler} {flags:?}: the program does not run the same way twice");
        for ((nr, ips, complete), (_, stack)) in ours.into_iter().zip(expected) {
            all += 1;
            complete_ones += usize::from(complete);
            if ips.get(1..) == stack.get(1..) {
                same += 1;
            } else {
                other +=
                    &format!("{compiler} {flags:?}: call {nr}, complete {complete}\nours {ips:x?}\ngdb  {stack:x?}\n");
            }
        }
    }
    println!("{same} of {all} stacks are gdb's, frame by frame; {complete_ones} reach their roots\n{other}");
    assert!(same * 100 >= all * 99, "{same} of {all}\n{other}");
    // Recursion deeper than the limit of unwinding occurs in at most one call of each program.
    assert!(complete_ones * 100 >= all * 95, "{complete_ones} of {all}");
}
