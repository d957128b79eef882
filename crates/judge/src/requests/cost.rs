//! The costs of requests, as public plain data.

use super::interval::Interval;
use super::kind_sample::KindSample;
use super::split::{Piece, PieceCall};
use crate::collections::hash::Map;
use crate::results::finding::Estimate;
use std::collections::BTreeMap;
use systoll_model::{Recording, RequestKindId, RowId, Sysno};

/// The costs of a server's requests, by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// The kinds of requests, most expensive first.
    pub costs: Vec<RequestCost>,
    /// Number of receives that were looked at.
    pub receives: u64,
    /// Number of receives of which nothing is known: each may have begun a request.
    pub unseen: u64,
    /// The part of `receives` that got TLS, in which requests can't be read.
    pub tls: u64,
    /// The part of `receives` that began HTTP/2, whose requests are not read.
    pub http2: u64,
    /// Windows that were opened to tell requests.
    pub windows: u64,
    /// True if requests of one connection were taken up by several threads: other threads may have worked for them too.
    pub moves: bool,
}

/// The costs of the requests of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestCost {
    /// The kind.
    pub kind: RequestKindId,
    /// Number of such requests. `low` equals `high` if every receive was looked at.
    pub requests: Estimate,
    /// Number of requests that the figures below are means of.
    pub looked_at: u64,
    /// Number of requests that are longer than a window.
    pub cut: u64,
    /// True if no window shows a whole request: the figures are lower bounds.
    pub at_least: bool,
    /// Number of requests that were not answered when their thread took up another: calls of one may be counted with
    /// the other.
    pub overlapped: u64,
    /// Number of calls; `None` if no window shows such a request.
    pub calls: Option<Figure>,
    /// Percentiles of the number of calls, as windows show them.
    pub calls_of: Quantiles,
    /// Number of needless calls; `None` if no window shows such a request.
    pub needless: Option<Figure>,
    /// Toll of the calls, ns; each call has the mean toll of its row. `None` if a row's toll is unknown.
    pub toll_ns: Option<f64>,
    /// Time waited in calls from the request to its answer, ns, where windows show the answer; `None` if it is unknown.
    pub waited_ns: Option<f64>,
    /// Percentiles of the time in calls, worked and waited, from the request to its answer, ns, where windows show the answer.
    pub took_ns: Quantiles,
    /// The calls, most first.
    pub by_call: Vec<RequestCall>,
}

impl RequestCost {
    /// Returns the toll of all such requests, ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        (self.toll_ns.unwrap_or(0.0) * self.requests.estimate as f64) as u64
    }
}

/// A mean over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    /// The mean.
    pub mean: f64,
    /// Its lower bound; `None` if all requests that were looked at lie in one window.
    pub low: Option<f64>,
    /// Its upper bound; `None` if all requests that were looked at lie in one window.
    pub high: Option<f64>,
}

impl Figure {
    /// Returns the mean of some values, each with the window from which it comes.
    fn of(values: impl Iterator<Item = (usize, f64)>) -> Self {
        let mut windows: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (window, value) in values {
            let (n, sum) = windows.entry(window).or_default();
            (*n, *sum) = (*n + 1.0, *sum + value);
        }
        let (mean, doubt) = Interval::of_mean(&windows.into_values().collect::<Vec<_>>());
        Self { mean, low: doubt.map(|doubt| (mean - doubt).max(0.0)), high: doubt.map(|doubt| mean + doubt) }
    }
}

/// A system call of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestCall {
    /// The system call.
    pub syscall: Sysno,
    /// Number of such calls in a request, as a mean.
    pub calls: f64,
    /// Number of these that are needless.
    pub needless: f64,
}

/// The 50th, 95th and 99th percentile of requests; `None` if too few were looked at for one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantiles {
    /// The median.
    pub p50: Option<f64>,
    /// The value that 19 of 20 requests do not exceed.
    pub p95: Option<f64>,
    /// The value that 99 of 100 requests do not exceed.
    pub p99: Option<f64>,
}

