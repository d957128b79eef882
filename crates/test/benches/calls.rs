//! Counts calls in place of time: reading a file in two ways.

use criterion::{Criterion, criterion_group, criterion_main};
use std::io::Read;
use systoll_test::SystemCalls;

fn reads(criterion: &mut Criterion<SystemCalls>) {
    criterion.bench_function("fs::read", |b| b.iter(|| std::fs::read("/proc/self/comm")));
    criterion.bench_function("byte by byte", |b| {
        b.iter(|| {
            let mut file = std::fs::File::open("/proc/self/comm")?;
            while file.read(&mut [0])? > 0 {}
            Ok::<(), std::io::Error>(())
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(SystemCalls).without_plots().sample_size(10).measurement_time(std::time::Duration::from_millis(200));
    targets = reads
}
criterion_main!(benches);
