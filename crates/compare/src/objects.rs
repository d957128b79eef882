//! Finds the objects of rows: the files or the like that their calls name.

use std::collections::BTreeMap;
use systoll_model::{Recording, RowId};

/// The objects of rows, from sampled calls; `None` for a row with several.
pub(crate) struct Objects(BTreeMap<RowId, Option<String>>);

impl Objects {
    /// Collects the objects from the windows of `recording`.
    pub(crate) fn of(recording: &Recording) -> Self {
        let mut objects: BTreeMap<RowId, Option<String>> = BTreeMap::new();
        for call in recording.windows.iter().flat_map(|w| &w.calls) {
            let Some(row) = recording.rows.get(call.row.0 as usize) else { continue };
            if let Some(None) = objects.get(&call.row) {
                continue;
            }
            let object = call.object(row.syscall);
            match objects.get(&call.row) {
                Some(known) if *known == object => {}
                Some(_) => _ = objects.insert(call.row, None),
                None => _ = objects.insert(call.row, object),
            }
        }
        Self(objects)
    }

    /// Returns the object of all sampled calls on `rows`, or `None` if there is not exactly one.
    pub(crate) fn of_rows(&self, rows: &[RowId]) -> Option<String> {
        let mut found = rows.iter().filter_map(|id| self.0.get(id));
        let first = found.next()?.clone()?;
        found.all(|other| other.as_deref() == Some(&*first)).then_some(first)
    }
}
