//! Runs the fuzz targets on stable Rust: with the seeds, then with random changes of them for a
//! limited time.
//!
//! `SYSTOLL_FUZZ_SECONDS` sets the time of each target; `SYSTOLL_FUZZ_SEED` repeats a run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use systoll_fuzz::mutate::{Random, mutated};
use systoll_fuzz::{
    budget, cause, clients, file, image, ledger, ledgers, mcp, plan, recording, request, requests, seeds, shared,
    stack, stored, target, trace, traces,
};
use systoll_judge::{Catalogue, Options, judge};

/// Longest time that one input may take. A file from a stranger must not hold up systoll, even in a
/// debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Runs `target` on seeds and their changes. Returns the first input on which it fails, with the
/// failure.
fn broken(target: impl Fn(&[u8]), seeds: &[Vec<u8>], time: Duration, seed: u64) -> Option<(Vec<u8>, String)> {
    let mut random = Random::new(seed);
    let end = Instant::now() + time;
    let mut fresh = seeds.to_vec();
    loop {
        let bytes = fresh.pop().unwrap_or_else(|| mutated(&mut random, seeds));
        let start = Instant::now();
        if catch_unwind(AssertUnwindSafe(|| target(&bytes))).is_err() {
            return Some((bytes, "a panic".into()));
        }
        if start.elapsed() > PATIENCE {
            return Some((bytes, format!("{:?}", start.elapsed())));
        }
        if fresh.is_empty() && Instant::now() > end {
            return None;
        }
    }
}

fn survives(name: &str, target: impl Fn(&[u8]), seeds: &[Vec<u8>]) {
    assert!(!seeds.is_empty(), "nothing to start from");
    let seed = setting("SYSTOLL_FUZZ_SEED", Instant::now().elapsed().as_nanos() as u64 ^ u64::from(std::process::id()));
    let time = Duration::from_secs(setting("SYSTOLL_FUZZ_SECONDS", 1));
    if let Some((bytes, what)) = broken(target, seeds, time, seed) {
        let kept = std::env::temp_dir().join(format!("systoll-fuzz-{name}-{}", std::process::id()));
        std::fs::write(&kept, &bytes).expect("the input can be kept");
        panic!("{name}: {what}, seed {seed}, input kept as {}", kept.display());
    }
}

#[test]
fn recordings_do_no_harm() {
    survives("recording", recording, &seeds::recordings());
}

#[test]
fn traces_do_no_harm() {
    survives("trace", trace, &traces::traces());
}

#[test]
fn ledgers_do_no_harm() {
    survives("ledger", ledger, &ledgers());
}

#[test]
fn clients_do_no_harm() {
    survives("mcp", mcp, &clients());
}

#[test]
fn causes_do_no_harm() {
    survives("cause", cause, &seeds::causes());
}

#[test]
fn budgets_do_no_harm() {
    survives("budget", budget, &seeds::budgets());
}

#[test]
fn files_do_no_harm() {
    let small = ["/bin/true", "/bin/cat", "/lib64/ld-linux-x86-64.so.2"];
    let seeds: Vec<_> = small.iter().filter_map(|p| std::fs::read(p).ok()).collect();
    survives("file", file, &seeds);
}

#[test]
fn images_do_no_harm() {
    survives("image", image, &seeds::images());
}

#[test]
fn shared_images_do_no_harm() {
    survives("shared", shared, &[seeds::images(), seeds::asking()].concat());
}

#[test]
fn hooked_files_do_no_harm() {
    survives("plan", plan, &seeds::programs());
}

#[test]
fn stored_plans_do_no_harm() {
    survives("stored", stored, &seeds::kept());
}

#[test]
fn memories_do_no_harm() {
    survives("target", target, &seeds::memories());
}

#[test]
fn requests_do_no_harm() {
    survives("request", request, &requests());
}

#[test]
fn stacks_do_no_harm() {
    survives("stack", stack, &seeds::programs());
}

/// Inputs that once broke a target (fuzz/found/TARGET/) must break none again.
#[test]
fn inputs_that_once_failed_stay_mended() {
    type Target = fn(&[u8]);
    let targets: [(&str, Target); 1] = [("stored", stored)];
    for (name, target) in targets {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(name);
        let inputs: Vec<_> = std::fs::read_dir(&folder).expect("inputs are kept").collect();
        assert!(!inputs.is_empty(), "{name}: nothing is kept");
        for input in inputs {
            target(&std::fs::read(input.expect("a file").path()).expect("it can be read"));
        }
    }
}

/// Seeds that are refused at once would test nothing.
#[test]
fn seeds_pass_the_first_checks() {
    let run = seeds::run();
    run.check().expect("the seed is whole");
    let judgement = judge(&run, &Catalogue::builtin(), &Options::default());
    let told: Vec<_> = judgement.findings.iter().chain(&judgement.also).filter_map(|f| f.cause.as_deref()).collect();
    assert_eq!(told, ["tz-unset"]);
    for text in traces::traces() {
        let mut import = systoll_import::Import::new(1);
        import.read("trace", text.as_slice()).expect("a trace");
        assert!(import.finish().expect("calls").calls() >= 2, "{}", String::from_utf8_lossy(&text));
    }
    for text in seeds::causes() {
        Catalogue::parse("seed.toml", std::str::from_utf8(&text).expect("text")).expect("a cause");
    }
    for elf in seeds::programs() {
        systoll_hooks::plan::plan(&elf).expect("a program that can be planned");
    }
    assert_eq!(seeds::kept().len(), 2 * seeds::programs().len());
    let file = std::fs::read("/proc/self/exe").expect("this very program");
    assert!(systoll_symbols::fuzzing::use_file(file, 1));
}

/// The driver itself must find and report failures.
#[test]
fn a_failing_target_is_reported() {
    let fragile = |bytes: &[u8]| assert!(bytes.iter().all(|b| *b < 0x80));
    let found = broken(fragile, &[vec![0; 16]], PATIENCE, 1);
    assert!(found.is_some_and(|(bytes, what)| bytes.iter().any(|b| *b >= 0x80) && what == "a panic"));
    assert_eq!(broken(|_| (), &[vec![0; 16]], Duration::from_millis(20), 1), None);
}
