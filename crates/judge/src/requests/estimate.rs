//! How many requests of each kind were received, from the exact number of receives and the windows that show some.
//!
//! Each receive belongs to a request, if only to find that nothing has come or that the client has gone. So the number of
//! requests is that of the receives divided by the receives that one request takes, kind by kind.

use super::split::{Piece, Whole};
use crate::finding::Estimate;
use crate::grouping::unseen_share;
use crate::hash::Map;
use std::collections::BTreeMap;
use systoll_model::{ProcessId, Recording, RequestKindId, RequestProtocol, RowId, Window};

/// The receives of a run.
#[derive(Default)]
pub(super) struct Received {
    /// The number of requests of each kind.
    pub(super) requests: Map<RequestKindId, Estimate>,
    /// Receives in windows by protocol.
    pub(super) calls: Map<RequestProtocol, u64>,
    /// Windows that tell requests.
    pub(super) windows: u64,
    /// True if requests of one connection were begun by several threads.
    pub(super) moves: bool,
}

/// The receives of a process.
#[derive(Default)]
struct OfProcess<'a> {
    /// The thread that began the first request on each connection.
    connections: Map<&'a str, u32>,
    /// True if another thread began one there too.
    moves: bool,
    /// Receives in windows, without those that end one, and the requests that they begin.
    received: u64,
    begun: Map<RequestKindId, u64>,
    windows: Vec<InWindow>,
    /// Receives in windows, and other calls of the same rows there.
    rows: Map<RowId, (u64, u64)>,
}

impl<'a> OfProcess<'a> {
    /// Notes which connections requests came by, and how many receives began one.
    fn note(&mut self, recording: &Recording, window: &'a Window) {
        let last = window.calls.len().saturating_sub(1);
        for (at, call) in window.calls.iter().enumerate() {
            let Some(id) = call.request else { continue };
            let begins = recording.request_kinds.get(id.0 as usize).is_some_and(|kind| kind.protocol.has_requests());
            if let Some(fd) = call.fd.as_deref().filter(|_| begins) {
                self.moves |= *self.connections.entry(fd).or_insert(window.thread) != window.thread;
            }
            // A window ends where a request begins: counting that would make requests of other receives.
            if at == last && at > 0 && begins {
                continue;
            }
            self.received += 1;
            if begins {
                *self.begun.entry(id).or_default() += 1;
            }
        }
    }

    /// Returns the number of requests of a kind among `all` receives, if requests of one connection go from thread to
    /// thread: no thread's calls tell then how many receives one takes. By the share of receives that begin one; the bounds
    /// are what was seen and all receives.
    fn roughly(&self, kind: RequestKindId, all: f64) -> Estimate {
        let n = self.begun.get(&kind).copied().unwrap_or(0);
        let calls = n as f64 / self.received.max(1) as f64 * all;
        let round = |calls: f64| calls.round() as u64;
        Estimate { estimate: round(calls).max(n), low: n, high: round(all).max(n) }
    }
}

/// The receives of one window that belong to requests.
#[derive(Default)]
struct InWindow {
    thread: u32,
    /// Row of the window's first call, and its number among the thread's calls of the row.
    first: (RowId, u64),
    /// True if the window opened where a request began.
    at_begin: bool,
    /// Requests of each kind, and their receives.
    kinds: BTreeMap<RequestKindId, (u64, u64)>,
    /// Number of receives that the window stands for.
    weight: f64,
}

impl InWindow {
    fn receives(&self) -> u64 {
        self.kinds.values().map(|(_, receives)| receives).sum()
    }

    /// Returns the number of requests of a kind.
    fn requests(&self, kind: RequestKindId) -> u64 {
        self.kinds.get(&kind).map_or(0, |(requests, _)| *requests)
    }

    /// Returns the thread, and the row whose calls tell the window's place among them.
    fn place(&self) -> (u32, RowId) {
        (self.thread, self.first.0)
    }
}

