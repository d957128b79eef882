//! Parses the output of load generators: wrk, ab (apache2-utils), redis-benchmark.

/// The figures that a load generator printed for one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadFigures {
    /// Number of requests.
    pub requests: Option<u64>,
    /// Number of requests a second; for several tests in a row, their total over the total time.
    pub per_second: Option<f64>,
    /// Latency of a request, ns: the median if it is printed, else the mean.
    pub latency_ns: Option<f64>,
    /// Number of requests that failed.
    pub failed: u64,
}

/// Parses the output of a run. Other programs' output gives no figures.
pub(crate) fn read(text: &str) -> LoadFigures {
    let mut rates = Vec::new();
    let mut told = LoadFigures::default();
    let (mut latencies, mut means) = (Vec::new(), Vec::new());
    let mut summary = false;
    for line in text.split(['\n', '\r']).map(str::trim) {
        if let Some(rate) = after(line, "Requests/sec:").or_else(|| after(line, "Requests per second:")) {
            rates.push(rate);
        } else if let Some((rate, rest)) = line.split_once(" requests per second") {
            rates.extend(rate.rsplit(' ').next().and_then(number));
            latencies.extend(rest.split_once("p50=").and_then(|(_, rest)| first(rest)).map(|ms| ms * 1e6));
        }
        let made = line.split_once(" requests in ").or_else(|| line.split_once(" requests completed in ")).map(|p| p.0);
        let made = made.and_then(number).or_else(|| after(line, "Complete requests:"));
        if let Some(made) = made {
            told.requests = Some(told.requests.unwrap_or(0).saturating_add(made as u64));
        }
        // redis-benchmark prints a line of names, then a line of figures in ms.
        if summary {
            latencies.extend(line.split_whitespace().nth(2).and_then(number).map(|ms| ms * 1e6));
        }
        summary = line.starts_with("avg ") && line.contains(" p50 ");
        latencies.extend(after_word(line, "50%").and_then(unit));
        means.extend(after_word(line, "Latency").and_then(unit));
        if line.starts_with("Time per request:") && line.ends_with("(mean)") {
            means.extend(after(line, "Time per request:").map(|ms| ms * 1e6));
        }
        for label in ["Failed requests:", "Non-2xx responses:", "Non-2xx or 3xx responses:"] {
            told.failed = told.failed.saturating_add(after(line, label).unwrap_or(0.0) as u64);
        }
    }
    told.per_second = harmonic_mean(&rates);
    told.latency_ns = mean(&latencies).or_else(|| mean(&means));
    told
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)
}

fn first(text: &str) -> Option<f64> {
    text.split_whitespace().next().and_then(number)
}

fn after(line: &str, label: &str) -> Option<f64> {
    line.strip_prefix(label).and_then(first)
}

fn after_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    (words.next()? == word).then(|| words.next())?
}

/// Parses wrk's times into ns: `635.91us`. A number without a unit is no time.
fn unit(text: &str) -> Option<f64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (value, unit) = text.split_at(split);
    let ns = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    number(value).map(|n| n * ns)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the harmonic mean: tests with equally many requests together have this rate.
fn harmonic_mean(rates: &[f64]) -> Option<f64> {
    let good = !rates.is_empty() && rates.iter().all(|r| *r > 0.0);
    good.then(|| rates.len() as f64 / rates.iter().map(|r| 1.0 / r).sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk() {
        let told = read(
            "Running 2s test @ http://127.0.0.1:8080/\n  2 threads and 10 connections\n  \
             Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   635.91us    0.89ms  12.92ms   93.69%\n    \
             Req/Sec    56.20k     8.07k   62.00k    86.54%\n  Latency Distribution\n     50%  250.00us\n     99%    2.70ms\n  \
             22464 requests in 2.00s, 17.76MB read\n  Non-2xx or 3xx responses: 7\nRequests/sec:  11232.34\nTransfer/sec:      8.88MB\n",
        );
        let expect =
            LoadFigures { requests: Some(22_464), per_second: Some(11_232.34), latency_ns: Some(250_000.0), failed: 7 };
        assert_eq!(told, expect);
        assert_eq!(read("    Latency   1.50ms    0.89ms  12.92ms   93.69%").latency_ns, Some(1_500_000.0));
    }

    #[test]
    fn ab() {
        let told = read(
            "Complete requests:      300\nFailed requests:        2\nNon-2xx responses:      1\n\
             Requests per second:    1234.50 [#/sec] (mean)\nTime per request:       1.620 [ms] (mean)\n\
             Time per request:       0.810 [ms] (mean, across all concurrent requests)\n  50%      1\n",
        );
        let expect =
            LoadFigures { requests: Some(300), per_second: Some(1234.5), latency_ns: Some(1_620_000.0), failed: 3 };
        assert_eq!(told, expect);
    }

    #[test]
    fn redis_benchmark() {
        let quiet = read(
            "SET: rps=0.0 (overall: 1.0) avg_msec=0.086\rSET: 20000.00 requests per second, p50=0.063 msec\n\rGET: 30000.00 requests per second, p50=0.055 msec\n",
        );
        assert!(
            (quiet.per_second.unwrap() - 24_000.0).abs() < 1e-6 && (quiet.latency_ns.unwrap() - 59_000.0).abs() < 1e-6
        );
        assert_eq!(quiet.requests, None);
        let whole = read(
            "  20000 requests completed in 0.40 seconds\n50.000% <= 0.055 milliseconds (cumulative count 11775)\n\
             Summary:\n  throughput summary: 49875.31 requests per second\n  latency summary (msec):\n          \
             avg       min       p50       p95       p99       max\n        0.053     0.016     0.055     0.079     0.111     0.391\n",
        );
        let expect =
            LoadFigures { requests: Some(20_000), per_second: Some(49_875.31), latency_ns: Some(55_000.0), failed: 0 };
        assert_eq!(whole, expect);
    }

    #[test]
    fn anything_else_says_nothing() {
        for text in [
            "",
            "hello\n",
            "Requests/sec: many",
            "50% of all",
            "NaN requests per second",
            "Requests/sec: -3",
            "Latency 5",
        ] {
            assert_eq!(read(text), LoadFigures::default(), "{text}");
        }
    }
}
