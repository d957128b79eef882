//! The number of requests of each kind, from the exact number of receives and those that were looked at one by one.
//!
//! A receive is looked at by its number among its thread's, whatever it receives, so it makes no difference which thread
//! takes up which request, nor when.

use super::interval::Interval;
use crate::collections::hash::Map;
use crate::collections::sums::Sums;
use crate::results::finding::Estimate;
use std::collections::BTreeMap;
use systoll_model::{ProcessId, ReceivedCalls, Recording, RequestKindId, RequestProtocol, RowId};

/// The receives of a run.
#[derive(Default)]
pub(super) struct Received {
    /// The number of requests of each kind.
    pub(super) requests: BTreeMap<RequestKindId, Estimate>,
    /// Receives that were looked at, by protocol.
    pub(super) calls: Map<RequestProtocol, u64>,
    /// Receives that no look stands for.
    pub(super) unseen: u64,
}

/// The receives of a row that were looked at.
#[derive(Default)]
struct OfRow {
    /// By the number of receives for which each stands: the numbers of those looked at, by kind.
    parts: BTreeMap<u64, BTreeMap<RequestKindId, u64>>,
}

/// The requests of a kind in a row, or in a process.
#[derive(Clone, Copy, Default)]
struct OfKind {
    /// Number of requests that stand for themselves.
    surely: u64,
    /// Number of requests that were looked at.
    seen: u64,
    sampled: Interval,
}

impl OfKind {
    /// Returns the number of requests if `unseen` receives more may have begun one, each with the probability `share`.
    fn estimate(&self, unseen: u64, share: f64) -> Estimate {
        let Interval { estimate, below, above } = self.sampled;
        let surely = self.surely as f64;
        let round = |calls: f64| calls.round() as u64;
        let all = round(surely + estimate + unseen as f64 * share).max(self.seen);
        let (low, high) = ((surely + estimate - below).floor(), (surely + estimate + above).ceil() as u64);
        Estimate {
            estimate: all,
            low: (low.max(0.0) as u64).clamp(self.seen, all),
            high: high.saturating_add(unseen).max(all),
        }
    }
}

impl OfRow {
    fn add(&mut self, of: &ReceivedCalls) {
        self.parts.entry(of.stands_for.max(1)).or_default().add(of.kind, of.receives);
    }

    /// Returns the requests of each kind among `calls` receives, and the number of receives that no look stands for.
    fn requests(&self, calls: u64) -> (BTreeMap<RequestKindId, OfKind>, u64) {
        let receives = |kinds: &BTreeMap<RequestKindId, u64>| kinds.values().fold(0, |a: u64, n| a.saturating_add(*n));
        let single = self.parts.get(&1).map_or(0, receives);
        let stand_for = |(each, kinds): (&u64, &BTreeMap<_, _>)| *each as f64 * receives(kinds) as f64;
        let sampled: f64 = self.parts.iter().filter(|(each, _)| **each > 1).map(stand_for).sum();
        let rest = calls.saturating_sub(single);
        // The sample of a thread's last calls stands for more calls than the thread has made since, so the sum may be
        // too high.
        let scale = if sampled > rest as f64 { rest as f64 / sampled } else { 1.0 };
        let unseen = rest.saturating_sub(sampled as u64);
        let mut all: BTreeMap<RequestKindId, OfKind> = BTreeMap::new();
        for kind in self.parts.values().flat_map(BTreeMap::keys) {
            all.entry(*kind).or_default();
        }
        for (kind, sum) in &mut all {
            for (each, kinds) in &self.parts {
                let with = kinds.get(kind).copied().unwrap_or(0);
                sum.seen = sum.seen.saturating_add(with);
                if *each == 1 {
                    sum.surely = with;
                } else {
                    sum.sampled = sum.sampled + Interval::of_share(with, receives(kinds), *each as f64 * scale);
                }
            }
        }
        (all, unseen)
    }
}

