//! A measurement for criterion that counts system calls.

use crate::counts::Open;
use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter};

/// A measurement for criterion: the system calls of the thread that runs the benchmark.
///
/// ```no_run
/// use criterion::Criterion;
/// let mut criterion = Criterion::default().with_measurement(systoll_test::SystemCalls);
/// criterion.bench_function("read", |b| b.iter(|| std::fs::read("/proc/self/comm")));
/// ```
///
/// # Panics If calls can't be counted: a benchmark can't be skipped, and an invented number would be compared with real
/// ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemCalls;

impl Measurement for SystemCalls {
    type Intermediate = Counting;
    type Value = u64;

    #[expect(clippy::panic, reason = "criterion takes no error, and a count of 0 would be a lie")]
    fn start(&self) -> Counting {
        match Open::begin() {
            Ok(open) => Counting(open),
            Err(why) => panic!("system calls can't be counted: {why}"),
        }
    }

    #[expect(clippy::panic, reason = "criterion takes no error, and a count of 0 would be a lie")]
    fn end(&self, counting: Counting) -> u64 {
        match counting.0.end() {
            Ok(counts) if counts.incomplete().is_none() => counts.total(),
            Ok(counts) => panic!("system calls were not all counted: {counts}"),
            Err(why) => panic!("system calls can't be counted: {why}"),
        }
    }

    fn add(&self, a: &u64, b: &u64) -> u64 {
        a + b
    }

    fn zero(&self) -> u64 {
        0
    }

    fn to_f64(&self, value: &u64) -> f64 {
        *value as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &Calls
    }
}

/// A measurement in progress.
pub struct Counting(Open);

struct Calls;

impl ValueFormatter for Calls {
    fn scale_values(&self, _typical: f64, _values: &mut [f64]) -> &'static str {
        "calls"
    }

    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let (units, name) = match throughput {
            Throughput::Elements(n) | Throughput::ElementsAndBytes { elements: n, .. } => (*n, "calls/element"),
            Throughput::Bits(n) => (*n, "calls/bit"),
            Throughput::Bytes(n) | Throughput::BytesDecimal(n) => (*n, "calls/byte"),
        };
        for value in values {
            *value /= units as f64;
        }
        name
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "calls"
    }
}
