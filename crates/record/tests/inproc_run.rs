//! Compares programs counted from inside with the same programs counted by ptrace, and tests what happens when either
//! side is killed.

#![allow(clippy::print_stderr, reason = "a test that says why it ends says it there")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};
use systoll_model::{BackendKind, Elision, Errno, Exit, InPlace, Missed, Recording, Row};
use systoll_record::inproc::InprocBackend;
use systoll_record::{Backend, Closely, HowToWatch, Launch, PtraceBackend, Quiet};

/// Time limit of a test, longer than any takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(400);

/// Returns a lock that one test holds at a time, because backends wait for all children of their process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn watch(mut backend: Box<dyn Backend>, command: &[&str]) -> Recording {
    let launch = Launch {
        command: command.iter().map(Into::into).collect(),
        discard_output: true,
        linger: Duration::from_secs(1),
        ..Launch::default()
    };
    let recording = backend.run(&launch, &mut Quiet).unwrap();
    assert_eq!(recording.check(), Ok(()));
    recording
}

/// Runs `test` in a thread, and ends the whole process if it takes too long.
fn bounded<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let _alone = alone();
    let (done, result) = mpsc::channel();
    let thread = std::thread::spawn(move || done.send(test()));
    match result.recv_timeout(LIMIT) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            eprintln!("a run took longer than {LIMIT:?}");
            std::process::exit(101);
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => std::panic::resume_unwind(thread.join().unwrap_err()),
    }
}

fn inside(command: &[&str]) -> Recording {
    let command: Vec<String> = command.iter().map(|w| (*w).to_owned()).collect();
    bounded(move || watch(Box::new(InprocBackend::new()), &command.iter().map(String::as_str).collect::<Vec<_>>()))
}

type Totals = BTreeMap<String, (u64, BTreeMap<Errno, u64>)>;

/// Returns calls and errors by system call. A signal's return has no result of its own: a tracer finds the interrupted
/// code's value in its register.
fn totals(recording: &Recording) -> Totals {
    let all = recording.by_syscall().into_iter().filter(|t| t.counts.calls > 0);
    all.map(|t| {
        let name = t.syscall.to_string();
        let errors = if name == "rt_sigreturn" { BTreeMap::new() } else { t.counts.errors };
        (name, (t.counts.calls, errors))
    })
    .collect()
}

fn same_as_by_ptrace(command: &[&str]) -> Recording {
    let ours = inside(command);
    let command: Vec<String> = command.iter().map(|w| (*w).to_owned()).collect();
    let theirs = bounded(move || {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        watch(Box::new(PtraceBackend::new()), &words)
    });
    assert_eq!(totals(&ours), totals(&theirs), "{:?}", ours.problems);
    assert_eq!(ours.header.exit, theirs.header.exit);
    assert_eq!(ours.header.backend, BackendKind::Inproc);
    ours
}

/// A compiled program, removed with its folder when dropped.
struct Program(tempfile::TempDir);

impl Program {
    fn compile(source: &Path, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("program");
        let _alone = alone();
        let cc = Command::new("cc").args(["-O1", "-w", "-o"]).arg(&out).arg(source).args(flags).status().unwrap();
        assert!(cc.success());
        Self(folder)
    }

    fn of_the_tests(name: &str, flags: &[&str]) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs").join(name);
        Self::compile(&source, flags)
    }

    fn written(source: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program.c");
        std::fs::write(&file, source).unwrap();
        Self::compile(&file, flags)
    }

    fn path(&self) -> String {
        self.0.path().join("program").to_str().unwrap().to_owned()
    }
}

fn calls<'r>(recording: &'r Recording, name: &'r str) -> impl Iterator<Item = &'r Row> {
    recording.rows.iter().filter(move |r| r.syscall.name() == Some(name))
}

fn sum(recording: &Recording, name: &str) -> u64 {
    calls(recording, name).map(|r| r.counts.calls).sum()
}

#[test]
fn plain_programs_count_as_by_ptrace_and_the_audit_agrees() {
    for command in [&["/bin/true"][..], &["ls", "/"], &["ls", "/nonexistent"], &["cat", "/etc/passwd"]] {
        let recording = same_as_by_ptrace(command);
        assert!(recording.exact(), "{command:?}: {:?}", recording.problems);
    }
}

