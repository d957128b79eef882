//! Rows of which windows show every call.

use crate::collections::hash::{Map, Set};
use systoll_model::{Recording, Row, RowId};

/// Returns those rows for which `is_such` is true of which windows show every call.
pub(crate) fn whole_rows(recording: &Recording, is_such: impl Fn(&Row) -> bool) -> Set<RowId> {
    let mut shown: Map<RowId, Set<u64>> = (0u32..)
        .map(RowId)
        .zip(&recording.rows)
        .filter(|(_, row)| is_such(row))
        .map(|(id, _)| (id, Set::default()))
        .collect();
    if shown.is_empty() {
        return Set::default();
    }
    for call in recording.windows.iter().flat_map(|window| &window.calls) {
        if let Some(calls) = shown.get_mut(&call.row) {
            calls.insert(call.nth);
        }
    }
    let all = |id: RowId| {
        let counts = &recording.row(id).counts;
        counts.calls.saturating_add(counts.unreturned)
    };
    shown.into_iter().filter(|(id, calls)| calls.len() as u64 == all(*id)).map(|(id, _)| id).collect()
}
