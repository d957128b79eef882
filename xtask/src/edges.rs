//! The allowed edges between crates: the shape of the workspace, held by a test.

use anyhow::{Context, Result};
use serde_json::Value;

/// Our crates, each with those of our crates that it may use. A new edge needs a decision, not just
/// a new entry.
const ALLOWED: &[(&str, &[&str])] = &[
    ("systoll-binfile", &[]),
    ("systoll-files", &[]),
    ("systoll-fleet", &[]),
    ("systoll-mcp", &[]),
    ("systoll-model", &[]),
    ("systoll-trust", &[]),
    ("systoll-hooks", &["systoll-binfile", "systoll-model"]),
    ("systoll-symbols", &["systoll-binfile", "systoll-files", "systoll-model", "systoll-trust"]),
    ("systoll-price", &["systoll-model"]),
    ("systoll-import", &["systoll-model"]),
    ("systoll-protocols", &["systoll-model"]),
    (
        "systoll-record",
        &[
            "systoll-binfile",
            "systoll-files",
            "systoll-hooks",
            "systoll-model",
            "systoll-protocols",
            "systoll-symbols",
            "systoll-price",
            "systoll-trust",
        ],
    ),
    ("systoll-judge", &["systoll-model"]),
    ("systoll-cure", &["systoll-files", "systoll-model", "systoll-trust"]),
    ("systoll-prove", &["systoll-model", "systoll-cure", "systoll-record", "systoll-trust"]),
    ("systoll-compare", &["systoll-model", "systoll-judge"]),
    ("systoll-present", &["systoll-model", "systoll-judge", "systoll-prove", "systoll-compare", "systoll-fleet"]),
    ("systoll-top", &["systoll-model", "systoll-judge", "systoll-present"]),
    ("systoll-export", &["systoll-model", "systoll-judge", "systoll-present", "systoll-fleet"]),
    ("systoll-agent", &["systoll-files", "systoll-model", "systoll-record", "systoll-judge", "systoll-export"]),
    (
        "systoll",
        &[
            "systoll-agent",
            "systoll-import",
            "systoll-mcp",
            "systoll-model",
            "systoll-symbols",
            "systoll-price",
            "systoll-record",
            "systoll-judge",
            "systoll-cure",
            "systoll-prove",
            "systoll-compare",
            "systoll-export",
            "systoll-files",
            "systoll-fleet",
            "systoll-present",
            "systoll-top",
            "systoll-trust",
        ],
    ),
    // Tests of other projects depend on this crate, so it stays small and uses none of ours.
    ("systoll-test", &[]),
    ("systoll-test-c", &["systoll-test"]),
    ("systoll-reports", &["systoll-model", "systoll-import", "systoll-judge", "systoll-present", "systoll-export"]),
    ("xtask", &["systoll", "systoll-reports"]),
    ("systoll-bench", &["systoll-hooks", "systoll-model", "systoll-price", "systoll-record", "systoll-symbols"]),
    (
        "systoll-fuzz",
        &[
            "systoll-import",
            "systoll-hooks",
            "systoll-mcp",
            "systoll-model",
            "systoll-protocols",
            "systoll-symbols",
            "systoll-record",
            "systoll-judge",
            "systoll-compare",
            "systoll-present",
        ],
    ),
];

/// Third-party crates that only some of our crates may use.
const RESERVED: &[(&str, &[&str])] = &[
    ("clap", &["systoll"]),
    ("clap_complete", &["systoll", "xtask"]),
    ("clap_mangen", &["xtask"]),
    ("anyhow", &["systoll", "xtask", "systoll-bench", "systoll-reports"]),
    ("indicatif", &["systoll"]),
    ("ratatui", &["systoll-top"]),
    ("crossterm", &["systoll-top"]),
];

/// Returns forbidden edges, one line each.
pub(crate) fn broken(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("no packages in cargo metadata")?;
    let mut broken = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package without a name")?;
        let Some((_, allowed)) = ALLOWED.iter().find(|(n, _)| *n == name) else {
            broken.push(format!("{name}: a crate that xtask/src/edges.rs does not know"));
            continue;
        };
        let uses = package["dependencies"].as_array().context("a package without dependencies")?;
        // Dependencies of tests do not shape the program, so they are not checked.
        for used in uses.iter().filter(|d| d["kind"] != "dev").filter_map(|d| d["name"].as_str()) {
            let ours = used.starts_with("systoll") || used == "xtask";
            let reserved = RESERVED.iter().find(|(n, _)| *n == used);
            if ours && !allowed.contains(&used) || reserved.is_some_and(|(_, by)| !by.contains(&name)) {
                broken.push(format!("{name} may not use {used}"));
            }
        }
    }
    Ok(broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;
    use serde_json::json;

    #[test]
    fn the_workspace_has_only_allowed_edges() {
        let metadata = repository::metadata(&repository::root()).unwrap();
        assert_eq!(broken(&metadata).unwrap(), Vec::<String>::new());
        let packages = metadata["packages"].as_array().unwrap();
        for (name, _) in ALLOWED {
            assert!(packages.iter().any(|p| p["name"] == *name), "{name} is gone: take it off the list");
        }
    }

    #[test]
    fn a_forbidden_edge_is_seen() {
        let package = |name: &str, used: &str, kind: Value| json!({"packages": [{"name": name, "dependencies": [{"name": used, "kind": kind}]}]});
        let check = |name, used, kind| broken(&package(name, used, kind)).unwrap();
        assert_eq!(check("systoll-judge", "systoll-record", Value::Null), ["systoll-judge may not use systoll-record"]);
        assert_eq!(check("systoll-record", "clap", Value::Null), ["systoll-record may not use clap"]);
        assert_eq!(check("systoll-model", "systoll-judge", json!("build")).len(), 1);
        assert_eq!(check("systoll-judge", "systoll-record", json!("dev")), Vec::<String>::new());
        assert_eq!(check("systoll-new", "libc", Value::Null).len(), 1);
    }
}