#[test]
fn trees_of_processes_count_as_by_ptrace() {
    let script = "/bin/true; for i in 1 2 3; do /bin/echo $i; done; exec /bin/true";
    let recording = same_as_by_ptrace(&["sh", "-c", script]);
    assert!(recording.exact(), "{:?}", recording.problems);
    assert!(recording.processes.len() >= 9, "{}", recording.processes.len());
    for name in ["spawn.c", "forks.c", "mix.c"] {
        let program = Program::of_the_tests(name, &["-lpthread"]);
        let recording = same_as_by_ptrace(&[&program.path()]);
        assert!(recording.exact(), "{name}: {:?}", recording.problems);
    }
}

#[test]
fn an_exec_by_a_thread_ends_the_others_and_is_followed() {
    let program = Program::of_the_tests("execthread.c", &["-lpthread"]);
    let recording = inside(&[&program.path()]);
    assert_eq!((sum(&recording, "getppid"), sum(&recording, "execve")), (100, 2), "{:?}", recording.problems);
    assert!(recording.exact(), "{:?}", recording.problems);
}

#[test]
fn four_threads_lose_no_call() {
    let source = "#include <pthread.h>\n#include <unistd.h>\n\
        void *f(void *x) { for (int i = 0; i < 250000; i++) getppid(); return 0; }\n\
        int main(void) { pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(t + i, 0, f, 0);\n\
        for (int i = 0; i < 4; i++) pthread_join(t[i], 0); return 0; }";
    let program = Program::written(source, &["-lpthread"]);
    let recording = inside(&[&program.path()]);
    assert_eq!(sum(&recording, "getppid"), 1_000_000);
    assert!(recording.exact(), "{:?}", recording.problems);
    assert_eq!(recording.processes.first().map(|p| p.threads), Some(5));
}

