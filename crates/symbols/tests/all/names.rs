//! Tests the names found in programs as they are usually built.

use crate::common::*;

const LOCALTIME: &str = r#"
#include <time.h>
#include <sys/types.h>
#include <unistd.h>
__attribute__((noinline)) int stamp(time_t t) {
    struct tm *tm = localtime(&t);
    return tm->tm_hour;
}
int main(void) {
    wait_for_us();
    volatile int sum = 0;
    for (int i = 0; i < 3; i++)
        sum += stamp(1000000000 + i);
    sum += getppid() > 0;
    return 0;
}
"#;

#[test]
fn localtime_and_its_line_at_every_level_of_optimisation() {
    let bench = Bench::new();
    let flavours: &[&[&str]] = &[
        &["-O0", "-g"],
        &["-O1", "-g"],
        &["-O2", "-g"],
        &["-O3", "-g"],
        &["-O2", "-g", "-fno-plt"],
        &["-O2", "-g", "-fno-pie", "-no-pie"],
        &["-O2", "-g", "-fno-pie", "-no-pie", "-fno-plt"],
        &["-O2", "-g", "-Wl,-z,now"],
        &["-O2", "-g", "-Wl,-z,lazy", "-fcf-protection=none"],
        &["-O2", "-g", "-fomit-frame-pointer", "-fcf-protection=full"],
        &["-O2", "-g", "-static"],
        &["-O0", "-g", "-static"],
        &["-O2", "-g", "-static-pie"],
    ];
    for flags in flavours {
        let Some(exe) = bench.compile("gcc", flags, LOCALTIME, "prog") else { return };
        let mut run = run(&exe);
        let what = format!("{flags:?}: {:?}", run.functions(SYS_NEWFSTATAT));
        assert_eq!(run.api(SYS_NEWFSTATAT).as_deref(), Some("localtime"), "{what}");
        let user = run.user(SYS_NEWFSTATAT);
        assert_eq!((user.function(), user.location().unwrap().line), ("stamp", Some(6)), "{what}");
        assert!(user.location().unwrap().file.as_deref().unwrap().ends_with("prog.c"), "{what}");
        assert_eq!(run.api(SYS_GETPPID).as_deref(), Some("getppid"), "{what}");
        assert_eq!(run.user(SYS_GETPPID).function(), "main", "{what}");
        assert!(run.call(SYS_NEWFSTATAT).complete && run.reaches_main(SYS_NEWFSTATAT), "{what}");
        assert!(!run.reaches_main(SYS_EXIT_GROUP), "{what}: main has returned");
    }
}

/// Returns gdb's names for the frames of a stopped process, without inlined functions.
fn backtrace(pid: i32) -> Vec<String> {
    let out = std::process::Command::new("gdb")
        .args(["-batch", "-nx", "-iex", "set debuginfod enabled off", "-p", &pid.to_string(), "-ex", "bt"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let frames = text.lines().filter(|l| l.starts_with('#'));
    let name = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let at = if words.get(2) == Some(&"in") { 3 } else { 1 };
        words.get(at).unwrap_or(&"").to_string()
    };
    frames.map(name).collect()
}

#[test]
fn stacks_are_those_of_gdb() {
    let bench = Bench::new();
    let mut gdb = std::process::Command::new("gdb");
    gdb.arg("--version").stdout(std::process::Stdio::null());
    if bench.run("gdb", gdb).is_none() {
        return;
    }
    let source = "#include <unistd.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
        __attribute__((noinline)) int three(int n) { volatile char b[n]; b[0] = 1; char c; int r = getchar(); return r + b[0]; }\n\
        __attribute__((noinline)) int compare(const void *a, const void *b) { return three(30) * 0 + *(int *)a - *(int *)b; }\n\
        __attribute__((noinline)) int two(int n) { int v[] = {3, 1, 2}; qsort(v, 3, sizeof *v, compare); return v[0] + n; }\n\
        int main(int argc, char **argv) { return two(argc) > 1000; }";
    for (compiler, flags) in [
        ("gcc", &["-O0"][..]),
        ("gcc", &["-O2"]),
        ("gcc", &["-O2", "-fomit-frame-pointer", "-static"]),
        ("gcc", &["-O3", "-fno-plt", "-static-pie"]),
        ("musl-gcc", &["-O2"]),
        ("musl-gcc", &["-O2", "-static"]),
    ] {
        let Some(exe) = bench.compile(compiler, flags, source, "prog") else { continue };
        let child = std::process::Command::new(&exe).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let mut child = Killed(child);
        // musl reads by readv (19) if its buffer is empty.
        let waits = |s: &str| s.starts_with("0 0x0 ") || s.starts_with("19 0x0 ");
        while !std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|s| waits(&s)) {
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(child.try_wait().unwrap().is_none(), "it ended early");
        }
        let expected = backtrace(pid);
        let (ours, complete) = crate::common::stack_of(pid);
        let what = format!("{compiler} {flags:?}\nours {ours:?}\ngdb  {expected:?}");
        let users = |names: &[String]| -> Vec<String> {
            names.iter().filter(|n| ["three", "compare", "two", "main"].contains(&n.as_str())).cloned().collect()
        };
        assert_eq!(users(&ours), ["three", "compare", "two", "main"], "{what}");
        assert!(complete, "{what}");
        if compiler == "gcc" {
            // gdb's stacks end at main.
            assert_eq!(users(&ours), users(&expected), "{what}");
            let main = ours.iter().position(|n| n == "main").unwrap();
            assert_eq!(main + 1, expected.len(), "{what}");
        }
    }
}

/// A child process, killed when this is dropped.
struct Killed(std::process::Child);

impl Killed {
    fn try_wait(&mut self) -> std::io::Result<Option<std::process::ExitStatus>> {
        self.0.try_wait()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
