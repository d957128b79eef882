//! Tests that a trace's machine is known if the trace shows it, and that its calls are read by it.

use systoll_import::Import;
use systoll_model::{Machine, Recording};

fn read(text: &str) -> Recording {
    let mut import = Import::new(1);
    import.read("trace", text.as_bytes()).expect("a trace");
    import.finish().expect("a recording")
}

fn names(recording: &Recording) -> Vec<String> {
    recording.rows.iter().map(|row| row.syscall.to_string()).collect()
}

#[test]
fn strace_shows_the_machine_by_what_programs_do() {
    let of = |line: &str| read(&format!("getpid() = 7\n{line}\ngetpid() = 7\n")).header.machine;
    let opens = |folder| format!(r#"openat(AT_FDCWD, "/lib/{folder}/libc.so.6", O_RDONLY|O_CLOEXEC) = 3"#);
    assert_eq!(of(&opens("aarch64-linux-gnu")), Some(Machine::Aarch64));
    assert_eq!(of(&opens("x86_64-linux-gnu")), Some(Machine::X86_64));
    assert_eq!(of(&opens("aarch64-linux-gnu").replace("= 3", "= -1 ENOENT (No such file or directory)")), None);
    assert_eq!(of(r#"uname({sysname="Linux", nodename="n", machine="aarch64", ...}) = 0"#), Some(Machine::Aarch64));
    assert_eq!(of("arch_prctl(ARCH_SET_FS, 0x7f40c0f98740) = 0"), Some(Machine::X86_64));
    assert_eq!(of("getppid() = 1"), None);
}

#[test]
fn perf_numbers_calls_by_the_machine_that_its_header_names() {
    let events = "\
        ls 4882 [001] 12.000001: raw_syscalls:sys_enter: NR 56 (ffffffffffffff9c, 7f, 4000, 0, 0, 0)\n\
        ls 4882 [001] 12.000002: raw_syscalls:sys_exit: NR 56 = 3\n\
        ls 4882 [001] 12.000003: raw_syscalls:sys_enter: NR 57 (3, 0, 0, 0, 0, 0)\n\
        ls 4882 [001] 12.000004: raw_syscalls:sys_exit: NR 57 = 0\n";
    let arm = read(&format!("# ========\n# captured on    : Sat Nov 28\n# arch : aarch64\n# ========\n#\n{events}"));
    assert_eq!((names(&arm), arm.header.machine), (vec!["openat".into(), "close".into()], Some(Machine::Aarch64)));
    // O_DIRECTORY has another bit there.
    let flags: Vec<u64> = arm.windows.iter().flat_map(|w| &w.calls).map(|call| call.args[2]).collect();
    assert_eq!(flags.first(), Some(&0x1_0000), "{flags:x?}");
    let unknown = read(events);
    assert_eq!((names(&unknown), unknown.header.machine), (vec!["clone".into(), "fork".into()], None));
}
