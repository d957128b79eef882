//! Writes scaffolds, and finds the places in them that must be filled in.

use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Mark of a place that must be filled in; [`unfilled`] finds those that are left.
pub(super) const MARK: &str = "FILL IN";
/// Folders in which scaffolds are written.
const SCAFFOLDED: [&str; 2] = ["crates/judge", "cases"];

/// Returns the first place of a scaffolded file that nobody has filled in, as a line for a person.
pub(crate) fn unfilled(file: &Path, text: &str) -> Option<String> {
    let is_scaffolded = SCAFFOLDED.iter().any(|folder| file.starts_with(folder));
    let (at, line) = text.lines().enumerate().find(|(_, line)| is_scaffolded && line.contains(MARK))?;
    Some(format!("{}:{}: must be filled in: {}", file.display(), at + 1, line.trim()))
}

/// Refuses a name unless it begins with a letter and has only letters, digits and `joint`.
pub(super) fn check(name: &str, joint: char) -> Result<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == joint;
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits);
    ensure!(is_name && !name.ends_with(joint), "{name:?} is no name: a-z, 0-9 and {joint:?}, a letter first");
    Ok(())
}

/// Writes a file that must not exist yet, and the folders above it.
pub(super) fn write_new(root: &Path, file: &str, text: &str) -> Result<()> {
    let path = root.join(file);
    ensure!(!path.exists(), "{file} is there already");
    let folder = path.parent().with_context(|| format!("{file} has no folder"))?;
    std::fs::create_dir_all(folder).with_context(|| format!("can't make the folder of {file}"))?;
    std::fs::write(path, text).with_context(|| format!("can't write {file}"))
}

/// Adds a module to those of an existing file, which are in alphabetical order.
pub(super) fn insert_module(root: &Path, file: &str, name: &str) -> Result<()> {
    let path = root.join(file);
    let old = std::fs::read_to_string(&path).with_context(|| format!("can't read {file}"))?;
    let new = format!("mod {name};\n");
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let modules = || (0..lines.len()).filter(|at| lines[*at].starts_with("mod ") && lines[*at].ends_with(";\n"));
    let last = modules().next_back().with_context(|| format!("{file} has no modules"))?;
    let mut at = modules().find(|at| lines[*at] > new.as_str()).unwrap_or(last + 1);
    // The attributes of the next module remain its own.
    while at > 0 && lines[at - 1].starts_with("#[") {
        at -= 1;
    }
    let (before, after) = lines.split_at(at);
    std::fs::write(path, before.concat() + &new + &after.concat()).with_context(|| format!("can't write {file}"))
}

/// Inserts `text` before the first `mark` in an existing file.
pub(super) fn insert(root: &Path, file: &str, mark: &str, text: &str) -> Result<()> {
    let path = root.join(file);
    let old = std::fs::read_to_string(&path).with_context(|| format!("can't read {file}"))?;
    let at = old.find(mark).with_context(|| format!("{file}: no {mark:?} to write before"))?;
    let (before, after) = old.split_at(at);
    std::fs::write(path, [before, text, after].concat()).with_context(|| format!("can't write {file}"))
}
