//! Tests on files that this machine has. A test whose file is missing says so and is skipped; with
//! SYSTOLL_TEST_STRICT=1 it fails.

use std::path::{Path, PathBuf};
use std::process::Command;
use systoll_hooks::plan::{Plan, Site, Span, VdsoFunction, plan};

/// Prints why a test can't be run here; fails if no test may be skipped.
#[expect(clippy::print_stderr, reason = "whoever runs tests must see it")]
pub(crate) fn skip(why: &str) {
    assert!(std::env::var("SYSTOLL_TEST_STRICT").as_deref() != Ok("1"), "not to be skipped: {why}");
    eprintln!("skipped: {why}");
}

/// Returns the first of `paths` that exists.
pub(crate) fn first_of(paths: &[&str]) -> Option<PathBuf> {
    let found = paths.iter().map(PathBuf::from).find(|p| p.exists());
    if found.is_none() {
        skip(&format!("none of {paths:?} is here"));
    }
    found
}

pub(crate) fn libc() -> Option<PathBuf> {
    first_of(&["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"])
}

pub(crate) fn ld_so() -> Option<PathBuf> {
    first_of(&["/lib64/ld-linux-x86-64.so.2"])
}

pub(crate) fn musl() -> Option<PathBuf> {
    first_of(&["/usr/lib/x86_64-linux-musl/libc.so", "/lib/ld-musl-x86_64.so.1"])
}

/// Returns the vDSO as the kernel maps it.
pub(crate) fn vdso() -> Option<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = maps.lines().find(|line| line.ends_with("[vdso]")) else {
        skip("no vDSO here");
        return None;
    };
    let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
    let [start, end] = [start, end].map(|hex| u64::from_str_radix(hex, 16).unwrap());
    let mut bytes = vec![0; (end - start) as usize];
    std::fs::File::open("/proc/self/mem").unwrap().read_exact_at(&mut bytes, start).unwrap();
    Some(bytes)
}

/// Builds `source` with `command` in `dir`; `None` if that is not possible here.
pub(crate) fn built(dir: &Path, name: &str, source: &str, command: &[&str]) -> Option<PathBuf> {
    let (input, output) = (dir.join(name), dir.join(format!("{name}.out")));
    std::fs::write(&input, source).unwrap();
    let mut build = Command::new(command[0]);
    build.args(&command[1..]).arg("-o").arg(&output).arg(&input);
    match build.output() {
        Ok(done) if done.status.success() => Some(output),
        Ok(done) => {
            skip(&format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr)));
            None
        }
        Err(error) => {
            skip(&format!("{command:?}: {error}"));
            None
        }
    }
}

pub(crate) const HELLO_C: &str = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n";
const HELLO_GO: &str = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n";

struct Figures {
    sites: usize,
    before: usize,
    both: usize,
}

fn figures(elf: &[u8]) -> (Plan, Figures) {
    let plan = plan(elf).unwrap();
    crate::check(&plan, elf);
    let counted = |s: &&Site| s.entry_span.is_some() || s.wrap_span.is_some() || !s.exits.is_empty();
    let before = plan.sites.iter().filter(counted).count();
    let whole =
        |s: &Site| s.wrap_span.is_some() || s.entry_span.is_some() && (s.return_span.is_some() || s.returned.is_some());
    let both = plan.sites.iter().filter(|s| whole(s)).count();
    let figures = Figures { sites: plan.sites.len(), before, both };
    (plan, figures)
}

/// Asserts that no smaller share of `path`'s sites can be hooked than when the test was written: then, of `sites`
/// sites, `before` had a hook before the call, and `both` also one behind it.
fn at_least(path: &Path, sites: usize, before: usize, both: usize) -> Plan {
    let (plan, got) = figures(&std::fs::read(path).unwrap());
    let part = |n: usize, least: usize| n * sites >= least * got.sites;
    assert!(got.sites >= sites / 2, "{}: {} sites", path.display(), got.sites);
    assert!(part(got.before, before), "{}: before {} of {}", path.display(), got.before, got.sites);
    assert!(part(got.both, both), "{}: both {} of {}", path.display(), got.both, got.sites);
    assert_eq!(plan.uses_gs, None, "{}", path.display());
    plan
}

#[test]
fn glibc() {
    let Some(path) = libc() else { return };
    let plan = at_least(&path, 526, 519, 510);
    assert_eq!(plan.unplanned, []);
    let known = plan.sites.iter().filter(|s| s.number.is_some()).count();
    assert!(known * 526 >= 487 * plan.sites.len(), "{known} numbers");
    let by_rsp = plan.sites.iter().filter(|s| s.cfa.is_some()).count();
    assert!(by_rsp * 526 >= 511 * plan.sites.len(), "{by_rsp} frames");
    for wrapped in [56, 58, 59, 9] {
        let sites: Vec<_> = plan.sites.iter().filter(|s| s.number == Some(wrapped)).collect();
        assert!(!sites.is_empty() && sites.iter().all(|s| s.wrap_span.is_some()), "{wrapped}");
    }
}

