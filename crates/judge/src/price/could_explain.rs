//! The number of a run's calls that a cause could explain.

use crate::causes::catalogue::Cause;
use crate::groups::group::{asks_language, symptoms};
use crate::results::finding::Kind;
use systoll_model::Recording;

impl Cause {
    /// Returns the number of calls in rows that the cause's patterns could match by system call, API and language
    /// alone. This is an upper bound: only windows tell which of these calls the cause does explain. Returns `None`
    /// if the cause has no patterns.
    pub fn could_explain(&self, recording: &Recording) -> Option<u64> {
        let asked = asks_language(&self.matches);
        let of_row = |row| symptoms(recording, row, Kind::Repeat, None, None).spoken(recording, row, asked);
        let could = |row| self.matches.iter().any(|pattern| pattern.could_match(&of_row(row)));
        let rows = recording.rows.iter().filter(|row| could(row));
        let calls = rows.fold(0u64, |sum, row| sum.saturating_add(row.counts.calls));
        (!self.matches.is_empty()).then_some(calls)
    }
}
