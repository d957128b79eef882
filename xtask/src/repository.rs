//! Lists the repository's own files and packages.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the workspace's Cargo.toml.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Returns the repository's files, relative to `root`, without ignored ones. Without git (a source
/// archive), returns everything but build products.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let listed = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let Some(out) = listed.ok().filter(|out| out.status.success()) else {
        let mut found = Vec::new();
        walk(root, Path::new(""), &mut found)?;
        return Ok(found);
    };
    let names = String::from_utf8(out.stdout).context("a file name is not UTF-8")?;
    let files = names.split('\0').filter(|n| !n.is_empty()).map(PathBuf::from);
    // Files that are deleted but not committed are left out.
    Ok(files.filter(|f| root.join(f).is_file()).collect())
}

fn walk(root: &Path, inside: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(root.join(inside))? {
        let entry = entry?;
        let path = inside.join(entry.file_name());
        let kind = entry.file_type()?;
        let built = ["target", ".git", "bin", "__pycache__"].iter().any(|n| entry.file_name() == *n);
        if kind.is_dir() && !built {
            walk(root, &path, found)?;
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns cargo's metadata of the workspace's packages.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    cargo_metadata(root, &["--no-deps"])
}

/// Returns cargo's metadata of the workspace's packages and all their dependencies.
pub(crate) fn dependencies(root: &Path) -> Result<Value> {
    cargo_metadata(root, &["--filter-platform", "x86_64-unknown-linux-gnu"])
}

fn cargo_metadata(root: &Path, which: &[&str]) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--offline"])
        .args(which)
        .current_dir(root)
        .output()
        .context("can't run cargo metadata")?;
    ensure!(out.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).context("cargo metadata printed no JSON")
}