/// Returns the number of requests that the rows' exact counts and windows tell. `pieces` are the requests in each
/// window.
pub(super) fn received(recording: &Recording, pieces: &[Vec<Piece>]) -> Received {
    let mut received = Received::default();
    let mut processes: BTreeMap<ProcessId, OfProcess<'_>> = BTreeMap::new();
    for (window, pieces) in recording.windows.iter().zip(pieces) {
        if window.calls.iter().all(|call| call.request.is_none()) {
            continue;
        }
        received.windows += 1;
        for kind in window.calls.iter().filter_map(|call| call.request) {
            let protocol = recording.request_kinds.get(kind.0 as usize).map(|kind| kind.protocol);
            *received.calls.entry(protocol.unwrap_or(RequestProtocol::None)).or_default() += 1;
        }
        let of_process = processes.entry(window.process).or_default();
        for call in &window.calls {
            let (receives, others) = of_process.rows.entry(call.row).or_default();
            *(if call.request.is_some() { receives } else { others }) += 1;
        }
        of_process.note(recording, window);
        of_process.windows.extend(in_window(window, pieces));
    }
    for of_process in processes.into_values() {
        received.moves |= of_process.moves;
        add(&mut received.requests, recording, of_process);
    }
    received
}

/// Returns the receives of a window that belong to requests: whole ones, or if there are none, any; `None` if no request
/// was begun.
fn in_window(window: &Window, pieces: &[Piece]) -> Option<InWindow> {
    let any_whole = pieces.iter().any(|piece| piece.end == Whole::Yes);
    let first = window.calls.first().map(|call| (call.row, call.nth))?;
    let at_begin =
        window.calls.first().is_some_and(|call| pieces.first().is_some_and(|piece| call.request == Some(piece.kind)));
    let mut here = InWindow { thread: window.thread, first, at_begin, ..InWindow::default() };
    for piece in pieces.iter().filter(|piece| !any_whole || piece.end == Whole::Yes) {
        let (requests, receives) = here.kinds.entry(piece.kind).or_default();
        *requests += 1;
        *receives += piece.calls.iter().filter(|call| call.receives).count() as u64;
    }
    (here.receives() > 0).then_some(here)
}

/// Adds the requests of a process.
fn add(requests: &mut Map<RequestKindId, Estimate>, recording: &Recording, mut of: OfProcess<'_>) {
    let calls = |row: RowId| recording.rows.get(row.0 as usize).map_or(0, |row| row.counts.calls);
    let received = of.rows.iter().filter(|(_, (receives, _))| *receives > 0);
    let (mut all, mut shown) = (0.0, 0);
    for (row, (receives, others)) in received {
        // Where a row reads from files too, these are left out as windows show them.
        all += calls(*row) as f64 * *receives as f64 / (receives + others) as f64;
        shown += receives;
    }
    let is_whole = shown as f64 >= all;
    // Where requests go from thread to thread, one that often finds nothing opens many windows: those that open at a
    // request are a sample of requests.
    if of.windows.iter().any(|window| window.at_begin) {
        of.windows.retain(|window| window.at_begin || is_whole);
    }
    weigh(&mut of.windows, all);
    let mut kinds: Vec<RequestKindId> = of.windows.iter().flat_map(|window| window.kinds.keys().copied()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let sum = requests.entry(kind).or_default();
        let rough = of.moves && !is_whole;
        *sum = sum.and(if rough { of.roughly(kind, all) } else { estimate(&of.windows, kind, all, is_whole) });
    }
}

/// Weighs windows: each stands for the calls of its thread up to the next one. Windows open at times, and a thread makes
/// many calls at some times and few at others. The last one of a thread stands for as many as those before it, or for
/// what is left of `all` calls if there is no other thread.
fn weigh(windows: &mut [InWindow], all: f64) {
    windows.sort_by_key(|window| (window.thread, window.first));
    let is_one = windows.first().map(InWindow::place) == windows.last().map(InWindow::place);
    for together in windows.chunk_by_mut(|a, b| a.place() == b.place()) {
        let firsts: Vec<u64> = together.iter().map(|window| window.first.1).collect();
        let (start, end) = (firsts.first().copied().unwrap_or(0), firsts.last().copied().unwrap_or(0));
        let mean = end.saturating_sub(start) as f64 / (firsts.len().saturating_sub(1)).max(1) as f64;
        for (at, window) in together.iter_mut().enumerate() {
            let own = window.receives() as f64;
            window.weight = match firsts.get(at + 1) {
                Some(next) => (next.saturating_sub(window.first.1) as f64).max(own),
                None if is_one => (all - window.first.1 as f64).max(own),
                None => mean.max(own),
            };
        }
        if let Some(first) = together.first_mut() {
            first.weight += start.saturating_sub(1) as f64;
        }
    }
}