/// Source of a program that makes `argv[2]` threads, forks or programs, one after the other; each calls getppid once.
const MANY: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *ask(void *p) { syscall(SYS_getppid); return p; }
int main(int argc, char **argv) {
    for (int i = 0; i < atoi(argv[2]); i++) {
        if (argv[1][0] == 't') {
            pthread_t thread;
            if (pthread_create(&thread, 0, ask, 0)) return 1;
            pthread_join(thread, 0);
            continue;
        }
        pid_t child = argv[1][0] == 'v' ? vfork() : fork();
        if (child < 0) return 1;
        if (!child) {
            if (argv[1][0] == 'e') execl(argv[0], argv[0], "forks", "1", (char *)0);
            if (argv[1][0] == 'f') syscall(SYS_getppid);
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
    return 0;
}"#;

#[test]
fn slots_last_for_any_number_of_threads_and_forks() {
    // This is more than there are slots; they are used one after the other.
    const MORE: u64 = 4_500;
    let many = Program::written(MANY, &["-pthread"]);
    let run = |how: &str, n: u64| inside(&[&many.path(), how, &n.to_string()]);
    let threads = run("threads", MORE);
    assert!(threads.exact(), "{:?}", threads.problems);
    assert_eq!((sum(&threads, "getppid"), threads.processes.len()), (MORE, 1));
    let forks = run("forks", MORE);
    assert!(forks.exact(), "{:?}", forks.problems);
    assert_eq!((sum(&forks, "getppid"), sum(&forks, "wait4")), (MORE, MORE));
    assert_eq!(forks.header.threads, MORE + 1, "each process has one");
    // The first forks are told apart: each of them has its own call.
    let own = |p: &u32| calls(&forks, "getppid").filter(|r| r.process.0 == *p).map(|r| r.counts.calls).sum::<u64>();
    assert_eq!((1..50).map(|p| own(&p)).collect::<Vec<_>>(), vec![1; 49]);
    let vforks = run("vforks", MORE);
    assert!(vforks.exact(), "{:?}", vforks.problems);
    assert_eq!((sum(&vforks, "vfork"), sum(&vforks, "wait4")), (MORE, MORE));
}

#[test]
fn programs_of_known_files_count_as_the_first_did() {
    const RUNS: u64 = 60;
    let many = Program::written(MANY, &["-pthread"]);
    let runs = same_as_by_ptrace(&[&many.path(), "execs", &RUNS.to_string()]);
    assert!(runs.exact(), "{:?}", runs.problems);
    let of = |process: u32| {
        let rows = runs.rows.iter().filter(|r| r.process.0 == process && r.counts.calls > 0);
        let mut rows: Vec<_> = rows
            .map(|r| {
                // Only contexts are compared: the frames above a context are known only if the budget allowed a window.
                let context = &runs.stacks[r.context.0 as usize].frames;
                let frames = context.iter().map(|id| &runs.frames[id.0 as usize]);
                let frames: Vec<_> = frames.map(|f| (f.module, f.address)).collect();
                (r.syscall, frames, r.counts.calls, r.counts.startup_calls)
            })
            .collect();
        rows.sort();
        rows
    };
    let begun = |p: &systoll_model::Process| p.instances == 1 && p.argv.get(1).is_some_and(|w| &**w == "forks");
    let parents =
        |p: &systoll_model::Process| p.parent.is_some_and(|p| &*runs.processes[p.0 as usize].argv[1] == "execs");
    let programs = (0..).zip(&runs.processes).filter(|(_, p)| begun(p) && parents(p));
    let mut all = programs.map(|(id, p)| (of(id), p.main_at_ns.is_some()));
    let first = all.next().expect("a program");
    assert!(first.1 && first.0.len() > 10, "{first:?}");
    for other in all {
        assert_eq!(other, first);
    }
}

#[test]
fn static_programs_are_counted_too() {
    for flags in [&["-static"][..], &["-static-pie"], &["-no-pie"]] {
        let program = Program::of_the_tests("mix.c", flags);
        same_as_by_ptrace(&[&program.path()]);
    }
}

#[test]
fn calls_by_the_32_bit_gate_make_counts_inexact() {
    let source = "#include <unistd.h>\n\
        int main(void) { int r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20) : \"memory\");\n\
        return r == getpid() ? 0 : 1; }";
    let program = Program::written(source, &[]);
    let recording = inside(&[&program.path()]);
    // A kernel without CONFIG_IA32_EMULATION ends the program by SIGSEGV.
    assert!(matches!(recording.header.exit, Some(Exit::Code(0) | Exit::Signal(11))), "{:?}", recording.header.exit);
    assert!(!recording.exact());
    let told = |p: &systoll_model::Problem| {
        p.text.contains("1 of 1 places that make system calls can't be counted") || p.text.contains("int $0x80")
    };
    assert!(recording.problems.iter().any(told), "{:?}", recording.problems);
}

#[test]
fn contexts_end_at_the_users_frame_and_name_its_callee() {
    let source = "#include <time.h>\n\
        int day(time_t t) { return localtime(&t)->tm_mday; }\n\
        int main(void) { int s = 0; for (int i = 0; i < 1000; i++) s += day(i); return s < 0; }";
    let program = Program::written(source, &["-g"]);
    let program = program.path();
    let recording = inside(&["env", "-u", "TZ", &program]);
    let row = calls(&recording, "newfstatat").max_by_key(|r| r.counts.calls).unwrap();
    if recording.header.vdso_calls.is_none() || !Path::new("/etc/localtime").exists() {
        eprintln!("no /etc/localtime: localtime asks for nothing here");
        return;
    }
    assert!(row.counts.calls >= 999, "{row:?}");
    assert_eq!(row.api.as_deref(), Some("localtime"));
    let user = row.user.map(|f| recording.frame(f).function().to_owned());
    assert!(matches!(user.as_deref(), Some("day" | "main")), "{user:?}");
}

#[test]
fn windows_hold_consecutive_calls_with_their_arguments_data() {
    let source = "#include <sys/stat.h>\n#include <unistd.h>\n\
        int main(void) { struct stat s; for (int i = 0; i < 5000; i++) { stat(\"/proc/nothing\", &s); getppid(); } }";
    let program = Program::written(source, &[]);
    let recording = inside(&[&program.path()]);
    let of = |w: &&systoll_model::Window| recording.row(w.row).counts.calls == 5_000;
    let windows: Vec<_> = recording.windows.iter().filter(of).collect();
    assert!(windows.len() >= 3, "{}", windows.len());
    for window in &windows {
        assert!(window.calls.len() <= 32);
        let names: Vec<_> = window.calls.iter().map(|c| recording.row(c.row).syscall.name()).collect();
        let alternating = names.windows(2).take_while(|two| two[1] != Some("exit_group"));
        assert!(alternating.clone().all(|two| two[0] != two[1]), "{names:?}");
        for call in window.calls.iter().filter(|c| recording.row(c.row).syscall.name() == Some("newfstatat")) {
            assert_eq!(call.result, Some(-2));
            assert_eq!(call.arg_data(1, systoll_model::Moment::Entry).unwrap().bytes, b"/proc/nothing");
        }
    }
    assert!(windows.iter().any(|w| w.calls.len() == 32));
    assert_eq!(sum(&recording, "getppid"), 5_000);
}

#[test]
fn waiting_time_is_told_apart_from_working_time() {
    let recording = inside(&["sleep", "0.3"]);
    let row = calls(&recording, "clock_nanosleep").next().unwrap();
    let waited = row.counts.waited_ns.unwrap();
    assert!(waited >= 250_000_000, "{waited}");
    assert!(row.counts.toll_ns.unwrap() < 50_000_000, "{row:?}");
    assert!(!recording.header.toll_estimated);
}

#[test]
fn a_killed_program_keeps_its_counts() {
    let source = "#include <signal.h>\n#include <unistd.h>\n\
        int main(void) { for (int i = 0; i < 12345; i++) getppid(); kill(getpid(), SIGKILL); }";
    let program = Program::written(source, &[]);
    let recording = inside(&[&program.path()]);
    assert_eq!(recording.header.exit, Some(Exit::Signal(9)));
    assert_eq!(sum(&recording, "getppid"), 12_345);
    assert_eq!(calls(&recording, "kill").map(|r| (r.counts.calls, r.counts.unreturned)).collect::<Vec<_>>(), [(0, 1)]);
}

#[test]
fn start_failures_say_why() {
    let refused = |command: &str| {
        let command = command.to_owned();
        bounded(move || {
            let launch = Launch { command: vec![command.into()], ..Launch::default() };
            InprocBackend::new().run(&launch, &mut Quiet).map(drop).unwrap_err().exit_code()
        })
    };
    assert_eq!((refused("/no/such/program"), refused("/tmp"), refused("/etc/passwd")), (127, 126, 126));
}

/// Helps [`killing_the_launcher_changes_nothing`], which runs it in a process of its own; it is no test itself.
#[test]
#[ignore = "run by another test"]
fn launcher_of_another_test() {
    let Some(script) = std::env::var_os("SYSTOLL_TEST_SCRIPT") else { return };
    let launch = Launch { command: vec!["sh".into(), script], ..Launch::default() };
    InprocBackend::new().run(&launch, &mut Quiet).unwrap();
}

const SCRIPT: &str = "for i in 1 2 3 4; do /bin/true; ls /etc | wc -l; (exit 3); echo $?; done; echo done\n";

#[test]
fn killing_the_launcher_changes_nothing() {
    bounded(|| {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, SCRIPT).unwrap();
        let unwatched = Command::new("sh").arg(&script).output().unwrap().stdout;
        for round in 0..10u64 {
            let mut launcher = launcher(&script);
            let mut output = launcher.stdout.take().unwrap();
            std::thread::sleep(Duration::from_millis(40 * round));
            launcher.kill().unwrap();
            launcher.wait().unwrap();
            let (start, mut all) = (Instant::now(), Vec::new());
            output.read_to_end(&mut all).unwrap();
            // If the launcher is killed while it is busy, threads give up after BUSY_LIMIT, which is long in
            // unoptimized code.
            assert!(start.elapsed() < Duration::from_secs(90));
            // The test harness's own lines come before the script's; if the script ended by itself, also after them.
            let said = String::from_utf8_lossy(&all);
            let wanted = String::from_utf8_lossy(&unwatched);
            assert!(said.contains(&*wanted) || !began(&said), "round {round}: {said}");
        }
    });
}

/// Returns true if the script has printed anything.
fn began(said: &str) -> bool {
    said.lines().any(|l| l.trim().parse::<u32>().is_ok())
}

fn launcher(script: &PathBuf) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "launcher_of_another_test", "--ignored", "--nocapture", "-q"])
        .env("SYSTOLL_TEST_SCRIPT", script)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn vdso_calls_are_counted_by_function_and_caller_apart_from_system_calls() {
    let source = "#include <time.h>\n#include <unistd.h>\n\
        __attribute__((noinline)) static long stamp(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_nsec; }\n\
        int main(void) { long sum = 0; for (int i = 0; i < 1000; i++) sum += stamp(); sum += time(0); return sum == 42; }";
    let program = Program::written(source, &["-g"]);
    let recording = inside(&[&program.path()]);
    let of = |function: &'static str| recording.vdso.iter().filter(move |v| &*v.function == function);
    let most = of("clock_gettime").max_by_key(|v| v.calls).expect("the vDSO has a clock");
    assert_eq!((most.calls, most.api.as_deref()), (1000, Some("clock_gettime")));
    let user = most.user.map(|f| recording.frame(f).function().to_owned());
    assert_eq!(user.as_deref(), Some("stamp"));
    assert_eq!(of("time").map(|v| v.calls).sum::<u64>(), 1);
    assert_eq!(recording.header.vdso_calls, Some(recording.vdso.iter().map(|v| v.calls).sum()));
    let asked = calls(&recording, "time").map(|r| r.counts.calls).sum::<u64>();
    assert_eq!(asked, 0, "a call of the vDSO's time was counted as a system call");
}