#[test]
fn the_loader() {
    let Some(path) = ld_so() else { return };
    at_least(&path, 46, 42, 41);
}

#[test]
fn static_programs() {
    let dir = tempfile::tempdir().unwrap();
    for (name, flags) in [("plain.c", ["gcc", "-O2", "-static"]), ("pie.c", ["gcc", "-O2", "-static-pie"])] {
        let Some(program) = built(dir.path(), name, HELLO_C, &flags) else { continue };
        at_least(&program, 103, 96, 94);
    }
}

#[test]
fn go_programs() {
    let dir = tempfile::tempdir().unwrap();
    for (name, flags) in [("plain.go", ""), ("stripped.go", "-s -w")] {
        let Some(program) = built(dir.path(), name, HELLO_GO, &["go", "build", "-ldflags", flags]) else { continue };
        at_least(&program, 39, 38, 36);
        spares_the_signals_return(&program);
    }
}

/// Checks that no window covers the instructions of rt_sigreturn: debuggers recognize it by its bytes, so it is
/// counted where handlers end.
fn spares_the_signals_return(program: &Path) {
    let plan = plan(&std::fs::read(program).unwrap()).unwrap();
    let spared: Vec<_> = plan.sites.iter().filter(|s| !s.exits.is_empty()).collect();
    assert_eq!(spared.iter().map(|s| s.number).collect::<Vec<_>>(), [Some(libc::SYS_rt_sigreturn as u32)]);
    let bytes = spared[0].address - 7..spared[0].address + 2;
    let free = |span: &Span| span.end() <= bytes.start || span.start >= bytes.end;
    assert!(plan.sites.iter().flat_map(Site::spans).all(free));
}

/// C's linker puts other code before Go's functions. A planner that took the start of the text for a function's would
/// decode them out of step, and find instructions that seem to use gs.
#[test]
fn go_programs_with_c_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let source = HELLO_GO.replacen("\n\n", "\n\nimport \"C\"\n", 1);
    for (name, mode) in [("fixed.go", "-buildmode=exe"), ("movable.go", "-buildmode=pie")] {
        let command = ["go", "build", mode, "-ldflags", "-s -w"];
        let Some(program) = built(dir.path(), name, &source, &command) else { continue };
        at_least(&program, 39, 38, 35);
    }
}

#[test]
fn musl_programs() {
    if let Some(path) = musl() {
        // Most calls of musl have fewer than five bytes before them and no room behind.
        at_least(&path, 499, 499, 460);
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = built(dir.path(), "musl.c", HELLO_C, &["musl-gcc", "-O2", "-static"]) else { return };
    at_least(&program, 20, 18, 13);
    // In a file without symbols and frame information, only code that is reachable from the entry point is known to
    // be code.
    let status = Command::new("strip").arg(&program).status();
    if status.is_ok_and(|s| s.success()) {
        at_least(&program, 20, 15, 10);
    }
}

#[test]
fn the_vdso() {
    let Some(elf) = vdso() else { return };
    let (plan, got) = figures(&elf);
    assert!(got.sites > 0);
    assert_eq!(got.both, got.sites);
    let functions: Vec<_> = plan.entries.iter().map(|e| e.function).collect();
    for function in [VdsoFunction::Time, VdsoFunction::ClockGettime, VdsoFunction::Gettimeofday, VdsoFunction::Getcpu] {
        assert!(functions.contains(&function), "{function:?}");
    }
    assert!(plan.entries.iter().all(|e| (e.address..e.address + 5).contains(&e.span.start)));
}

#[test]
fn files_without_calls_have_no_sites() {
    let Some(path) = first_of(&["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"]) else { return };
    let (plan, got) = figures(&std::fs::read(path).unwrap());
    assert!(got.sites == 0 && plan.segments.iter().any(|s| s.executable) && plan.entries.is_empty());
}

#[test]
fn glibc_is_planned_before_anybody_waits() {
    if cfg!(debug_assertions) {
        return;
    }
    let Some(path) = libc() else { return };
    let elf = std::fs::read(path).unwrap();
    let time = || {
        let start = std::time::Instant::now();
        plan(&elf).unwrap();
        start.elapsed()
    };
    let best = (0..5).map(|_| time()).min().unwrap();
    assert!(best.as_millis() <= 100, "{best:?}");
}
