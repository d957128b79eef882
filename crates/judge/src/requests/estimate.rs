//! How many requests of each kind were received, from the exact number of receives and the windows that show some.

use crate::finding::Estimate;
use crate::grouping::unseen_share;
use crate::hash::Map;
use systoll_model::{Recording, RequestKindId, RequestProtocol, RowId, WindowCall};

/// The receives of a run.
#[derive(Default)]
pub(super) struct Received {
    /// The number of requests of each kind.
    pub(super) requests: Map<RequestKindId, Estimate>,
    /// Receives in windows by protocol.
    pub(super) calls: Map<RequestProtocol, u64>,
    /// Windows that tell requests.
    pub(super) windows: u64,
}

/// The receives of a row in windows.
#[derive(Default)]
struct Seen {
    by_kind: Map<RequestKindId, u64>,
    calls: u64,
    windows: u64,
    /// Receives in windows, also those whose window ends there.
    all: u64,
}

/// Returns the number of requests that the rows' exact counts and windows tell.
pub(super) fn received(recording: &Recording) -> Received {
    let mut received = Received::default();
    let mut rows: Map<RowId, Seen> = Map::default();
    for window in &recording.windows {
        let mut here: Map<RowId, ()> = Map::default();
        let last = window.calls.len().saturating_sub(1);
        let has_requests = |call: &&WindowCall| call.request.is_some();
        received.windows += u64::from(window.calls.iter().any(|call| has_requests(&call)));
        for (at, call) in window.calls.iter().enumerate() {
            let Some((id, kind)) = call.request.and_then(|id| Some((id, recording.request_kinds.get(id.0 as usize)?)))
            else {
                continue;
            };
            *received.calls.entry(kind.protocol).or_default() += 1;
            let seen = rows.entry(call.row).or_default();
            seen.all += 1;
            // A window ends where a request begins: counting it would make requests of other receives.
            if at == last && at > 0 && kind.protocol.has_requests() {
                continue;
            }
            seen.calls += 1;
            *seen.by_kind.entry(id).or_default() += 1;
            if here.insert(call.row, ()).is_none() {
                seen.windows += 1;
            }
        }
    }
    for (row, seen) in rows {
        let calls = recording.rows.get(row.0 as usize).map_or(0, |row| row.counts.calls);
        for (kind, n) in &seen.by_kind {
            let is_request =
                recording.request_kinds.get(kind.0 as usize).is_some_and(|kind| kind.protocol.has_requests());
            if is_request {
                let sum = received.requests.entry(*kind).or_default();
                *sum = sum.and(share(&seen, *n, calls));
            }
        }
    }
    received
}

/// Returns the number of a row's `calls` of which `n` were seen.
fn share(seen: &Seen, n: u64, calls: u64) -> Estimate {
    let all = calls as f64;
    let share = n as f64 / seen.calls.max(1) as f64;
    let estimate = share * all;
    // Receives of one window are alike: windows are what was drawn.
    let scatter = 2.0 * (share * (1.0 - share) / seen.windows.max(1) as f64).sqrt();
    let doubt = if seen.all >= calls { 0.0 } else { scatter.max(unseen_share(seen.windows, calls)) };
    let (low, high) = ((share - doubt) * all, (share + doubt) * all);
    let round = |calls: f64| calls.round().clamp(0.0, u64::MAX as f64) as u64;
    Estimate {
        estimate: round(estimate).max(n),
        low: round(low).max(n),
        high: round(high).clamp(round(estimate).max(n), calls.max(n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_windows_leave_wide_bounds() {
        let seen = |calls, windows| Seen { calls, windows, all: calls, by_kind: Map::default() };
        assert_eq!(share(&seen(100, 50), 50, 100), Estimate { estimate: 50, low: 50, high: 50 });
        let few = share(&seen(10, 5), 10, 1_000);
        assert_eq!((few.estimate, few.high), (1_000, 1_000));
        assert!(few.low < 600, "{few:?}");
        let many = share(&seen(1_000, 500), 500, 100_000);
        assert!(many.estimate == 50_000 && many.low > 44_000 && many.high < 56_000, "{many:?}");
    }
}