#[test]
fn each_process_gets_its_own_processor_time() {
    // Each process burns processor time by its own clock, so that the machine's load does not change the expected
    // value.
    let source = "#include <time.h>\n#include <unistd.h>\n#include <sys/wait.h>\n\
        static long used(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }\n\
        int main(void) { for (int i = 1; i <= 2; i++) if (!fork()) { while (used() < 60 * i) for (volatile int k = 0; k < 1000000; k++); _exit(0); }\n\
        while (wait(0) > 0); return 0; }";
    let program = Program::written(source, &[]);
    let recording = inside(&[&program.path()]);
    let mut cpu: Vec<u64> = recording.processes.iter().skip(1).map(|p| p.cpu_ns.unwrap() / 1_000_000).collect();
    cpu.sort_unstable();
    // The processor time of watching is subtracted.
    assert!(cpu.len() == 2 && (30..=90).contains(&cpu[0]) && (60..=180).contains(&cpu[1]), "{cpu:?}");
}

/// Runs a program and answers all possible calls in place.
fn elided(command: Vec<String>) -> Recording {
    elided_by(command, Elision::ALL.to_vec(), Closely::All)
}

fn elided_by(command: Vec<String>, elisions: Vec<Elision>, closely: Closely) -> Recording {
    bounded(move || {
        let command = command.iter().map(Into::into).collect();
        let how = HowToWatch { elisions, closely, ..HowToWatch::default() };
        let launch = Launch { command, linger: Duration::from_secs(1), how, ..Launch::default() };
        let recording = InprocBackend::new().run(&launch, &mut Quiet).unwrap();
        assert_eq!(recording.check(), Ok(()));
        recording
    })
}

