//! Tells which names steps give to files.

use crate::replay::Step;
use crate::semantics::Effect;

/// Returns the paths of a file before and after the step; `None` unless the step renames or links
/// it.
pub(super) fn names(step: &Step<'_>) -> Option<[String; 2]> {
    if !step.lines.names() || step.observed.call.errno().is_some() {
        return None;
    }
    let mut paths = step.effects.iter().filter_map(|effect| match effect {
        Effect::Path { at, path } => Some(step.observed.path(at, path)?.into_owned()),
        _ => None,
    });
    Some([paths.next()?, paths.next()?])
}

/// Returns true if a path, which may be relative, can be that of the file.
pub(super) fn is_path(path: &str, file: &str) -> bool {
    path == file || !path.starts_with('/') && file.ends_with(&*["/", path].concat())
}
