//! Tests the public function that a call is made for, for every form of calling it.

use crate::common::*;

fn check(flavours: &[(&str, &[&str])], source: &str, nr: i64, api: Option<&str>, user: &str) {
    let bench = Bench::new();
    for (compiler, flags) in flavours {
        let Some(exe) = bench.compile(compiler, flags, source, "prog") else { continue };
        let mut run = run(&exe);
        let what = format!("{compiler} {flags:?}: {:?}", run.functions(nr));
        assert_eq!(run.api(nr).as_deref(), api, "{what}");
        assert_eq!(run.user(nr).function(), user, "{what}");
    }
}

const GLIBC: &[(&str, &[&str])] = &[
    ("gcc", &["-O0"]),
    ("gcc", &["-O2"]),
    ("gcc", &["-O2", "-fno-plt"]),
    ("gcc", &["-O2", "-static"]),
    ("gcc", &["-O2", "-static-pie"]),
];

const ALL: &[(&str, &[&str])] = &[
    ("gcc", &["-O0"]),
    ("gcc", &["-O2"]),
    ("gcc", &["-O2", "-fno-plt"]),
    ("gcc", &["-O2", "-static"]),
    ("gcc", &["-O2", "-static-pie"]),
    ("musl-gcc", &["-O0"]),
    ("musl-gcc", &["-O2"]),
    ("musl-gcc", &["-O2", "-static"]),
];

#[test]
fn headers_rename_sigsetjmp() {
    let source = "#include <setjmp.h>\nsigjmp_buf b; int main(void) { wait_for_us(); return sigsetjmp(b, 1); }";
    check(ALL, source, SYS_SIGPROCMASK, Some("sigsetjmp"), "main");
}

#[test]
fn getcontext_is_assembly() {
    let source = "#include <ucontext.h>\nucontext_t u; int main(void) { wait_for_us(); return getcontext(&u); }";
    check(GLIBC, source, SYS_SIGPROCMASK, Some("getcontext"), "main");
}

#[test]
fn mktime_stats_too() {
    let source =
        "#include <time.h>\nint main(void) { wait_for_us(); struct tm t = {.tm_year = 100}; return mktime(&t) == 1; }";
    check(GLIBC, source, SYS_NEWFSTATAT, Some("mktime"), "main");
}

#[test]
fn syscall_is_an_api_but_the_instruction_is_not() {
    let source = "#define _GNU_SOURCE\n#include <sys/syscall.h>\nlong syscall(long, ...);\n\
        int main(void) { wait_for_us(); return syscall(SYS_membarrier, 0, 0) < 0; }";
    check(ALL, source, SYS_MEMBARRIER, Some("syscall"), "main");
    let source = "__attribute__((noinline)) long raw(long nr) { long r; \
        __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(nr), \"D\"(0), \"S\"(0) : \"rcx\", \"r11\", \"memory\"); return r; }\n\
        int main(void) { wait_for_us(); return raw(324) < 0; }";
    check(ALL, source, SYS_MEMBARRIER, None, "raw");
}

#[test]
fn large_file_names_are_their_plain_ones() {
    let source = "#define _GNU_SOURCE\n#define _FILE_OFFSET_BITS 64\n#include <fcntl.h>\n\
        int main(void) { wait_for_us(); return open(\"/etc/passwd\", O_RDONLY) < 0; }";
    check(GLIBC, source, 257, Some("open"), "main");
}

#[test]
fn a_call_through_a_pointer_is_named_by_the_function_that_runs() {
    let source = "#include <unistd.h>\n#include <sys/types.h>\npid_t (*volatile f)(void) = getppid;\n\
        int main(void) { wait_for_us(); return f() == 0; }";
    check(ALL, source, SYS_GETPPID, Some("getppid"), "main");
}

const TAIL: &str = "#include <time.h>\n\
    __attribute__((noinline)) struct tm *helper(time_t *t) { __asm__ volatile(\"\"); return localtime(t); }\n\
    int main(void) { wait_for_us(); time_t t = 1; struct tm *tm = helper(&t); return tm->tm_year > 100; }";

#[test]
fn a_helper_that_jumps_to_the_api_is_followed() {
    let flavours: &[(&str, &[&str])] = &[
        ("gcc", &["-O2"]),
        ("gcc", &["-O2", "-fno-plt"]),
        ("gcc", &["-O2", "-static"]),
        ("gcc", &["-O2", "-fcf-protection=full", "-Wl,-z,now"]),
    ];
    check(flavours, TAIL, SYS_NEWFSTATAT, Some("localtime"), "main");
}

#[test]
fn where_a_helper_may_jump_to_several_nothing_is_made_up() {
    let source = "#include <time.h>\n#include <stdlib.h>\n\
        __attribute__((noinline)) void *helper(time_t *t, int n) { if (n) return localtime(t); return ctime(t); }\n\
        int main(int argc, char **argv) { wait_for_us(); time_t t = 1; volatile int one = 1; void *p = helper(&t, one); return p == 0; }";
    // Both functions make a tail call; the one that runs is the internal __tz_convert, which is not
    // public.
    check(&[("gcc", &["-O2"])], source, SYS_NEWFSTATAT, None, "main");
}

#[test]
fn callbacks_of_the_c_library_are_the_users() {
    let source = "#include <stdlib.h>\n#include <unistd.h>\n\
        int compare(const void *a, const void *b) { getppid(); return *(int *)a - *(int *)b; }\n\
        int main(void) { wait_for_us(); int v[2] = {2, 1}; qsort(v, 2, sizeof *v, compare); return v[0] != 1; }";
    check(ALL, source, SYS_GETPPID, Some("getppid"), "compare");
}

#[test]
fn fortified_names_are_their_plain_ones() {
    let source = "#include <stdio.h>\n#include <unistd.h>\n\
        int main(int argc, char **argv) { wait_for_us(); printf(\"%d\\n\", argc); fflush(stdout); return 0; }";
    check(&[("gcc", &["-O2", "-D_FORTIFY_SOURCE=2"])], source, 1, Some("fflush"), "main");
    let source = "#include <stdio.h>\n#include <unistd.h>\n\
        int main(int argc, char **argv) { wait_for_us(); fprintf(stderr, \"%d\\n\", argc); return 0; }";
    check(&[("gcc", &["-O2", "-D_FORTIFY_SOURCE=2"]), ("gcc", &["-O0"])], source, 1, Some("fprintf"), "main");
}
