//! Finds the files that a process maps, from all windows together.

use crate::collections::hash::Set;
use crate::semantics::{Lines, Semantics};
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