fn elided_calls(recording: &Recording, name: &str) -> u64 {
    calls(recording, name).map(|r| r.counts.elided).sum()
}

#[test]
fn answers_in_place_equal_the_kernels() {
    let program = Program::of_the_tests("elided.c", &["-pthread"]);
    // With SYSTOLL_ROUNDS=90000, more than a million calls are answered.
    let rounds = std::env::var("SYSTOLL_ROUNDS").unwrap_or_else(|_| "4000".into());
    let recording = elided(vec![program.path(), rounds]);
    assert_eq!(recording.header.exit, Some(Exit::Code(0)), "{:?}", recording.problems);
    for name in ["rt_sigprocmask", "getpid", "gettid", "getuid", "geteuid"] {
        assert!(elided_calls(&recording, name) > 0, "no {name} was answered in place: {:?}", recording.problems);
    }
    assert_eq!(elided_calls(&recording, "getppid"), 0);
}

#[test]
fn calls_are_answered_in_place_only_on_request_and_counted_apart() {
    let source = "#include <signal.h>\n#include <unistd.h>\n\
        int main(void) { sigset_t s, o; sigemptyset(&s); for (int i = 0; i < 1000; i++) { getpid(); sigprocmask(SIG_BLOCK, &s, &o); } }";
    let program = Program::written(source, &[]);
    let plain = inside(&[&program.path()]);
    assert_eq!((sum(&plain, "getpid"), plain.total().elided), (1000, 0));
    let recording = elided(vec![program.path()]);
    for name in ["getpid", "rt_sigprocmask"] {
        let (made, answered) = (sum(&recording, name), elided_calls(&recording, name));
        assert_eq!((made + answered, made < 500), (1000, true), "{name}: {made} made");
    }
}

