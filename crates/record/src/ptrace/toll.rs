//! Estimates the cost of calls around which no clock could be read: their number times this machine's price.

use super::calibrate::Cost;
use super::sampler::Sampler;
use crate::raw_window::RawWindow;
use crate::table::{RawRow, Table};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use systoll_model::{Price, PriceSource, Prices, Sysno};

/// System calls that are priced by trying them, at most; those with the most calls come first.
const MAX_PRICED: usize = 40;
/// Number of calls from which on a row gets a price of its own outcome.
const OWN_PRICE: u64 = 1_000;
/// Rows that get a price of their own outcome, at most.
const MAX_OWN: usize = 8;
/// Number of sampled calls from which on their processor time is used as a price.
const MIN_IN_CALL: u64 = 8;

/// The cost of watching, which is subtracted from the target's processor time.
pub(super) struct Observer {
    cpu_ns_per_call: f64,
    /// Ratio of the cost of a call's two stops to the part of it that falls between them.
    per_inside: f64,
    crossing: f64,
}

impl Observer {
    /// Creates the cost by the calibration on an idle child of our own.
    pub(super) fn calibrated(cost: Cost, crossing: f64) -> Self {
        let cpu_ns_per_call = (cost.cpu_ns - crossing).max(0.0);
        let inside = (cost.inside_ns - crossing).max(1.0);
        // Both stops do nearly the same work, so a factor far from two is a disturbed calibration.
        Self { cpu_ns_per_call, per_inside: (cpu_ns_per_call / inside).clamp(1.8, 2.6), crossing }
    }

    /// Replaces the cost by one from the run's own samples, if there are enough.
    pub(super) fn seen(self, sampler: &Sampler, prices: &Prices) -> Self {
        let seen = sampler.stop_ns(&prices.calls).map(|ns| self.per_inside * ns);
        Self { cpu_ns_per_call: seen.unwrap_or(self.cpu_ns_per_call), ..self }
    }

    pub(super) fn cpu_ns_per_call(&self) -> f64 {
        self.cpu_ns_per_call
    }

    /// Subtracts the cost of watching `calls` calls from a processor time, ns.
    pub(super) fn taken_off(&self, cpu_ns: u64, calls: u64) -> u64 {
        (cpu_ns as f64 - self.cpu_ns_per_call * calls as f64).max(0.0) as u64
    }
}

/// Returns the toll of every row, ns. Adds the prices that it finds to `prices`.
pub(super) fn tolls(table: &Table, windows: &[&RawWindow], observer: &Observer, prices: &mut Prices) -> Vec<u64> {
    prices.calls = price_calls(table, observer);
    let mut own = 0;
    let toll = |(id, row): (usize, &RawRow)| {
        let calls = row.counts.calls;
        let mut price = prices.calls.get(&row.syscall).map_or(observer.crossing, |p| p.ns);
        if calls >= OWN_PRICE
            && own < MAX_OWN
            && let Some(better) = price_of_outcome(id as u32, row, windows, table)
        {
            own += 1;
            price = better.ns;
        }
        // Of calls that were timed, the price is an upper bound as their time is.
        let (inside, ns) = row.inside;
        (price * calls.saturating_sub(inside) as f64 + (price * inside as f64).min(ns as f64)) as u64
    };
    table.rows.iter().enumerate().map(toll).collect()
}

/// Returns a price for every system call of the run: found by trying it now; otherwise by the processor time of its
/// sampled calls; otherwise the price of the crossing alone.
fn price_calls(table: &Table, observer: &Observer) -> BTreeMap<Sysno, Price> {
    let mut calls: BTreeMap<Sysno, (u64, (u64, u64))> = BTreeMap::new();
    for row in &table.rows {
        let entry = calls.entry(row.syscall).or_default();
        entry.0 += row.counts.calls;
        entry.1.0 += row.in_call.0;
        entry.1.1 += row.in_call.1;
    }
    let mut most: Vec<_> = calls.iter().filter(|(_, (n, _))| *n > 0).map(|(s, (n, _))| (*n, *s)).collect();
    most.sort_unstable_by(|a, b| b.cmp(a));
    let measured = systoll_price::prices_of(most.into_iter().take(MAX_PRICED).map(|(_, s)| s));
    calls
        .into_iter()
        .map(|(syscall, (_, in_call))| {
            let price = measured.get(&syscall).copied().or_else(|| ran_inside(in_call, observer));
            (syscall, price.unwrap_or_else(|| crossing_only(observer.crossing)))
        })
        .collect()
}

fn crossing_only(ns: f64) -> Price {
    Price { ns, low: ns, high: f64::INFINITY, source: PriceSource::CrossingOnly }
}

/// Returns the price of a call by the processor time of its sampled calls. One of the two stops falls inside the call,
/// so half of the time that watching adds is subtracted; that half is itself uncertain.
fn ran_inside((sum, calls): (u64, u64), observer: &Observer) -> Option<Price> {
    if calls < MIN_IN_CALL {
        return None;
    }
    let added = observer.cpu_ns_per_call() / 2.0;
    let mean = sum as f64 / calls as f64;
    let ns = (mean - added).max(observer.crossing);
    (mean > 2.0 * added).then_some(Price {
        ns,
        low: (mean - 1.5 * added).max(observer.crossing),
        high: mean,
        source: PriceSource::InCall,
    })
}

/// Returns the price of the usual outcome of a row's calls: a failure with one errno, or a stat of one path.
fn price_of_outcome(id: u32, row: &RawRow, windows: &[&RawWindow], table: &Table) -> Option<Price> {
    let calls = row.counts.calls;
    if let Some((errno, _)) = row.counts.errors.iter().find(|(_, n)| **n > calls / 10 * 9) {
        return systoll_price::price_of_failing(row.syscall, *errno);
    }
    let stats = Sysno::from_name("newfstatat")?;
    if row.syscall != stats || calls < table.calls / 100 {
        return None;
    }
    systoll_price::price_path_stat(&only_path(id, windows)?)
}

/// Returns the absolute path that every sampled call of the row names.
fn only_path(row: u32, windows: &[&RawWindow]) -> Option<PathBuf> {
    let calls = windows.iter().flat_map(|w| &w.calls).filter(|c| c.row == row);
    let mut paths = calls.filter_map(|c| c.data.iter().find(|d| d.arg == 1)).map(|d| &d.bytes);
    let first = paths.next()?;
    let path = PathBuf::from(OsStr::from_bytes(first));
    (path.is_absolute() && paths.all(|p| p == first)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watching_is_taken_off() {
        let observer = Observer::calibrated(Cost { cpu_ns: 5_100.0, wall_ns: 12_000.0, inside_ns: 2_600.0 }, 100.0);
        assert_eq!(observer.taken_off(10_000_000, 1_000), 5_000_000);
        assert_eq!(observer.taken_off(1_000, 1_000), 0);
        assert!(ran_inside((100_000, 10), &observer).is_some_and(|p| p.ns == 7_500.0));
        assert!(ran_inside((10_000, 10), &observer).is_none());
    }
}
