//! Computes the number of calls over time. Windows know exactly which call of its row was made
//! when; between these points, the count is interpolated linearly.

use crate::judged_recording::JudgedRecording;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use systoll_model::{Recording, Row, RowId, Sysno};

/// Number of points in time at which counts are given.
const POINTS: u32 = 160;
/// Largest number of system calls with a line of their own.
const LINES: usize = 6;

/// The number of a row's calls at a time.
#[derive(Clone, Copy)]
struct CountAt {
    at_ns: u64,
    calls: u64,
}

/// Returns the calls so far at each of several times: `{"times": […], "main_ns": …, "series":
/// [{"name", "calls": […]}]}`.
pub(super) fn timeline(judged: &JudgedRecording<'_>) -> Value {
    let rec = judged.recording;
    let mut known = known(rec);
    let end = rec.header.wall_ns.max(known.values().flatten().map(|k| k.at_ns).max().unwrap_or(0));
    if known.is_empty() || end == 0 {
        return json!({"times": [], "main_ns": null, "series": []});
    }
    let times: Vec<u64> = (0..=POINTS).map(|i| (u128::from(end) * u128::from(i) / u128::from(POINTS)) as u64).collect();
    let mut sums: BTreeMap<Sysno, Vec<f64>> = BTreeMap::new();
    for (index, row) in rec.rows.iter().enumerate() {
        let places = places(rec, row, known.remove(&RowId(index as u32)).unwrap_or_default(), end);
        let sum = sums.entry(row.syscall).or_insert_with(|| vec![0.0; times.len()]);
        for (sum, at) in sum.iter_mut().zip(&times) {
            *sum += so_far(&places, *at);
        }
    }
    let mut lines: Vec<(Sysno, Vec<f64>)> = sums.into_iter().collect();
    let last = |line: &[f64]| line.last().copied().unwrap_or(0.0);
    lines.sort_by(|a, b| last(&b.1).total_cmp(&last(&a.1)).then(a.0.cmp(&b.0)));
    let rest = lines.split_off(lines.len().min(LINES));
    let mut series: Vec<Value> = lines.iter().map(|(syscall, line)| one(&syscall.to_string(), line)).collect();
    if !rest.is_empty() {
        let sum = |at: usize| rest.iter().filter_map(|(_, line)| line.get(at)).sum();
        series.push(one("all others", &(0..times.len()).map(sum).collect::<Vec<f64>>()));
    }
    let main = rec.processes.first().and_then(|p| p.main_at_ns);
    json!({"times": times, "main_ns": main.filter(|at| *at <= end), "series": series})
}

/// Returns a row's known counts, from zero at its process's start to all calls at its end.
fn places(rec: &Recording, row: &Row, seen: Vec<CountAt>, end: u64) -> Vec<CountAt> {
    let process = rec.process(row.process);
    let first = seen.first().map_or(end, |k| k.at_ns);
    let last = seen.last().map_or(0, |k| k.at_ns);
    let ended = if process.end_ns == 0 { end } else { process.end_ns.min(end) };
    let start = CountAt { at_ns: process.start_ns.min(first), calls: 0 };
    let all = CountAt { at_ns: ended.max(last).max(start.at_ns), calls: row.counts.calls };
    std::iter::once(start).chain(seen).chain([all]).collect()
}

fn one(name: &str, calls: &[f64]) -> Value {
    json!({"name": name, "calls": calls.iter().map(|n| n.round() as u64).collect::<Vec<u64>>()})
}

/// Returns the counts that windows know of each row, in the order of time, never falling.
fn known(rec: &Recording) -> BTreeMap<RowId, Vec<CountAt>> {
    let mut known: BTreeMap<RowId, Vec<CountAt>> = BTreeMap::new();
    for call in rec.windows.iter().flat_map(|w| &w.calls) {
        known.entry(call.row).or_default().push(CountAt { at_ns: call.entry_ns, calls: call.nth });
    }
    for (id, places) in &mut known {
        places.sort_by_key(|k| (k.at_ns, k.calls));
        let (mut most, all) = (0, rec.row(*id).counts.calls);
        for place in places {
            most = place.calls.min(all).max(most);
            place.calls = most;
        }
    }
    known
}

/// Returns the count at a time, interpolated between two known counts.
fn so_far(places: &[CountAt], at: u64) -> f64 {
    let next = places.partition_point(|k| k.at_ns <= at);
    let after = places.get(next);
    match (next.checked_sub(1).and_then(|before| places.get(before)), after) {
        (None, _) => 0.0,
        (Some(before), None) => before.calls as f64,
        (Some(before), Some(after)) => {
            let share = (at - before.at_ns) as f64 / after.at_ns.saturating_sub(before.at_ns).max(1) as f64;
            before.calls as f64 + share * after.calls.saturating_sub(before.calls) as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_interpolated_between_known_points() {
        let places =
            [CountAt { at_ns: 10, calls: 0 }, CountAt { at_ns: 20, calls: 100 }, CountAt { at_ns: 20, calls: 110 }];
        let at = [0, 10, 15, 20, 99].map(|at| so_far(&places, at));
        assert_eq!(at, [0.0, 0.0, 50.0, 110.0, 110.0]);
    }
}
