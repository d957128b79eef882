//! Tests names and stacks of whole programs: languages, libraries, threads, stripped and deleted files.

use crate::common::*;
use std::process::Command;
use std::sync::Arc;
use systoll_model::{FrameClass, Location};
use systoll_symbols::{FrameAnswers, FrameQuestion, KeptAnswers, LineAnswers, NameAnswer, NameAnswers, NameQuestion};

#[test]
fn stripped_programs_keep_the_api_and_get_functions_by_address() {
    let source = "#include <time.h>\n\
        __attribute__((noinline)) int stamp(time_t t) { return localtime(&t)->tm_hour; }\n\
        int main(void) { wait_for_us(); return stamp(1) > 99; }";
    let bench = Bench::new();
    for flags in [&["-O2"][..], &["-O0"], &["-O2", "-fno-plt", "-no-pie"]] {
        let Some(exe) = bench.compile("gcc", flags, source, "prog") else { return };
        let mut plain = run(&exe);
        bench.strip(&exe);
        let mut run = run(&exe);
        assert_eq!(run.api(SYS_NEWFSTATAT).as_deref(), Some("localtime"), "{flags:?}");
        let function = run.user(SYS_NEWFSTATAT).function().to_owned();
        let start = function.strip_prefix("prog+0x").and_then(|a| u64::from_str_radix(a, 16).ok());
        assert!(start.is_some(), "{function}");
        assert_ne!(plain.user(SYS_NEWFSTATAT).function(), function);
        assert!(run.reaches_main(SYS_NEWFSTATAT), "{flags:?}");
        assert!(!run.reaches_main(SYS_EXIT_GROUP), "{flags:?}");
        let frames = run.call(SYS_NEWFSTATAT).stack.clone();
        assert!(run.symbols.resolve(&frames).problems.iter().any(|p| p.text.contains("stripped")));
    }
}

#[test]
fn separate_debug_files_are_found_by_their_link() {
    let source = "#include <time.h>\n\
        __attribute__((noinline)) int stamp(time_t t) { return localtime(&t)->tm_hour; }\n\
        int main(void) { wait_for_us(); return stamp(1) > 99; }";
    let bench = Bench::new();
    let Some(exe) = bench.compile("gcc", &["-O2", "-g"], source, "prog") else { return };
    for args in [
        ["--only-keep-debug", "prog", "prog.debug"],
        ["--strip-all", "prog", "prog"],
        ["--add-gnu-debuglink=prog.debug", "prog", "prog"],
    ] {
        let mut command = Command::new("objcopy");
        command.args(args).current_dir(bench.dir.path());
        if bench.run("objcopy", command).is_none() {
            return;
        }
    }
    let user = run(&exe).user(SYS_NEWFSTATAT);
    assert_eq!((user.function(), user.location().unwrap().line), ("stamp", Some(2)));
}

/// Answers kept from an earlier run; they consist of lines only.
#[derive(Debug)]
struct KeptLines(LineAnswers);

impl KeptAnswers for KeptLines {
    fn frame(&self, _: FrameQuestion) -> Option<&[u8]> {
        None
    }

    fn all_frames(&self) -> FrameAnswers {
        FrameAnswers::new()
    }

    fn answer(&self, _: &NameQuestion) -> Option<NameAnswer> {
        None
    }