#[test]
fn totals_equal_those_of_a_whole_recording_without_contexts_or_windows() {
    let source = "#define _GNU_SOURCE\n#include <unistd.h>\n#include <sys/syscall.h>\n#include <sys/wait.h>\n\
        static void one(void) { getppid(); }\nstatic void other(void) { getppid(); access(\"/nowhere\", 0); }\n\
        int main(void) { for (int i = 0; i < 300; i++) { one(); other(); syscall(SYS_getuid); }\n\
        if (!fork()) { for (int i = 0; i < 100; i++) one(); execl(\"/bin/true\", \"true\", (char *)0); _exit(1); }\n\
        wait(0); return 0; }";
    let program = Program::written(source, &["-O0"]);
    let whole = inside(&[&program.path()]);
    let counted = elided_by(vec![program.path()], Vec::new(), Closely::Totals);
    assert_eq!(totals(&counted), totals(&whole));
    assert!(counted.exact() && whole.exact(), "{:?} {:?}", counted.problems, whole.problems);
    assert_eq!(sum(&counted, "getppid"), 700);
    // One row for each of the two processes; a context each for the functions in the whole recording.
    assert_eq!((calls(&counted, "getppid").count(), calls(&whole, "getppid").count()), (2, 3));
    assert!(counted.windows.is_empty() && !whole.windows.is_empty());
    assert!(counted.total().toll_ns.is_some(), "calls are timed");
}

#[test]
fn calls_by_number_are_answered_if_requested() {
    let source = "#define _GNU_SOURCE\n#include <unistd.h>\n#include <sys/syscall.h>\n\
        int main(void) { for (int i = 0; i < 1000; i++) { syscall(SYS_getpid); syscall(SYS_gettid); getppid(); getuid(); } }";
    let program = Program::written(source, &[]);
    let command = vec![program.path()];
    let recording = elided_by(command, vec![Elision::Getpid, Elision::Gettid], Closely::CountsOnly);
    for (name, answered) in [("getpid", true), ("gettid", true), ("getppid", false), ("getuid", false)] {
        let (made, elided) = (sum(&recording, name), elided_calls(&recording, name));
        assert_eq!((made + elided, elided > 900), (1000, answered), "{name}: {made} made");
        assert!(answered || elided == 0, "{name}");
    }
}

/// Returns the number of calls of a name that changed nothing and were answered in place, and of those that were not.
fn answered_of(recording: &Recording, name: &str) -> (u64, u64) {
    let of = |p: &&InPlace| p.syscall.name() == Some(name);
    let all: Vec<&InPlace> = recording.in_place.iter().filter(of).collect();
    assert_eq!(all.len(), 1, "{:?}", recording.in_place);
    assert_eq!(
        (all[0].answered, all[0].needed + all[0].missed()),
        (elided_calls(recording, name), sum(recording, name))
    );
    (all[0].answered, all[0].missed())
}

