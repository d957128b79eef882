//! Tells which names steps give to files.

use crate::world::replay::Step;
use std::borrow::Cow;

/// Returns the paths of a file before and after the step; `None` unless the step renames or links
/// it.
pub(super) fn names(step: &Step<'_>) -> Option<[String; 2]> {
    if !step.lines.names() || step.observed.call.errno().is_some() {
        return None;
    }
    let mut paths = step.observed.paths(step.effects).map(Cow::into_owned);
    Some([paths.next()?, paths.next()?])
}

/// Returns true if a path, which may be relative, can be that of the file.
pub(super) fn is_path(path: &str, file: &str) -> bool {
    path == file || !path.starts_with('/') && file.ends_with(&*["/", path].concat())
}

/// Returns the folder of a path.
pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
