//! Walks down a path: one component after another.

use crate::replay::Step;
use crate::semantics::{NAME, PATH};

/// Components that make a walk.
const LONG: usize = 3;

/// Whether each step is one of a walk: its path is that of the path step before it and one component more, or
/// the other way round.
pub(super) fn walks(steps: &[Step<'_>]) -> Vec<bool> {
    let mut walked = vec![false; steps.len()];
    let mut run: Vec<usize> = Vec::new();
    let mut last = "";
    for (at, step) in steps.iter().enumerate() {
        let Some(path) = path(step) else { continue };
        if !one_more(last, path) {
            mark(&run, &mut walked);
            run.clear();
        }
        run.push(at);
        last = path;
    }
    mark(&run, &mut walked);
    walked
}

fn mark(run: &[usize], walked: &mut [bool]) {
    if run.len() >= LONG {
        run.iter().for_each(|at| walked[*at] = true);
    }
}

fn path<'s>(step: &'s Step<'_>) -> Option<&'s str> {
    if let Some(opened) = &step.opened {
        return Some(&opened.path);
    }
    let by_path = step.meaning.as_ref().is_some_and(|m| [PATH.name, NAME.name].contains(&m.line.about.name));
    step.object.as_deref().filter(|_| by_path)
}

fn one_more(from: &str, to: &str) -> bool {
    let rest = to.strip_prefix(from.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    !from.is_empty() && rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
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
