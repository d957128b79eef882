//! Finds the files that a process maps, and the threads that write a file which is synced, from all windows together.

use crate::collections::hash::{Map, Set};
use crate::semantics::{Lines, SYNCED, Semantics};
use std::sync::Arc;
use systoll_model::Recording;

/// A process and the path of a file.
pub(super) type File = (u32, Arc<str>);

/// Returns the files that windows show to be mapped, each with the process: their bytes are read and written by no call.
pub(super) fn mapped_files(recording: &Recording, semantics: &Semantics) -> Set<File> {
    let mapped = semantics.calls_in_windows(recording, Lines::maps).filter(|observed| observed.call.errno().is_none());
    let file = |name: &&Arc<str>| name.starts_with('/');
    mapped.filter_map(|o| Some((o.window.process.0, o.call.fd.as_ref().filter(file)?.clone()))).collect()
}

/// Files, each with the threads that write to it.
pub(super) type Writers = Map<File, Set<u32>>;

/// Returns the files that windows show to be written by calls, with the threads that do so; none if nothing is synced.
pub(super) fn writers(recording: &Recording, semantics: &Semantics) -> Writers {
    let mut writers = Writers::default();
    if !recording.rows.iter().any(|row| semantics.lines_of(row.syscall).sets(&SYNCED)) {
        return writers;
    }
    let writes = semantics.calls_in_windows(recording, Lines::transfers_out).map(|o| (o.window, o.call));
    for (window, call) in writes.filter(|(_, call)| call.errno().is_none()) {
        if let Some(file) = call.fd.as_ref().filter(|file| file.starts_with('/')) {
            writers.entry((window.process.0, file.clone())).or_default().insert(window.thread);
        }
    }
    writers
}
