//! Measures the cost of names. Run with `cargo test --release -p systoll-symbols --test all speed -- --nocapture`.

#![expect(clippy::print_stdout, reason = "figures are what a person runs it for")]

use crate::common::*;
use std::time::{Duration, Instant};
use systoll_symbols::{AddressSpace, RawFrame, Symbols, Until};

fn fastest<T>(times: u32, mut work: impl FnMut() -> T) -> Duration {
    let one = |_| {
        let start = Instant::now();
        std::hint::black_box(work());
        start.elapsed()
    };
    (0..times).map(one).min().unwrap()
}

/// Returns the processor time that this thread has used, to a few milliseconds; other work on the machine does not
/// count.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Unwinding to the user's frame happens at every system call, so its bound is tight in release builds; debug builds
/// only have to end.
#[test]
fn a_warm_stack_takes_a_microsecond() {
    let source = "#include <time.h>\n#include <unistd.h>\n#include <stdio.h>\nint main(void) { return getchar() > 0; }";
    let bench = Bench::new();
    let Some(exe) = bench.compile("gcc", &["-O2", "-g"], source, "prog") else { return };
    let stopped = Stopped::start(&exe);
    let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
    let first = fastest(1, || space.update(&mut symbols, stopped.pid.as_raw()));
    let again = fastest(100, || space.update(&mut symbols, stopped.pid.as_raw()));
    let regs = stopped.registers();
    let stack: Vec<u64> = (0..512).map_while(|n| stopped.read(regs.sp + 8 * n)).collect();
    let mut read = |at: u64| stack.get(usize::try_from(at.checked_sub(regs.sp)? / 8).ok()?).copied();
    let mut out: Vec<RawFrame> = Vec::with_capacity(64);
    let mut unwind = |until, out: &mut Vec<RawFrame>| {
        out.clear();
        space.unwind(&mut symbols, &regs, &mut read, until, out)
    };
    let cold = fastest(1, || unwind(Until::Root, &mut out));
    let depth = out.len();
    let many = 1000;
    let warm = fastest(100, || (0..many).for_each(|_| assert!(!unwind(Until::UserFrame, &mut out)))) / many;
    let context = out.len();
    let whole = fastest(100, || (0..many).for_each(|_| assert!(unwind(Until::Root, &mut out)))) / many;
    println!(
        "update {first:?}, unchanged {again:?}; cold stack of {depth} {cold:?}, warm {whole:?}, context of {context} {warm:?}"
    );
    let bound = if cfg!(debug_assertions) { 1000 } else { 1 };
    assert!(warm < Duration::from_micros(bound), "{warm:?}");
}

/// A report must be printed half a second after the program's end, and most of that time goes into names.
#[test]
fn five_hundred_frames_are_resolved_in_time() {
    let stopped = Stopped::start(std::path::Path::new("/usr/bin/cat"));
    let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
    space.update(&mut symbols, stopped.pid.as_raw());
    let (stack, _) = stopped.unwind(&mut space, &mut symbols, Until::Root);
    // The addresses are spread over the C library.
    let libc = stack.iter().find(|f| f.module == stack[0].module).unwrap();
    let frames: Vec<RawFrame> =
        (0..500).map(|n| RawFrame { address: 0x28000 + n * 0x8c0, is_return: true, ..*libc }).collect();
    let start = cpu();
    symbols.resolve(&frames);
    let first = cpu() - start;
    let again = fastest(3, || symbols.resolve(&frames));
    let resolved = symbols.resolve(&frames);
    let lines = resolved.frames.iter().filter(|f| f.locations[0].line.is_some()).count();
    println!("500 frames {first:?}, again {again:?}; {lines} with lines");
    let bound = if cfg!(debug_assertions) { 60_000 } else { 150 };
    assert!(first < Duration::from_millis(bound), "{first:?}");
}