/// Returns the number of requests of a kind among `all` receives. `is_whole`: windows show all of them.
fn estimate(windows: &[InWindow], kind: RequestKindId, all: f64, is_whole: bool) -> Estimate {
    let n: u64 = windows.iter().map(|window| window.requests(kind)).sum();
    if is_whole {
        return Estimate { estimate: n, low: n, high: n };
    }
    let sum = |of: &dyn Fn(&InWindow) -> f64, windows: &[InWindow]| windows.iter().map(of).sum::<f64>();
    let weight = sum(&|window| window.weight, windows).max(1.0);
    // The requests for each receive, thread by thread: some threads may do little else than find nothing.
    let of_thread = |together: &[InWindow]| {
        let requests = sum(&|window| window.weight * window.requests(kind) as f64, together);
        let receives = sum(&|window| window.weight * window.receives() as f64, together);
        sum(&|window| window.weight, together) * requests / receives.max(1.0)
    };
    let each = windows.chunk_by(|a, b| a.place() == b.place()).map(of_thread).sum::<f64>() / weight;
    // Windows are what was drawn: the requests of one window are alike.
    let part = |window: &InWindow| window.requests(kind) as f64 / window.receives().max(1) as f64;
    let scatter = 2.0 * sum(&|window| (window.weight * (part(window) - each)).powi(2), windows).sqrt() / weight;
    let several = windows.len() > 1 && scatter > 0.0;
    let doubt = if several { scatter } else { each * unseen_share(windows.len() as u64, u64::MAX) };
    let requests = |each: f64| (each.clamp(0.0, 1.0) * all).round() as u64;
    let estimate = requests(each).max(n);
    Estimate { estimate, low: requests(each - doubt).clamp(n, estimate), high: requests(each + doubt).max(estimate) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: RequestKindId = RequestKindId(0);

    /// Returns windows of one request each, at each of these calls, with so many receives a request; every second one is
    /// of [`KIND`].
    fn windows(firsts: &[u64], receives: u64) -> Vec<InWindow> {
        let here = |(at, first): (usize, &u64)| InWindow {
            first: (RowId(0), *first),
            kinds: BTreeMap::from([(RequestKindId(at as u32 % 2), (1, receives))]),
            ..InWindow::default()
        };
        firsts.iter().enumerate().map(here).collect()
    }

    fn told(mut windows: Vec<InWindow>, all: f64, is_whole: bool) -> Estimate {
        weigh(&mut windows, all);
        estimate(&windows, KIND, all, is_whole)
    }

    fn evenly(windows: u64, calls: u64) -> Vec<u64> {
        (0..windows).map(|at| 1 + at * calls / windows).collect()
    }

    #[test]
    fn few_windows_leave_wide_bounds() {
        assert_eq!(told(windows(&evenly(50, 100), 2), 100.0, true), Estimate { estimate: 25, low: 25, high: 25 });
        let few = told(windows(&[1], 2), 1_000.0, false);
        assert!(few.estimate == 500 && few.low < 50 && few.high > 900, "{few:?}");
        let many = told(windows(&evenly(500, 100_000), 2), 100_000.0, false);
        assert!(many.estimate == 25_000 && many.low > 22_000 && many.high < 28_000, "{many:?}");
        let some = told(windows(&evenly(6, 100_000), 2), 100_000.0, false);
        assert!(some.estimate.abs_diff(25_000) < 10 && some.high - some.low > many.high - many.low, "{some:?}");
    }

    #[test]
    fn a_window_stands_for_the_calls_up_to_the_next() {
        // Few windows open while many calls are made.
        assert_eq!(told(windows(&[1, 1_001, 9_001], 1), 10_001.0, false).estimate, 2_000);
    }
}