impl Quantiles {
    /// Returns the percentiles of some values. One that would be among the largest by itself is `None`: of 20 values, the
    /// largest is the 95th percentile.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let beyond = values.len() * (100 - percent) / 100;
            values.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied().filter(|_| beyond > 0)
        };
        Self { p50: at(50), p95: at(95), p99: at(99) }
    }
}

/// Returns what a kind of request costs, from those of its requests that windows show.
pub(super) fn cost(recording: &Recording, sample: &KindSample) -> RequestCost {
    let shown = &sample.shown;
    let n = shown.len().max(1) as f64;
    let each = |of: &dyn Fn(&Piece) -> f64| {
        (!shown.is_empty()).then(|| Figure::of(shown.iter().map(|(window, piece)| (*window, of(piece)))))
    };
    let calls = || shown.iter().flat_map(|(_, piece)| &piece.calls);
    let toll = |row: RowId| {
        let row = recording.rows.get(row.0 as usize)?;
        // A call that never returns has no toll.
        let never = row.syscall.signature().is_some_and(|s| s.never_returns).then_some(0);
        Some(row.counts.toll_ns.or(never)? as f64 / row.counts.calls.max(1) as f64)
    };
    let toll_of = |call: &PieceCall| Some(toll(call.row)? * call.weight);
    let toll_ns = calls().map(toll_of).sum::<Option<f64>>().map(|sum| sum / n);
    let toll_ns = toll_ns.filter(|_| !shown.is_empty());
    let answered: Vec<&Piece> = shown.iter().map(|(_, piece)| piece).filter(|piece| piece.answered).collect();
    let waits = answered.iter().flat_map(|piece| &piece.calls).map(|call| Some(call.waited_ns? as f64));
    let waited_ns = waits.sum::<Option<f64>>().filter(|_| !answered.is_empty()).map(|sum| sum / answered.len() as f64);
    let took = |piece: &&Piece| -> Option<f64> {
        piece.calls.iter().map(|call| Some(toll(call.row)? + call.waited_ns? as f64)).sum()
    };
    let took_ns = answered.iter().map(took).collect::<Option<Vec<f64>>>().map(Quantiles::of).unwrap_or_default();
    let mut by_call: Map<Sysno, (f64, f64)> = Map::default();
    for call in calls() {
        let sum = by_call.entry(call.syscall).or_default();
        *sum = (sum.0 + call.weight, sum.1 + call.weight * call.needless);
    }
    let of_call = |(syscall, (calls, needless)): (Sysno, (f64, f64))| RequestCall {
        syscall,
        calls: calls / n,
        needless: needless / n,
    };
    let mut by_call: Vec<RequestCall> = by_call.into_iter().map(of_call).collect();
    by_call.sort_by(|a, b| b.calls.total_cmp(&a.calls).then(a.syscall.cmp(&b.syscall)));
    let of_whole = |values: Vec<f64>| if sample.at_least { Quantiles::default() } else { Quantiles::of(values) };
    RequestCost {
        kind: sample.kind,
        requests: sample.requests,
        looked_at: shown.len() as u64,
        cut: sample.cut,
        at_least: sample.at_least,
        overlapped: shown.iter().filter(|(_, piece)| piece.overlapped).count() as u64,
        calls: each(&|piece| piece.calls.iter().map(|call| call.weight).sum()),
        calls_of: of_whole(shown.iter().map(|(_, piece)| piece.calls.len() as f64).collect()),
        needless: each(&|piece| piece.calls.iter().map(|call| call.weight * call.needless).sum()),
        toll_ns,
        waited_ns,
        took_ns,
        by_call,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_need_enough_requests() {
        let of = |n: u64| {
            let Quantiles { p50, p95, p99 } = Quantiles::of((1..=n).map(|value| value as f64).collect());
            [p50, p95, p99]
        };
        assert_eq!(of(0), [None; 3]);
        assert_eq!(of(19), [Some(10.0), None, None]);
        assert_eq!(of(99), [Some(50.0), Some(95.0), None]);
        assert_eq!(of(1_000), [Some(500.0), Some(950.0), Some(990.0)]);
    }
}