/// Returns the number of requests that the rows' exact counts tell, and the receives that were looked at.
pub(super) fn received(recording: &Recording) -> Received {
    let mut rows: BTreeMap<RowId, OfRow> = BTreeMap::new();
    recording.received.iter().for_each(|of| rows.entry(of.row).or_default().add(of));
    // Where none was looked at by itself, windows show some.
    let looked_at: Vec<RowId> = rows.keys().copied().collect();
    for call in recording.windows.iter().flat_map(|window| &window.calls) {
        if let Some(kind) = call.request.filter(|_| looked_at.binary_search(&call.row).is_err()) {
            rows.entry(call.row).or_default().add(&ReceivedCalls { row: call.row, kind, stands_for: 1, receives: 1 });
        }
    }
    let mut received = Received::default();
    let mut processes: BTreeMap<ProcessId, (BTreeMap<RequestKindId, OfKind>, u64, u64)> = BTreeMap::new();
    for (id, row) in (0..).map(RowId).zip(&recording.rows) {
        let of_row = rows.remove(&id);
        // A read of which nothing is known may be one of a file.
        let is_of_socket = row.syscall.name().is_some_and(|name| matches!(name, "recvfrom" | "recvmsg"));
        let Some(of_row) = of_row.or_else(|| is_of_socket.then(OfRow::default)) else { continue };
        let protocol = |kind: &RequestKindId| recording.request_kinds.get(kind.0 as usize).map(|kind| kind.protocol);
        let of_protocol = |(kind, n): (&RequestKindId, &u64)| (protocol(kind).unwrap_or(RequestProtocol::None), *n);
        let parts: Vec<(RequestProtocol, u64)> = of_row.parts.values().flatten().map(of_protocol).collect();
        if !is_of_socket && parts.iter().all(|(protocol, _)| *protocol == RequestProtocol::None) {
            continue;
        }
        parts.into_iter().for_each(|(protocol, n)| received.calls.add(protocol, n));
        let (kinds, unseen) = of_row.requests(row.counts.calls);
        let (all, all_unseen, seen) = processes.entry(row.process).or_default();
        *all_unseen = all_unseen.saturating_add(unseen);
        for (kind, of) in kinds {
            *seen = seen.saturating_add(of.seen);
            let sum = all.entry(kind).or_default();
            sum.surely = sum.surely.saturating_add(of.surely);
            sum.seen = sum.seen.saturating_add(of.seen);
            sum.sampled = sum.sampled + of.sampled;
        }
    }
    for (kinds, unseen, seen) in processes.into_values() {
        received.unseen = received.unseen.saturating_add(unseen);
        for (kind, of) in kinds {
            if recording.begins_request(kind) {
                let sum = received.requests.entry(kind).or_default();
                *sum = sum.and(of.estimate(unseen, of.seen as f64 / seen.max(1) as f64));
            }
        }
    }
    received
}

