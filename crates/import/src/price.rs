//! Prices a recording that has no prices: what its calls would cost on another box.

use std::collections::BTreeMap;
use systoll_model::{Errno, Price, Prices, Recording, Row, Sysno};

/// Least number of a row's calls for a price of its usual error.
const OWN_PRICE: u64 = 1_000;
/// Largest number of errors of system calls with a price of their own, since each takes
/// milliseconds to measure.
const MAX_OWN: usize = 8;

/// Returns the calls that a recording needs prices of, those made most first.
pub fn calls_to_price(recording: &Recording) -> Vec<Sysno> {
    recording.by_syscall().into_iter().filter(|t| t.counts.calls > 0).map(|t| t.syscall).collect()
}

/// Gives every row its toll: its calls at the prices of `prices`, or at the crossing's if a call
/// has none. A row that mostly failed with one error is priced by `of_failing`, if that knows a
/// price.
pub fn price(recording: &mut Recording, prices: Prices, mut of_failing: impl FnMut(Sysno, Errno) -> Option<Price>) {
    let crossing = prices.crossing_ns();
    let mut own: BTreeMap<(Sysno, Errno), Option<Price>> = BTreeMap::new();
    let mut per_call = |row: &Row| {
        let calls = row.counts.calls;
        let usual = prices.calls.get(&row.syscall).map_or(crossing, |p| p.ns);
        let mostly = row.counts.errors.iter().find(|(errno, n)| **errno != Errno::UNKNOWN && **n > calls / 10 * 9);
        let Some((errno, _)) = mostly.filter(|_| calls >= OWN_PRICE) else { return usual };
        let room = own.len() < MAX_OWN;
        let key = (row.syscall, *errno);
        let known = if room {
            *own.entry(key).or_insert_with(|| of_failing(key.0, key.1))
        } else {
            own.get(&key).copied().flatten()
        };
        known.map_or(usual, |p| p.ns)
    };
    let mut total = 0u64;
    for row in &mut recording.rows {
        // The time that a table gives for its calls is better than a price of another box.
        let toll = row.counts.toll_ns.unwrap_or_else(|| (per_call(row).max(0.0) * row.counts.calls as f64) as u64);
        row.counts.toll_ns = Some(toll);
        total = total.saturating_add(toll);
    }
    for thread in &mut recording.threads {
        for calls in &mut thread.calls {
            let each = prices.calls.get(&calls.syscall).map_or(crossing, |p| p.ns);
            calls.toll_ns = Some((each.max(0.0) * calls.calls as f64) as u64);
        }
    }
    let header = &mut recording.header;
    header.toll_estimated = true;
    // The program's processor time is its computing between the calls and the calls themselves.
    header.own_cpu_most_ns = header.own_cpu_most_ns.map(|computed| computed.saturating_add(total));
    recording.prices = prices;
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, PriceSource, ProcessId, Spread};

    #[test]
    fn tolls_are_calls_at_their_price() {
        let row = |syscall, errno: Option<Errno>| {
            Row::new(
                ProcessId(0),
                syscall,
                Counts { calls: 2_000, errors: errno.map(|e| (e, 2_000)).into_iter().collect(), ..Counts::default() },
            )
        };
        let rows = vec![row(Sysno(39), None), row(Sysno(4), Some(Errno::ENOENT)), row(Sysno(1), None)];
        let mut recording = Recording { rows, ..Recording::default() };
        recording.header.own_cpu_most_ns = Some(1_000);
        let price = |ns| Price { ns, low: ns, high: ns, source: PriceSource::Measured };
        let crossing = Spread { min: 50.0, median: 50.0, high: 60.0 };
        let prices = Prices {
            crossing_before: crossing,
            crossing_after: crossing,
            calls: [(Sysno(39), price(100.0)), (Sysno(4), price(900.0))].into(),
            ..Prices::default()
        };
        super::price(&mut recording, prices, |_, errno| (errno == Errno::ENOENT).then(|| price(500.0)));
        let tolls: Vec<Option<u64>> = recording.rows.iter().map(|r| r.counts.toll_ns).collect();
        assert_eq!(tolls, [Some(200_000), Some(1_000_000), Some(100_000)]);
        assert_eq!(recording.header.own_cpu_most_ns, Some(1_301_000));
        assert_eq!(calls_to_price(&recording).len(), 3);
    }
}