    fn lines(&self, address: u64) -> Option<Arc<[Location]>> {
        self.0.get(&address).cloned()
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn all(&self) -> NameAnswers {
        NameAnswers::default()
    }

    fn all_lines(&self) -> LineAnswers {
        self.0.clone()
    }
}

#[test]
fn lines_that_an_earlier_run_has_kept_are_not_looked_up_again() {
    let source = "#include <time.h>\n\
        __attribute__((noinline)) int stamp(time_t t) { return localtime(&t)->tm_hour; }\n\
        int main(void) { wait_for_us(); return stamp(1) > 99; }";
    let bench = Bench::new();
    let Some(exe) = bench.compile("gcc", &["-O2", "-g"], source, "prog") else { return };
    let (mut first, mut second) = (run(&exe), run(&exe));
    let module = |run: &Run| run.call(SYS_NEWFSTATAT).context.last().unwrap().module.unwrap();
    let told = first.user(SYS_NEWFSTATAT);
    let mut lines = first.symbols.asked_lines(module(&first));
    assert_eq!(lines.values().map(|l| l[0].line).collect::<Vec<_>>(), [Some(2)]);
    // A line number that the file does not have shows that the answer was the kept one.
    lines.values_mut().for_each(|l| *l = [Location { line: Some(77), ..l[0].clone() }].into());
    let key = module(&second);
    second.symbols.know_names(key, Arc::new(KeptLines(lines.clone())));
    let kept = second.user(SYS_NEWFSTATAT);
    assert_eq!((kept.function(), kept.location().unwrap().line), ("stamp", Some(77)));
    assert_eq!((told.function(), told.location().unwrap().line), ("stamp", Some(2)));
    // Kept lines do not count as new; others are looked up and kept as well.
    assert_eq!(second.symbols.asked_lines(key), lines);
    let stack = second.call(SYS_NEWFSTATAT).stack.clone();
    assert!(second.frames(&stack).iter().any(|f| f.function() == "main" && f.location().unwrap().line == Some(3)));
    assert_eq!(second.symbols.asked_lines(key).len(), lines.len() + 2);
}

#[test]
fn lines_of_files_that_are_missing_are_not_kept() {
    let source = "int main(void) { wait_for_us();\n return getppid() < 0; }";
    let bench = Bench::new();
    let Some(exe) = bench.compile("gcc", &["-O2", "-g", "-gsplit-dwarf"], source, "prog") else { return };
    let mut run = run(&exe);
    let frame = *run.call(SYS_GETPPID).context.last().unwrap();
    assert_eq!(run.user(SYS_GETPPID).location().unwrap().line, Some(2));
    assert!(run.symbols.asked_lines(frame.module.unwrap()).is_empty());
}

#[test]
fn inlined_functions_come_innermost_first() {
    let source = "#include <time.h>\n\
        static inline __attribute__((always_inline)) int inner(time_t t) {\n return localtime(&t)->tm_hour; }\n\
        static inline __attribute__((always_inline)) int middle(time_t t) {\n return inner(t) + 1; }\n\
        int main(void) { wait_for_us();\n return middle(1) > 99; }";
    let bench = Bench::new();
    let Some(exe) = bench.compile("gcc", &["-O2", "-g"], source, "prog") else { return };
    let user = run(&exe).user(SYS_NEWFSTATAT);
    let seen: Vec<_> = user.locations.iter().map(|l| (&*l.function, l.line)).collect();
    assert_eq!(seen, [("inner", Some(3)), ("middle", Some(5)), ("main", Some(7))]);
    assert_eq!(user.callee.as_deref(), Some("localtime"));
}

#[test]
fn functions_without_any_table_are_told_by_where_they_are_called() {
    let source = "#include <stdlib.h>\nint compare(const void *a, const void *b) { getppid(); return *(int *)a - *(int *)b; }\n\
        int main(void) { wait_for_us(); int v[] = {4, 2, 3, 1, 5}; qsort(v, 5, sizeof *v, compare); return v[0] != 1; }";
    let bench = Bench::new();
    let Some(exe) = bench.compile("musl-gcc", &["-O2"], source, "prog") else { return };
    let mut run = run(&exe);
    let stack = run.call(SYS_GETPPID).stack.clone();
    let frames = run.frames(&stack);
    // The C library's frames between its `qsort` and the user's code have no names.
    let at = |name: &str| frames.iter().position(|f| f.function() == name).unwrap();
    let between = &frames[at("compare") + 1..at("qsort_r")];
    assert!(!between.is_empty());
    for frame in between {
        let start = frame.function().rsplit_once("+0x").and_then(|(_, start)| u64::from_str_radix(start, 16).ok());
        assert!(start.is_some_and(|start| start < frame.address), "{frame:?}");
    }
}

#[test]
fn split_debug_information_is_said_to_be() {
    let source = "static inline __attribute__((always_inline)) int inner(void) {\n return getppid(); }\n\
        int main(void) { wait_for_us(); return inner() < 0; }";
    let bench = Bench::new();
    let Some(exe) = bench.compile("gcc", &["-O2", "-g", "-gsplit-dwarf"], source, "prog") else { return };
    let mut run = run(&exe);
    let stack = run.call(SYS_GETPPID).stack.clone();
    let resolved = run.symbols.resolve(&stack);
    let user = &resolved.frames[1];
    assert_eq!((user.function(), user.location().unwrap().line), ("main", Some(2)));
    assert!(resolved.problems.iter().any(|p| p.text.contains(".dwo")), "{:?}", resolved.problems);
}

#[test]
fn libraries_loaded_late_and_deleted_at_once_have_names() {
    let bench = Bench::new();
    let library = "#include <unistd.h>\nint plugin(void) { return getppid() > 0; }";
    if bench.compile("gcc", &["-g", "-shared", "-fPIC"], library, "libplug.so").is_none() {
        return;
    }
    let source = "#include <dlfcn.h>\n#include <stdio.h>\nint main(int argc, char **argv) { wait_for_us();\n\
        char path[4096]; snprintf(path, sizeof path, \"%s\", argv[0]); char *s = path; for (char *p = path; *p; p++) if (*p == '/') s = p;\n\
        snprintf(s, 64, \"/libplug.so\"); void *h = dlopen(path, RTLD_NOW); if (!h) return 1;\n\
        unlink(path); int (*f)(void) = dlsym(h, \"plugin\"); return !f(); }";
    let exe = bench.compile("gcc", &["-g", "-ldl"], source, "prog").unwrap();
    let mut run = run(&exe);
    assert_eq!(run.api(SYS_GETPPID).as_deref(), Some("getppid"));
    let user = run.user(SYS_GETPPID);
    assert_eq!((user.function(), user.location().unwrap().line), ("plugin", Some(2)));
    assert_eq!(run.functions(SYS_GETPPID)[1..3], ["plugin", "main"]);
    // dlopen makes the loader open the file; the call counts as dlopen's.
    assert_eq!(run.api(257).as_deref(), Some("dlopen"));
}

#[test]
fn constructors_run_before_main() {
    let bench = Bench::new();
    let source = "#include <unistd.h>\n__attribute__((constructor)) static void early(void) { wait_for_us(); getppid(); }\n\
        int main(void) { getpgid(0); return 0; }";
    for (compiler, flags) in
        [("gcc", &["-O1"][..]), ("gcc", &["-O1", "-static"]), ("musl-gcc", &["-O1"]), ("musl-gcc", &["-O1", "-static"])]
    {
        let Some(exe) = bench.compile(compiler, flags, source, "prog") else { continue };
        let mut run = run(&exe);
        assert_eq!(run.user(SYS_GETPPID).function(), "early", "{compiler} {flags:?}");
        assert!(!run.reaches_main(SYS_GETPPID), "{compiler} {flags:?}: {:?}", run.functions(SYS_GETPPID));
        assert!(run.reaches_main(121), "{compiler} {flags:?}: {:?}", run.functions(121));
    }
}

#[test]
fn cpp_names_are_readable_and_its_library_is_no_user() {
    let source = "#include <vector>\n#include <algorithm>\n#include <ctime>\n#include <fstream>\n\
        struct Logger { __attribute__((noinline)) int stamp(std::time_t t) const { return std::localtime(&t)->tm_hour; } };\n\
        namespace app { template <class T> __attribute__((noinline)) int go(T v) { Logger l; int s = 0;\n\
        std::for_each(v.begin(), v.end(), [&](int i) { s += l.stamp(i); }); return s; } }\n\
        int main() { wait_for_us(); int s = app::go(std::vector<int>{1, 2}); std::ofstream(\"/dev/null\") << s << std::flush; return 0; }";
    let bench = Bench::new();
    for flags in [&["-O0", "-g"][..], &["-O2", "-g"], &["-O2", "-static"]] {
        let Some(exe) = bench.compile("g++", flags, source, "prog") else { return };
        let mut run = run(&exe);
        assert_eq!(run.api(SYS_NEWFSTATAT).as_deref(), Some("localtime"), "{flags:?}");
        assert_eq!(run.user(SYS_NEWFSTATAT).function(), "Logger::stamp", "{flags:?}");
        assert_eq!(run.user(1).function(), "main", "{flags:?}: {:?}", run.functions(1));
        assert_eq!(run.api(1).as_deref(), Some("write"), "{flags:?}: {:?}", run.functions(1));
    }
}

#[test]
fn inlined_cpp_functions_have_whole_names() {
    let source = "#include <unistd.h>\nnamespace app { namespace { template <class F> inline int call(F f) { return f(); }\n\
        struct Shop { static inline int sell() {\n return call([] {\n return getppid(); }); } }; } }\n\
        int main() { wait_for_us();\n return app::Shop::sell() < 0; }";
    let bench = Bench::new();
    let Some(exe) = bench.compile("g++", &["-O2", "-g"], source, "prog") else { return };
    let user = run(&exe).user(SYS_GETPPID);
    let seen: Vec<_> = user.locations.iter().map(|l| (&*l.function, l.line)).collect();
    let within = |name: &str| format!("app::(anonymous namespace)::{name}");
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert_eq!(seen[0], (&*within("Shop::sell::{lambda}::operator()"), Some(5)));
    assert!(seen[1].0.starts_with(&within("call<")), "{seen:?}");
    assert_eq!(seen[2..], [(&*within("Shop::sell"), Some(4)), ("main", Some(7))]);
}

#[test]
fn stacks_go_through_signal_handlers_threads_and_realigned_frames() {
    let source = "#include <signal.h>\n#include <pthread.h>\n#include <unistd.h>\n#include <stdlib.h>\n#include <immintrin.h>\n\
        static volatile int parent;\n        static void handler(int s) { parent = getppid(); }\n\
        __attribute__((noinline)) void wide(int n) { volatile __m256i v[4] __attribute__((aligned(64))); (void)v; char *p = alloca(n); p[0] = 1;\n\
          raise(SIGUSR1); __asm__ volatile(\"\" :: \"r\"(p)); }\n\
        static void *thread(void *p) { wide(100); return p; }\n\
        int main(void) { wait_for_us(); signal(SIGUSR1, handler); wide(10); getpgid(0); return 0; }";
    let bench = Bench::new();
    for flags in [&["-O0", "-mavx2"][..], &["-O2", "-mavx2"], &["-O2", "-mavx2", "-fomit-frame-pointer", "-static"]] {
        let Some(exe) = bench.compile("gcc", flags, source, "prog") else { return };
        let mut run = run(&exe);
        let functions = run.functions(SYS_GETPPID);
        assert!(run.call(SYS_GETPPID).complete, "{flags:?} {functions:?}");
        let at =
            |name: &str| functions.iter().position(|f| f == name).unwrap_or_else(|| panic!("{name} in {functions:?}"));
        assert!(at("handler") < at("wide") && at("wide") < at("main"), "{flags:?} {functions:?}");
        assert!(functions[at("handler")..at("wide")].iter().any(|f| restores(f)), "{functions:?}");
        assert!(run.reaches_main(SYS_GETPPID));
    }
}

/// Returns true for the function to which the C library lets handlers return. Only the C library's debug file names
/// it, which few machines have.
fn restores(function: &str) -> bool {
    function == "__restore_rt" || function.starts_with("libc.so.6+0x")
}

#[test]
fn a_handler_that_jumps_away_does_not_make_its_call_that_of_the_interrupted() {
    let source = "#include <signal.h>\n#include <unistd.h>\nstatic void handler(int s) { getppid(); }\n__attribute__((noinline)) static int parent(void) { __asm__ volatile(\"\"); return 0; }\n\
        int main(void) { wait_for_us(); signal(SIGUSR1, handler); int r = raise(SIGUSR1); return r + parent(); }";
    let bench = Bench::new();
    let Some(exe) = bench.compile("gcc", &["-O2"], source, "prog") else { return };
    let mut run = run(&exe);
    let functions = run.functions(SYS_GETPPID);
    assert!(functions[0] == "getppid" && restores(&functions[1]), "or the test tests nothing: {functions:?}");
    assert_eq!(run.api(SYS_GETPPID).as_deref(), Some("getppid"));
    // No function calls the return from a handler.
    assert_eq!(run.api(15), None);
}

#[test]
fn rusts_standard_library_is_no_user() {
    let source = "use std::io::{Read, Write};\n#[inline(never)]\nfn emit(f: &mut std::fs::File, b: &[u8]) {\n    f.write_all(b).unwrap();\n}\n\
        fn main() {\n    let mut s = Vec::new();\n    std::io::stdin().read_to_end(&mut s).unwrap();\n\
        let mut f = std::fs::File::options().write(true).open(\"/dev/null\").unwrap();\n    emit(&mut f, b\"x\");\n}\n";
    let bench = Bench::new();
    let path = bench.file("prog.rs", source);
    for flags in [&["-g"][..], &["-g", "-O"]] {
        let exe = bench.dir.path().join("prog");
        let mut command = Command::new("rustc");
        command.args(["--edition=2021", "-o"]).arg(&exe).args(flags).arg(&path).current_dir(bench.dir.path());
        if bench.run("rustc", command).is_none() {
            return;
        }
        let mut run = run(&exe);
        let user = run.user(1);
        assert_eq!((user.function(), user.location().unwrap().line), ("prog::emit", Some(4)), "{:?}", run.functions(1));
        assert_eq!(run.api(1).as_deref(), Some("write"));
        assert!(run.reaches_main(1) && run.call(1).complete);
        let stack = run.call(1).stack.clone();
        let classes: Vec<_> = run.frames(&stack).iter().map(|f| f.class).collect();
        assert!(classes.contains(&FrameClass::Runtime), "{:?}", run.functions(1));
    }
}

#[test]
fn go_programs_are_named_by_their_runtimes_function() {
    let source = "package main\nimport (\"fmt\"; \"os\"; \"io\"; \"runtime\")\nfunc init() { runtime.LockOSThread() }\nfunc emit(f *os.File) {\n\tfmt.Fprintf(f, \"x\")\n}\n\
        func main() {\n\tio.ReadAll(os.Stdin)\n\tf, _ := os.OpenFile(\"/dev/null\", os.O_WRONLY, 0)\n\temit(f)\n}\n";
    let bench = Bench::new();
    bench.file("prog.go", source);
    for flags in [&["-gcflags=-l"][..], &["-gcflags=-l", "-ldflags=-w"], &["-gcflags=-l", "-ldflags=-s -w"]] {
        let mut command = Command::new("go");
        command.args(["build", "-o", "prog"]).args(flags).arg("prog.go").current_dir(bench.dir.path());
        command.env("GOFLAGS", "").env("GO111MODULE", "off").env("CGO_ENABLED", "0");
        if bench.run("go", command).is_none() {
            return;
        }
        let mut run = run(&bench.dir.path().join("prog"));
        assert_eq!(run.user(1).function(), "main.emit", "{:?}", run.functions(1));
        assert_eq!(run.api(1).as_deref(), Some("fmt.Fprintf"));
        assert!(run.reaches_main(1), "{:?}", run.functions(1));
        assert!(run.call(1).complete, "{:?}", run.functions(1));
    }
}

#[test]
fn a_main_that_ends_in_a_jump_was_reached() {
    let source = "#include <unistd.h>\n__attribute__((noinline)) int work(void) { volatile int p = getppid(); return p == 0; }\n\
        int main(void) { wait_for_us(); return work(); }";
    let bench = Bench::new();
    for (compiler, flags) in [("gcc", &["-O2"][..]), ("gcc", &["-O2", "-static"]), ("musl-gcc", &["-O2"])] {
        let Some(exe) = bench.compile(compiler, flags, source, "prog") else { continue };
        let mut run = run(&exe);
        let functions = run.functions(SYS_GETPPID);
        assert!(!functions.iter().any(|f| f == "main"), "or the test tests nothing: {functions:?}");
        assert!(run.reaches_main(SYS_GETPPID), "{compiler} {flags:?} {functions:?}");
        assert!(!run.reaches_main(SYS_EXIT_GROUP), "{:?}", run.functions(SYS_EXIT_GROUP));
    }
}

#[test]
fn ends_of_programs_are_nobodys_calls() {
    let source = "int main(void) { wait_for_us(); return 0; }";
    let bench = Bench::new();
    for (compiler, flags) in [("gcc", &["-O2"][..]), ("gcc", &["-O2", "-static"]), ("gcc", &["-static-pie"])] {
        let Some(exe) = bench.compile(compiler, flags, source, "prog") else { return };
        let mut run = run(&exe);
        let functions = run.functions(SYS_EXIT_GROUP);
        assert_eq!(run.api(SYS_EXIT_GROUP), None, "{flags:?} {functions:?}");
        let context = run.call(SYS_EXIT_GROUP).context.clone();
        assert!(context.iter().all(|f| run.symbols.class(*f) != FrameClass::User), "{flags:?} {functions:?}");
    }
}

#[test]
fn interpreters_call_the_c_library() {
    let bench = Bench::new();
    let script = |tool: &str, text: &str| {
        let path = bench.file(&format!("run-{tool}"), text);
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut probe = Command::new(tool);
        probe.arg("--version").stdout(std::process::Stdio::null());
        bench.run(tool, probe).map(|()| path)
    };
    if let Some(path) = script("perl", "#!/usr/bin/perl\n<STDIN>; my @t = localtime(1); $x = getppid();\n") {
        let mut run = run(&path);
        // Perl's localtime calls tzset() and localtime_r().
        assert_eq!(run.api(SYS_NEWFSTATAT).as_deref(), Some("tzset"), "{:?}", run.functions(SYS_NEWFSTATAT));
        assert_eq!(run.user(SYS_NEWFSTATAT).function(), "Perl_localtime64_r");
        assert_eq!(run.api(SYS_GETPPID).as_deref(), Some("getppid"), "{:?}", run.functions(SYS_GETPPID));
        assert!(run.reaches_main(SYS_GETPPID) && run.call(SYS_GETPPID).complete);
    }
    let text =
        "#!/usr/bin/python3\nimport sys, time, os\nsys.stdin.read(); time.mktime((2000,)+(1,)*8); os.getppid()\n";
    if let Some(path) = script("python3", text) {
        let mut run = run(&path);
        assert_eq!(run.api(SYS_NEWFSTATAT).as_deref(), Some("mktime"), "{:?}", run.functions(SYS_NEWFSTATAT));
        assert!(run.reaches_main(SYS_GETPPID) && run.call(SYS_GETPPID).complete, "{:?}", run.functions(SYS_GETPPID));
    }
}
