//! Prints the time of judging a large recording: `cargo bench -p systoll-judge`. No figure is tested against a bound.

#![expect(clippy::print_stdout, reason = "printing is its job")]
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "the judge has no clock, its benchmark has")]

#[path = "../tests/all/common/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod common;

use std::time::{Duration, Instant};
use systoll_judge::{Catalogue, Options, judge};

/// Numbers of rows and of calls in windows.
const SIZES: [(usize, usize); 3] = [(1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000)];
/// Number of repetitions; the fastest and the median are printed.
const TIMES: usize = 7;

/// Returns the processor time of this thread, if the kernel tells it: elapsed time would include other threads.
fn own_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn main() {
    let catalogue = Catalogue::builtin();
    println!("{:>9} {:>12} {:>9} {:>12} {:>12}", "rows", "calls seen", "findings", "fastest", "median");
    for (rows, events) in SIZES {
        let recording = common::large::large(rows, events);
        let seen: usize = recording.windows.iter().map(|w| w.calls.len()).sum();
        let mut findings = 0;
        let mut took: Vec<Duration> = (0..TIMES)
            .map(|_| {
                let start = Instant::now();
                let before = own_time();
                let judgement = judge(&recording, &catalogue, &Options::default());
                findings = judgement.findings.len() + judgement.also.len();
                match (before, own_time()) {
                    (Some(before), Some(after)) => after - before,
                    _ => start.elapsed(),
                }
            })
            .collect();
        took.sort();
        let (fastest, median) = (took[0], took[TIMES / 2]);
        println!("{:>9} {seen:>12} {findings:>9} {fastest:>12.1?} {median:>12.1?}", recording.rows.len());
    }
}
