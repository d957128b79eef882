//! Calls instead of time: what reading a file costs, by two ways.
#![expect(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{Criterion, criterion_group, criterion_main};
use std::io::Read;
use systoll_test::SystemCalls;

fn reads(criterion: &mut Criterion<SystemCalls>) {
    criterion.bench_function("fs::read", |b| b.iter(|| std::fs::read("/proc/self/comm")));
    criterion.bench_function("byte by byte", |b| {
        b.iter(|| std::fs::File::open("/proc/self/comm").map(|file| file.bytes().count()));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(SystemCalls).without_plots().sample_size(10).measurement_time(std::time::Duration::from_millis(200));
    targets = reads
}
criterion_main!(benches);
