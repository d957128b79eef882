//! Checks that the repository's files are as its pages promise.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The sentence of crates' READMEs that promises an example.
const EXAMPLE: &str = "documentation opens with a runnable example";

/// Returns a line for each promise that is not kept. One promise is an example: a crate whose README promises one must
/// have it in its documentation. The other is that CONTRIBUTING.md lists every fuzz target.
///
/// # Errors
/// If a file can't be read.
pub(crate) fn broken(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let read = |file: &Path| std::fs::read_to_string(root.join(file)).with_context(|| format!("no {}", file.display()));
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.starts_with("crates") && file.ends_with("README.md")) {
        let front = file.with_file_name("src/lib.rs");
        if read(file)?.contains(EXAMPLE) && !has_example(&read(&front)?) {
            broken.push(format!("{}: promises an example; {} opens with none", file.display(), front.display()));
        }
    }
    let contributing = read(Path::new("CONTRIBUTING.md"))?;
    let targets = files.iter().filter(|file| file.parent() == Some(Path::new("fuzz/targets")));
    for name in targets.filter_map(|file| file.file_stem()?.to_str()).filter(|name| *name != "seeds") {
        if !contributing.contains(&format!("`{name}`")) {
            broken.push(format!("CONTRIBUTING.md: does not list the fuzz target {name}"));
        }
    }
    Ok(broken)
}

/// Returns true if the documentation at the head of a crate has code that its tests run.
fn has_example(source: &str) -> bool {
    let front = source.lines().take_while(|line| line.starts_with("//!") || line.is_empty());
    let mut fences = front.filter_map(|line| line.strip_prefix("//! ```"));
    fences.next().is_some_and(|language| ["", "rust", "no_run"].contains(&language))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn every_promise_is_kept() {
        let root = repository::root();
        let files = repository::files(&root).unwrap();
        assert_eq!(broken(&root, &files).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn broken_promises_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let broken_by = |files: &[(&str, &str)]| {
            for (file, text) in files {
                let path = dir.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            let files: Vec<PathBuf> = files.iter().map(|(file, _)| file.into()).collect();
            broken(dir.path(), &files).unwrap().len()
        };
        let readme = ("crates/a/README.md", "The crate's documentation opens with a runnable example.");
        let contributing = |text| ("CONTRIBUTING.md", text);
        let source = |text| ("crates/a/src/lib.rs", text);
        assert_eq!(broken_by(&[contributing(""), source("//! a\n//! ```\n//! ```\n"), readme]), 0);
        assert_eq!(broken_by(&[contributing(""), source("//! a\n//! ```text\n//! ```\n"), readme]), 1);
        assert_eq!(broken_by(&[contributing(""), source("//! a\nfn a() {}\n/// ```\n"), readme]), 1);
        let target = ("fuzz/targets/trace.rs", "");
        assert_eq!(
            (broken_by(&[contributing("`trace`"), target]), broken_by(&[contributing("traces"), target])),
            (0, 1)
        );
    }
}
