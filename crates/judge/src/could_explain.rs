//! Whether a cause could explain any call of a run.

use crate::catalogue::Cause;
use crate::finding::Kind;
use crate::group::{asks_language, symptoms};
use systoll_model::Recording;

impl Cause {
    /// How many calls of the run it could be the reason of: by what is known of all calls of a row, the
    /// system call and who makes it. Of which of them it is, windows would have to tell. `None` where the
    /// cause does not say which calls.
    pub fn could_explain(&self, recording: &Recording) -> Option<u64> {
        let asked = asks_language(&self.matches);
        let of_row = |row| symptoms(recording, row, Kind::Repeat, None, None).spoken(recording, row, asked);
        let could = |row| self.matches.iter().any(|pattern| pattern.could_match(&of_row(row)));
        let rows = recording.rows.iter().filter(|row| could(row));
        let calls = rows.fold(0u64, |sum, row| sum.saturating_add(row.counts.calls));
        (!self.matches.is_empty()).then_some(calls)
    }
}
