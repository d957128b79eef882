//! What holds within each crate: no import circle, walls between rooms, no struct that everything touches.

use crate::modules::{Graph, long_structs};
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::Path;

/// Crates looked at: all of ours, by folder.
const CRATES: &str = "crates";

/// A struct of more fields is several things at once.
const MOST_FIELDS: usize = 24;

/// Structs that may be longer, and why.
const LONG_STRUCTS: &[(&str, &str)] = &[];

/// Circles that stand, by one of their modules (crate, then module), and why.
const CIRCLES: &[(&str, &str)] = &[];

/// Circles that were found when this rule was made and are still to be taken away, by one of their modules. None may
/// be added.
const OWED_CIRCLES: &[&str] = &[];

/// Structs that were too long then. None may be added.
const OWED_STRUCTS: &[&str] = &[
    "judge::finding::Finding",
    "model::file::wire::Header",
    "present::json::wire::Report",
    "present::json::wire::WireFinding",
    "systoll::cli::prove::ProveArgs",
];

/// Rooms of a crate that must not know each other: crate, room, what it may not use.
const WALLS: &[(&str, &str, &str)] = &[
    ("record", "inproc", "ptrace"),
    ("record", "ptrace", "inproc"),
    ("hooks", "plan", "assemble"),
    ("hooks", "layout", "assemble"),
    ("hooks", "layout", "plan"),
    ("judge", "semantics", "detect"),
];

/// Rules broken, each as a line for a person.
pub(crate) fn broken(root: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let mut circles_seen = BTreeSet::new();
    let mut structs_seen = BTreeSet::new();
    let mut names: Vec<_> = std::fs::read_dir(root.join(CRATES))?.map(|e| Ok(e?.file_name())).collect::<Result<_>>()?;
    names.sort();
    for name in names.iter().filter_map(|n| n.to_str()) {
        let src = root.join(CRATES).join(name).join("src");
        let graph = Graph::read(&src)?;
        for circle in graph.circles() {
            let circle: Vec<String> = circle.iter().map(|m| format!("{name}::{}", m.join("::"))).collect();
            circles_seen.extend(circle.iter().cloned());
            if !circle.iter().any(|module| is_known(module)) {
                broken.push(format!("{} modules use each other: {}", circle.len(), circle.join(", ")));
            }
        }
        broken.extend(through_walls(name, &graph));
        let long = long_structs(&src, MOST_FIELDS)?.into_iter().map(|line| format!("{name}::{line}"));
        for line in long {
            structs_seen.insert(line.rsplit_once(": ").map_or(line.clone(), |(name, _)| name.to_owned()));
            broken.extend((!may_be_long(&line)).then_some(line));
        }
    }
    // A list that names what is gone would let it come back.
    let known = CIRCLES.iter().map(|(name, _)| *name).chain(OWED_CIRCLES.iter().copied());
    broken.extend(known.filter(|name| !circles_seen.contains(*name)).map(|name| format!("{name}: no circle any more")));
    let known = LONG_STRUCTS.iter().map(|(name, _)| *name).chain(OWED_STRUCTS.iter().copied());
    broken.extend(
        known.filter(|name| !structs_seen.contains(*name)).map(|name| format!("{name}: no long struct any more")),
    );
    Ok(broken)
}

fn is_known(module: &str) -> bool {
    CIRCLES.iter().any(|(known, _)| *known == module) || OWED_CIRCLES.contains(&module)
}

fn may_be_long(line: &str) -> bool {
    let known = |name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
    LONG_STRUCTS.iter().any(|(name, _)| known(name)) || OWED_STRUCTS.iter().any(|name| known(name))
}

fn through_walls(name: &str, graph: &Graph) -> Vec<String> {
    let mut broken = Vec::new();
    for (_, room, other) in WALLS.iter().filter(|(of, ..)| *of == name) {
        for (module, used) in graph.uses.iter().filter(|(m, _)| m.first().is_some_and(|m| m == room)) {
            let through = used.iter().filter(|u| u.first().is_some_and(|u| u == other));
            broken.extend(through.map(|u| format!("{name}::{} may not use {}", module.join("::"), u.join("::"))));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn rooms_hold() {
        assert_eq!(broken(&repository::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn walls_and_long_structs_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let src = dir.path().join("crates/hooks/src");
        std::fs::create_dir_all(src.join("plan")).unwrap();
        std::fs::write(src.join("lib.rs"), "mod plan; mod assemble;").unwrap();
        std::fs::write(src.join("assemble.rs"), "pub struct A;").unwrap();
        let fields: String = (0..=MOST_FIELDS).map(|n| format!("f{n}: u8,")).collect();
        std::fs::write(src.join("plan/mod.rs"), format!("use crate::assemble::A; struct S {{ {fields} }}")).unwrap();
        let mut broken = broken(dir.path()).unwrap();
        broken.retain(|line| !line.ends_with("any more"));
        assert_eq!(broken, ["hooks::plan may not use assemble", "hooks::plan::S: 25 fields"]);
    }
}
