//! Checks that all files repeat the project's address as Cargo.toml has it.

use anyhow::{Context, Result};
use std::path::Path;

/// Returns the files whose address differs from Cargo.toml's, one line each.
///
/// # Errors
/// If a file can't be read.
pub(crate) fn broken(root: &Path) -> Result<Vec<String>> {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).with_context(|| format!("can't read {name}"));
    let manifest: toml::Table = read("Cargo.toml")?.parse().context("can't parse Cargo.toml")?;
    let package = manifest.get("workspace").and_then(|w| w.get("package")).context("no workspace.package")?;
    let field = |name: &str| package.get(name).and_then(toml::Value::as_str).unwrap_or_default();
    let (home, version) = (field("repository"), field("version"));
    let module = format!("module {}/plugins/go", home.trim_start_matches("https://"));
    let node: serde_json::Value = serde_json::from_str(&read("plugins/node/package.json")?)?;
    let holds = [
        (
            "plugins/go/go.mod: another module than Cargo.toml's repository has",
            read("plugins/go/go.mod")?.lines().any(|l| l == module),
        ),
        ("plugins/node/package.json: another repository than Cargo.toml's", node["repository"]["url"] == home),
        ("plugins/node/package.json: another version than Cargo.toml's", node["version"] == version),
        ("CHANGELOG.md: nothing of this version", read("CHANGELOG.md")?.contains(&format!("\n## [{version}]"))),
    ];
    Ok(holds.iter().filter(|(_, holds)| !holds).map(|(what, _)| (*what).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn the_project_has_one_home() {
        assert_eq!(broken(&repository::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn another_home_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("Cargo.toml", "[workspace.package]\nversion = \"1.2.3\"\nrepository = \"https://a.example/b\"");
        put("plugins/go/go.mod", "module a.example/b/plugins/go\n");
        put(
            "plugins/node/package.json",
            "{\"version\": \"1.2.3\", \"repository\": {\"url\": \"https://a.example/b\"}}",
        );
        put("CHANGELOG.md", "# Changelog\n\n## [1.2.3] - 2030-01-01\n");
        assert_eq!(broken(dir.path()).unwrap(), Vec::<String>::new());
        put("plugins/go/go.mod", "module a.example/c\n");
        put("plugins/node/package.json", "{\"version\": \"1.2.4\"}");
        assert_eq!(broken(dir.path()).unwrap().len(), 3);
    }
}