/// Runs a program with this body, and checks that nearly all of its signal mask calls were answered.
fn nearly_all_answered(body: &str, calls: u64) {
    let source = format!(
        "#define _GNU_SOURCE\n#include <signal.h>\n#include <sys/mman.h>\n#include <sys/syscall.h>\n#include <ucontext.h>\n\
         #include <unistd.h>\nstatic char pages[96 * 4096] __attribute__((aligned(4096)));\nstatic void handler(int s) {{ (void)s; }}\n\
         static sigset_t none, some;\nint main(void) {{ sigemptyset(&none); sigemptyset(&some); sigaddset(&some, SIGHUP); signal(SIGUSR1, handler);\n\
         for (int i = 0; i < 3000; i++) {{ {body} }} }}"
    );
    let program = Program::written(&source, &[]);
    let recording = elided_by(vec![program.path()], vec![Elision::RtSigprocmask], Closely::CountsOnly);
    let (answered, missed) = answered_of(&recording, "rt_sigprocmask");
    assert!(answered + missed >= calls && answered > calls * 19 / 20, "{answered} answered, {missed} not: {body}");
}

#[test]
fn masks_are_answered_at_any_address() {
    // Each mask is on a page of its own, none of them at the stack's end, as in an interpreter's frames.
    nearly_all_answered("getcontext((ucontext_t *)(pages + 4096 * (i % 90)));", 3000);
    nearly_all_answered(
        "sigprocmask(SIG_SETMASK, (sigset_t *)(pages + 4096 * (i % 7)), (sigset_t *)(pages + 4096 * (7 + i % 5)));",
        3000,
    );
}

#[test]
fn masks_are_learnt_again_after_a_signal_even_if_the_old_one_is_not_requested() {
    nearly_all_answered("if (i % 500 == 7) raise(SIGUSR1); sigprocmask(SIG_BLOCK, &some, 0);", 2990);
    nearly_all_answered("if (i % 500 == 7) raise(SIGUSR1); sigprocmask(SIG_UNBLOCK, &some, 0);", 2990);
}

#[test]
fn calls_without_effect_on_masks_or_mappings_keep_the_known_mask() {
    let held = "sigset_t *mask = (sigset_t *)(pages + 4096);";
    let more = "mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);";
    for between in [
        "syscall(SYS_getppid);",
        more,
        "mprotect(pages, 4096, PROT_READ | PROT_WRITE);",
        "madvise(pages, 4096, MADV_WILLNEED);",
    ] {
        nearly_all_answered(&format!("{held} {between} sigprocmask(SIG_BLOCK, mask, mask + 1);"), 3000);
    }
}

#[test]
fn unanswered_calls_are_counted_by_reason() {
    let source = "#define _GNU_SOURCE\n#include <signal.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        int main(void) { sigset_t none, some, old; sigemptyset(&none); sigemptyset(&some); sigaddset(&some, SIGHUP);\n\
        for (int i = 0; i < 1000; i++) { sigprocmask(SIG_BLOCK, &some, &old); sigprocmask(SIG_SETMASK, &old, 0);\n\
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &none, 0, 8); } }";
    let program = Program::written(source, &[]);
    let recording = elided(vec![program.path()]);
    let (answered, missed) = answered_of(&recording, "rt_sigprocmask");
    let all = &recording.in_place.iter().find(|p| p.syscall.name() == Some("rt_sigprocmask")).unwrap();
    assert!(all.needed >= 2000 && answered < 50 && missed >= 1000, "{all:?}");
    let unseen = all.missed.iter().find(|(why, _)| *why == Missed::Unseen).map_or(0, |(_, n)| *n);
    assert!((1000..1010).contains(&unseen), "{all:?}");
}

#[test]
fn nothing_is_answered_in_place_once_unexamined_code_may_run() {
    let source = "#include <sys/mman.h>\n#include <unistd.h>\n\
        int main(void) { for (int i = 0; i < 10; i++) getpid();\n\
        void *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
        mprotect(p, 4096, PROT_READ | PROT_EXEC); for (int i = 0; i < 1000; i++) getpid(); }";
    let program = Program::written(source, &[]);
    let recording = elided(vec![program.path()]);
    assert!(elided_calls(&recording, "getpid") < 10, "{:?}", recording.total());
    assert!(sum(&recording, "getpid") >= 1000);
}
