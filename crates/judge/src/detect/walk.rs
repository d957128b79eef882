//! Finds walks down a path, one component after another.

use crate::semantics::{NAME, PATH};
use crate::world::replay::Step;

/// Least number of components for a walk.
const LONG: usize = 3;

/// Returns for each step true if it belongs to a walk: its path is the path of the path step before it and one component
/// more.
pub(super) fn walks(steps: &[Step<'_>]) -> Vec<bool> {
    let mut walked = vec![false; steps.len()];
    let mut run: Vec<usize> = Vec::new();
    let (mut last, mut opened) = ("", false);
    for (at, step) in steps.iter().enumerate() {
        let Some(path) = path(step) else { continue };
        // What is opened at the end of a way that questions went down is the file itself.
        if !one_more(last, path) || opened != step.opened.is_some() {
            mark(&run, &mut walked);
            run.clear();
        }
        run.push(at);
        (last, opened) = (path, step.opened.is_some());
    }
    mark(&run, &mut walked);
    walked
}

fn mark(run: &[usize], walked: &mut [bool]) {
    if run.len() >= LONG {
        run.iter().for_each(|at| walked[*at] = true);
    }
}

/// Returns the path that a step opens or asks about.
pub(super) fn path<'s>(step: &'s Step<'_>) -> Option<&'s str> {
    if let Some(opened) = &step.opened {
        return Some(&opened.path);
    }
    let by_path = step.meaning.as_ref().is_some_and(|m| m.line.about.is(&PATH) || m.line.about.is(&NAME));
    step.object.as_deref().filter(|_| by_path)
}

/// Returns true if `to` is the path `from` and one component more.
pub(super) fn one_more(from: &str, to: &str) -> bool {
    // The longer path is rarely longer by one component: its last slash is searched first.
    let Some((folder, name)) = to.rsplit_once('/').filter(|_| !from.is_empty()) else { return false };
    !name.is_empty() && folder == from.trim_end_matches('/')
}

/// Returns true if a path, which may be relative, may be the name of that file.
pub(crate) fn leads_to(path: &str, file: &str) -> bool {
    let path = path.strip_prefix("./").unwrap_or(path);
    file.strip_suffix(path).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::one_more;

    #[test]
    fn one_component_more() {
        assert!(one_more("/", "/usr") && one_more("/usr", "/usr/lib") && one_more("a", "a/b"));
        assert!(!one_more("/usr", "/usr") && !one_more("/usr", "/usr/lib/x") && !one_more("/usr", "/usrlib"));
        assert!(!one_more("", "/usr") && !one_more("/usr/", "/usr/"));
    }
}
