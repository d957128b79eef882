//! Measures what counting inside the program costs: loops of getppid through a hooked site and the same loop without
//! a hook run by turns. Prints ratios, because a machine's clock and load change.
//!
//! `cargo run --release -p systoll-hooks --example trampolines`

#[path = "../tests/trampolines/lab.rs"]
mod lab;
#[path = "../tests/trampolines/server.rs"]
mod server;
#[path = "../tests/trampolines/tree.rs"]
mod tree;

use lab::{File, Lab};
use server::Server;
use std::sync::Barrier;
use std::time::Instant;
use systoll_hooks::assemble::{Options, assemble};
use systoll_hooks::plan::plan;

const GETPPID: u32 = 110;
/// Number of calls in one turn, and number of turns; the fastest turn of each kind is the result.
const CALLS: u64 = 5_000;
const TURNS: usize = 600;

const COUNT: Options = Options::COUNT;

fn main() {
    writing("/lib/x86_64-linux-gnu/libc.so.6");
    let timed = Options { results: true, time: true, ..COUNT };
    let modes = [
        ("count and context", COUNT, 1),
        ("with errors and bytes", Options { results: true, ..COUNT }, 1),
        ("with time", timed, 1),
        ("with time and waited", Options { waited: true, ..timed }, 1),
        ("with windows too", Options { waited: true, windows: true, ..timed }, 1),
        ("answered in place", Options { elide: true, ..timed }, 1),
        ("count and context, 2 threads", COUNT, 2),
        ("with time and waited, 2 threads", Options { waited: true, ..timed }, 2),
        ("with time and waited, 8 threads", Options { waited: true, ..timed }, 8),
    ];
    for (name, options, threads) in modes {
        // SAFETY: this process has a single thread; the child only measures and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            measure(name, options, threads);
            // SAFETY: ends the child without the parent's clean-up.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "{name}");
    }
}

/// Measures the times to plan a file and to write its code.
fn writing(path: &str) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let begun = Instant::now();
    let Ok(plan) = plan(&bytes) else { return };
    let planned = begun.elapsed();
    let options = Options { results: true, time: true, waited: true, ..COUNT };
    if let Ok(blob) = assemble(&plan, &options, -(64 << 20)) {
        let (written, sites, size) = (begun.elapsed() - planned, blob.sites.len(), blob.code.len());
        say(&format!("{path}: planned in {planned:.1?}, {sites} sites written in {written:.1?}, {size} bytes"));
    }
}

fn say(line: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("{line}\n").as_bytes());
}

fn measure(name: &str, options: Options, threads: u64) {
    let mut file = File::new();
    let bare = file.bare("bare", GETPPID);
    let hooked = file.wrapper("hooked", GETPPID);
    file.repeat("bare loop", bare);
    file.repeat("hooked loop", hooked);
    let lab = Lab::new(file, options);
    let server = Server::start(&[]);
    let barrier = Barrier::new(threads as usize);
    let (lab, barrier) = (&lab, &barrier);
    let best: Vec<(f64, f64)> = std::thread::scope(|scope| {
        let run = |thread| {
            move || {
                lab.enter(thread);
                lab.call("hooked loop", &[1000]);
                barrier.wait();
                let mut best = (f64::MAX, f64::MAX);
                for _ in 0..TURNS {
                    best.0 = best.0.min(turn(lab, "bare loop"));
                    best.1 = best.1.min(turn(lab, "hooked loop"));
                }
                best
            }
        };
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
        all.into_iter().map(|t| t.join().expect("a thread that measures")).collect()
    });
    server.stop();
    let made = lab.total(GETPPID).0;
    let expected = threads * (1000 + TURNS as u64 * CALLS);
    let exact = if options.elide || made == expected { "exact" } else { "NOT EXACT" };
    let mean = |pick: fn(&(f64, f64)) -> f64| best.iter().map(pick).sum::<f64>() / best.len() as f64;
    let (bare, hooked) = (mean(|b| b.0), mean(|b| b.1));
    let line = format!(
        "{name:<34} {bare:7.1} -> {hooked:7.1} ns  {:6.3} x  {:+6.1} ns  {exact}",
        hooked / bare,
        hooked - bare
    );
    say(&line);
}

/// Makes [`CALLS`] calls through the function `name`. Returns nanoseconds per call.
fn turn(lab: &Lab, name: &str) -> f64 {
    let begun = Instant::now();
    lab.call(name, &[CALLS]);
    begun.elapsed().as_nanos() as f64 / CALLS as f64
}
