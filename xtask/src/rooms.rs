//! Checks rules within each crate: no import cycle, walls between rooms, no struct that everything
//! touches.

use crate::modules::Graph;
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::Path;

/// The folder that holds the crates.
const CRATES: &str = "crates";

/// Fields that a struct may have; a larger one is several things.
const MOST_FIELDS: usize = 24;

/// Structs that may be larger, with the reason.
const LONG_STRUCTS: &[(&str, &str)] = &[
    ("judge::results::finding::Finding", "what the JSON contract says of a finding, field by field"),
    ("model::recording::Header", "what is known of a run: a field for each thing that is stored and told"),
    ("model::file::wire::Header", "the recording's header as it is stored: its fields are the format"),
    ("model::file::wire::Recording", "the recording as it is stored: a field for each table of the format"),
    ("present::json::wire::Report", "the JSON contract's own object"),
    ("present::json::wire::WireFinding", "the JSON contract's own object"),
    ("systoll::cli::prove::ProveArgs", "one field a flag, as clap's derive wants them"),
];

/// Rooms of a crate that must not use each other: crate, room, and the room it may not use.
const WALLS: &[(&str, &str, &str)] = &[
    ("record", "inproc", "ptrace"),
    ("record", "inproc", "bpf"),
    ("record", "ptrace", "inproc"),
    ("record", "ptrace", "bpf"),
    ("record", "bpf", "inproc"),
    ("record", "bpf", "ptrace"),
    ("hooks", "plan", "assemble"),
    ("hooks", "layout", "assemble"),
    ("hooks", "layout", "plan"),
    ("judge", "semantics", "detect"),
];

/// Crates whose rooms must not use each other in a circle either: of two rooms, one is below.
const TIERED: &[&str] = &["judge"];

/// Returns broken rules, one line each.
pub(crate) fn broken(root: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let mut long_seen = BTreeSet::new();
    let mut names: Vec<_> = std::fs::read_dir(root.join(CRATES))?.map(|e| Ok(e?.file_name())).collect::<Result<_>>()?;
    names.sort();
    for name in names.iter().filter_map(|n| n.to_str()) {
        let src = root.join(CRATES).join(name).join("src");
        let graph = Graph::read(&src)?;
        let rooms = if TIERED.contains(&name) { graph.of_rooms().circles() } else { Vec::new() };
        for circle in graph.circles().into_iter().chain(rooms) {
            let circle: Vec<String> = circle.iter().map(|m| format!("{name}::{}", m.join("::"))).collect();
            broken.push(format!("{} modules use each other: {}", circle.len(), circle.join(", ")));
        }
        broken.extend(through_walls(name, &graph));
        for (path, fields) in graph.structs.iter().filter(|(_, fields)| *fields > MOST_FIELDS) {
            let path = format!("{name}::{path}");
            if !LONG_STRUCTS.iter().any(|(known, _)| *known == path) {
                broken.push(format!("{path}: {fields} fields"));
            }
            long_seen.insert(path);
        }
    }
    // A stale entry would allow the struct to grow again.
    let gone = LONG_STRUCTS.iter().filter(|(name, _)| !long_seen.contains(*name));
    broken.extend(gone.map(|(name, _)| format!("{name}: no long struct any more")));
    Ok(broken)
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