/// Returns true if windows show requests on one connection that several threads have begun.
pub(super) fn moves(recording: &Recording) -> bool {
    let mut threads: Map<(ProcessId, &str), u32> = Map::default();
    for window in &recording.windows {
        for call in window.calls.iter().filter(|call| call.request.is_some_and(|kind| recording.begins_request(kind))) {
            let Some(fd) = call.fd.as_deref() else { continue };
            if *threads.entry((window.process, fd)).or_insert(window.thread) != window.thread {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, RequestKind, Row, Sysno};

    /// The kind of receives that begin no request.
    const NONE: u32 = 2;

    /// Returns a recording. `rows` has each row's system call and number of receives; `looked_at` has the receives that
    /// were looked at: row, kind, the number for which each stands, and their number.
    fn recording(rows: &[(&str, u64)], looked_at: &[(u32, u32, u64, u64)]) -> Recording {
        let row = |(name, calls): &(&str, u64)| {
            Row::new(ProcessId(0), Sysno::from_name(name).unwrap(), Counts { calls: *calls, ..Counts::default() })
        };
        let kind = |protocol, name: &str| RequestKind { protocol, name: name.into() };
        let of = |(row, kind, stands_for, receives): &(u32, u32, u64, u64)| ReceivedCalls {
            row: RowId(*row),
            kind: RequestKindId(*kind),
            stands_for: *stands_for,
            receives: *receives,
        };
        Recording {
            rows: rows.iter().map(row).collect(),
            request_kinds: vec![
                kind(RequestProtocol::Http, "GET /a"),
                kind(RequestProtocol::Http, "GET /b"),
                kind(RequestProtocol::None, ""),
            ],
            received: looked_at.iter().map(of).collect(),
            ..Recording::default()
        }
    }

    fn told(rows: &[(&str, u64)], looked_at: &[(u32, u32, u64, u64)]) -> (Vec<Estimate>, u64) {
        let received = received(&recording(rows, looked_at));
        (received.requests.values().copied().collect(), received.unseen)
    }

    #[test]
    fn where_every_receive_was_looked_at_the_number_is_exact() {
        let exact = |n| Estimate { estimate: n, low: n, high: n };
        let all =
            told(&[("recvfrom", 100), ("read", 7)], &[(0, 0, 1, 40), (0, 1, 1, 10), (0, NONE, 1, 50), (1, 0, 1, 7)]);
        assert_eq!(all, (vec![exact(47), exact(10)], 0));
    }

    #[test]
    fn receives_that_nothing_stands_for_may_all_have_begun_a_request() {
        // 80 of 100 receives were looked at; half of them began a request.
        let (of, unseen) = told(&[("recvfrom", 100)], &[(0, 0, 1, 40), (0, NONE, 1, 40)]);
        assert_eq!((of, unseen), (vec![Estimate { estimate: 50, low: 40, high: 60 }], 20));
        // No call of another receiving row was looked at: each may have begun a request.
        let (of, unseen) = told(&[("recvfrom", 80), ("recvmsg", 5)], &[(0, 0, 1, 40), (0, NONE, 1, 40)]);
        assert_eq!((of[0].low, of[0].high, unseen), (40, 45, 5));
        // A `read` may be of a file, so it is not counted as a receive of which nothing is known.
        assert_eq!(told(&[("recvfrom", 80), ("read", 5)], &[(0, 0, 1, 40), (0, NONE, 1, 40)]).1, 0);
    }

    #[test]
    fn samples_have_bounds_around_their_share() {
        let (of, unseen) =
            told(&[("recvfrom", 100 + 8_000)], &[(0, 0, 1, 50), (0, NONE, 1, 50), (0, 0, 8, 500), (0, NONE, 8, 500)]);
        assert!(of[0].estimate == 4_050 && of[0].low < 3_950 && of[0].low > 3_500, "{of:?}");
        assert!(of[0].high > 4_150 && of[0].high < 4_600 && unseen == 0, "{of:?}");
        // The samples stand for 8,000 calls, but only 7,990 were made.
        let (of, unseen) = told(&[("recvfrom", 7_990)], &[(0, 0, 8, 500), (0, NONE, 8, 500)]);
        assert_eq!((of[0].estimate, unseen), (3_995, 0));
        // A kind that no sample has met is not in the report; one that a few have met has wide bounds.
        let (of, _) = told(&[("recvfrom", 8_000)], &[(0, 0, 8, 1), (0, NONE, 8, 999)]);
        assert!(of[0].low >= 1 && of[0].low < 3 && of[0].high > 35, "{of:?}");
    }

    #[test]
    fn hostile_numbers_do_no_harm() {
        let most = u64::MAX;
        let (of, _) = told(&[("read", 3)], &[(0, 0, most, most), (0, 1, 0, 5), (0, NONE, 1, most), (0, 0, 3, 0)]);
        assert!(of.iter().all(|of| of.low <= of.estimate && of.estimate <= of.high), "{of:?}");
    }
}
