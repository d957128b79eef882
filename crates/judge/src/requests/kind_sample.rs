//! The requests of one kind, as windows show them.

use super::split::{Piece, Whole};
use crate::results::finding::Estimate;
use systoll_model::RequestKindId;

/// The requests of one kind that windows show.
pub(super) struct KindSample {
    pub(super) kind: RequestKindId,
    /// Number of such requests in the run.
    pub(super) requests: Estimate,
    /// The shown requests, each with its window.
    pub(super) shown: Vec<(usize, Piece)>,
    /// True if none of them is whole.
    pub(super) at_least: bool,
    /// Number of requests that are longer than a window.
    pub(super) cut: u64,
}

impl KindSample {
    /// Returns the requests of a kind that are whole in their windows, or all if none is. `moves` is true if requests of one
    /// connection go from thread to thread.
    pub(super) fn of(kind: RequestKindId, requests: Estimate, pieces: Vec<(usize, Piece)>, moves: bool) -> Self {
        // A window may end before the answer. Where no thread of a window answers, a request ends when its thread takes up
        // another. Where requests move, their answers say nothing of the thread that took them up: those that the same
        // thread answers are the ones during which it was not taken from it, and have other calls than the rest.
        let any_answered = !moves && pieces.iter().any(|(_, piece)| piece.answered);
        let is_whole = |piece: &Piece| piece.end == Whole::Yes && (piece.answered || !any_answered);
        let cut = pieces.iter().filter(|(_, piece)| piece.end == Whole::Cut).count() as u64;
        let at_least = !pieces.iter().any(|(_, piece)| is_whole(piece));
        let shown = pieces.into_iter().filter(|(_, piece)| at_least || is_whole(piece)).collect();
        Self { kind, requests, shown, at_least, cut }
    }
}
