//! Finds the files that a process maps, from all windows together.

use crate::hash::Set;
use crate::semantics::Semantics;
use std::sync::Arc;
use systoll_model::Recording;

/// A process and the path of a file.
pub(super) type File = (u32, Arc<str>);

/// Returns the files that windows show to be mapped, each with the process: their bytes are read and written by no call.
pub(super) fn mapped_files(recording: &Recording, semantics: &Semantics) -> Set<File> {
    let maps: Vec<bool> = recording.rows.iter().map(|row| semantics.lines_of(row.syscall).maps()).collect();
    let calls = recording.windows.iter().flat_map(|window| window.calls.iter().map(move |call| (window, call)));
    let mapped = calls.filter(|(_, call)| call.errno().is_none() && maps.get(call.row.0 as usize) == Some(&true));
    let file = |name: &&Arc<str>| name.starts_with('/');
    mapped.filter_map(|(window, call)| Some((window.process.0, call.fd.as_ref().filter(file)?.clone()))).collect()
}
