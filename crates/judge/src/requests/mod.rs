//! Computes the costs of each kind of request from the windows that were opened where a server received requests.
//!
//! A request is what its thread does from the receive that begins it to the next receive that begins one. A call on the
//! connection of a request that was begun and not answered belongs to that one; other calls belong to the request that
//! the thread has taken up last. A window goes on until its first requests are whole, so long requests are seen as often
//! as short ones.

mod cost;
mod estimate;
mod interval;
mod kind_sample;
mod split;

pub use cost::{Figure, Quantiles, RequestCall, RequestCost, Requests};

use crate::collections::hash::Map;
use crate::evidence::claim::Claims;
use crate::results::finding::Finding;
use kind_sample::KindSample;
use split::Piece;
use std::cmp::Reverse;
use systoll_model::{Recording, RequestKindId, RequestProtocol, RowId, StackId, Sysno, Window};

/// Returns the costs of a recording's requests, dearest first; `None` if they were not to be told.
pub(crate) fn requests(recording: &Recording, claims: &Claims, findings: &[Finding]) -> Option<Requests> {
    if recording.request_kinds.is_empty() {
        return None;
    }
    let needless = Needless::of(recording, claims, findings);
    let windows = recording.windows.iter().enumerate();
    let by_window: Vec<Vec<Piece>> = windows
        .map(|(at, window)| {
            let row = |index: usize| window.calls.get(index).map(|call| call.row);
            split::pieces(recording, window, &|index| needless.of_call(claims, at, index, row(index)))
        })
        .collect();
    let (received, moves) = (estimate::received(recording), estimate::moves(recording));
    let mut pieces: Map<RequestKindId, Vec<(usize, Piece)>> = Map::default();
    for (window, piece) in by_window.into_iter().enumerate().flat_map(|(at, all)| all.into_iter().map(move |p| (at, p)))
    {
        pieces.entry(piece.kind).or_default().push((window, piece));
    }
    let mut samples: Vec<KindSample> = received
        .requests
        .iter()
        .map(|(kind, requests)| KindSample::of(*kind, *requests, pieces.remove(kind).unwrap_or_default(), moves))
        .collect();
    weigh(&mut samples, recording);
    let mut costs: Vec<RequestCost> = samples.iter().map(|sample| cost::cost(recording, sample)).collect();
    costs.sort_by_key(|cost| (Reverse((cost.total_ns(), cost.requests.estimate)), cost.kind));
    let of = |protocol: RequestProtocol| received.calls.get(&protocol).copied().unwrap_or(0);
    let tells = |window: &&Window| window.calls.iter().any(|call| call.request.is_some());
    Some(Requests {
        costs,
        receives: received.calls.values().sum(),
        unseen: received.unseen,
        tls: of(RequestProtocol::Tls),
        http2: of(RequestProtocol::Http2),
        windows: recording.windows.iter().filter(tells).count() as u64,
        moves,
    })
}

/// Gives calls a weight below one where windows show more calls of a place, for all requests together, than its exact
/// count. Windows open on each thread that receives, whether it takes up many requests or few, so threads that do other work
/// between two requests, as accepting connections for others, are shown more often than their part of the requests. A
/// place is the same in all processes: of a server's workers, those that windows show more often have no more calls for
/// each request.
fn weigh(samples: &mut [KindSample], recording: &Recording) {
    let place = |row: RowId| recording.rows.get(row.0 as usize).map(|row| (row.syscall, row.context));
    let mut exact: Map<Option<(Sysno, StackId)>, f64> = Map::default();
    for row in &recording.rows {
        *exact.entry(Some((row.syscall, row.context))).or_default() += row.counts.calls as f64;
    }
    let mut implied: Map<Option<(Sysno, StackId)>, f64> = Map::default();
    for sample in samples.iter() {
        let each = sample.requests.estimate as f64 / sample.shown.len().max(1) as f64;
        for call in sample.shown.iter().flat_map(|(_, piece)| &piece.calls) {
            *implied.entry(place(call.row)).or_default() += each;
        }
    }
    let pieces = samples.iter_mut().flat_map(|sample| &mut sample.shown);
    for call in pieces.flat_map(|(_, piece)| &mut piece.calls) {
        let of = |sums: &Map<_, f64>| sums.get(&place(call.row)).copied().unwrap_or(0.0);
        let (exact, implied) = (of(&exact), of(&implied));
        if implied > exact {
            call.weight = exact / implied;
        }
    }
}

/// Needless shares of the rows whose findings rest on looks at single calls, without a claim in any window.
struct Needless {
    /// Needless share of each such row's calls, 0 to 1.
    by_looks: Map<RowId, f64>,
}

impl Needless {
    fn of(recording: &Recording, claims: &Claims, findings: &[Finding]) -> Self {
        let mut by_looks: Map<RowId, f64> = Map::default();
        for finding in findings {
            for (row, needless) in finding.rows.iter().zip(&finding.by_row) {
                let calls = recording.rows.get(row.0 as usize).map_or(0, |row| row.counts.calls).max(1);
                let share = by_looks.entry(*row).or_default();
                *share = (*share + needless.calls as f64 / calls as f64).min(1.0);
            }
        }
        // A row with a claim in a window is judged call by call.
        for (at, window) in recording.windows.iter().enumerate() {
            for (index, call) in window.calls.iter().enumerate() {
                if claims.at(at, index).is_some_and(|claim| !claim.weak) {
                    by_looks.remove(&call.row);
                }
            }
        }
        Self { by_looks }
    }

    /// Returns the needless part of a window's call, 0 to 1.
    fn of_call(&self, claims: &Claims, window: usize, index: usize, row: Option<RowId>) -> f64 {
        match claims.at(window, index) {
            Some(claim) if !claim.weak => 1.0,
            _ => row.and_then(|row| self.by_looks.get(&row)).copied().unwrap_or(0.0),
        }
    }
}
