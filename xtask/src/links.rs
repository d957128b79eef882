//! Checks that references from one file of the repository to another lead to an existing file.

use anyhow::{Context, Result};
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

/// Endings of files in which references are searched.
const READ: &[&str] = &["rs", "py", "md", "json", "c", "h", "yml", "sh"];
/// Endings of documentation files that other files refer to by their path from the repository's root.
const PAGES: &[&str] = &[".md", ".schema.json", ".svg", ".png"];

/// Returns a line for each reference that leads nowhere: a relative link in Markdown, `docs/…` anywhere, and a source
/// file that a page for developers names.
///
/// # Errors
/// If a file can't be read.
pub(crate) fn broken(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let there: HashSet<&Path> = files.iter().flat_map(|file| file.ancestors()).collect();
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| READ.iter().any(|r| e == *r))) {
        let bytes = std::fs::read(root.join(file)).with_context(|| format!("can't read {}", file.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lost: Vec<&str> = pages(&text).filter(|page| !there.contains(Path::new(page))).collect();
        if file.extension().is_some_and(|e| e == "md") {
            let folder = file.parent().unwrap_or(Path::new(""));
            lost.extend(links(&text).filter(|link| !there.contains(joined(folder, link).as_path())));
        }
        if names_sources(file) {
            lost.extend(sources(&text).filter(|source| !files.iter().any(|file| is_called(file, source))));
        }
        broken.extend(lost.iter().map(|lost| format!("{}: there is no {lost}", file.display())));
    }
    Ok(broken)
}

/// Returns the documentation files that a text names by their path from the root.
fn pages(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("docs/").filter_map(move |(at, _)| {
        let before = text[..at].trim_end_matches("../");
        if before.ends_with(|c: char| c.is_alphanumeric() || "/._-".contains(c)) {
            return None;
        }
        let rest = &text[at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "/._-".contains(c))).unwrap_or(rest.len());
        let page = rest[..end].trim_end_matches('.');
        PAGES.iter().any(|ending| page.ends_with(ending)).then_some(page)
    })
}

/// Returns the targets of a Markdown text's links to other files, without the part behind `#`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '\n']).next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty())
}

/// Returns true if `file` is a page whose paths of sources are checked.
fn names_sources(file: &Path) -> bool {
    let is_page = file.extension().is_some_and(|e| e == "md");
    is_page && (file.starts_with("docs/develop") || ["ARCHITECTURE.md", "CONTRIBUTING.md"].iter().any(|f| file == *f))
}

/// Returns the Rust sources, and the modules and folders by a path of at least two names, that a text has between
/// backquotes.
fn sources(text: &str) -> impl Iterator<Item = &str> {
    let is_source = |code: &str| code.ends_with(".rs") && !code.contains([' ', '{', '*']) && !code.contains("NAME");
    let is_module = |code: &str| {
        let fits = |c: char| c.is_ascii_lowercase() || c == '_' || c == '/';
        code.trim_end_matches('/').contains('/') && !code.starts_with('/') && code.chars().all(fits)
    };
    text.split('`').skip(1).step_by(2).filter(move |code| is_source(code) || is_module(code))
}

/// Returns `folder/link` with its `..` resolved.
fn joined(folder: &Path, link: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// Returns true if a text's `name` means `file`, or a folder that holds it: `name` is the end of a path, in which `crates`,
/// `src`, `mod.rs` and the ending of a module may be left out.
fn is_called(file: &Path, name: &str) -> bool {
    let short = |path: &Path| path.iter().filter(|part| *part != "src" && *part != "crates").collect::<PathBuf>();
    let (file, name) = (short(file), short(Path::new(name)));
    let module = file.with_extension("");
    file.ends_with(&name) || module.ends_with(&name) || file.ancestors().skip(1).any(|folder| folder.ends_with(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn every_reference_leads_somewhere() {
        let root = repository::root();
        let files = repository::files(&root).unwrap();
        assert_eq!(broken(&root, &files).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn references_that_lead_nowhere_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["README.md", "docs/use/find.md", "docs/README.md", "crates/a/src/b/c.rs", "ARCHITECTURE.md"];
        let files = files.map(PathBuf::from);
        let broken_by = |name: &str, text: &str| {
            for file in &files {
                let path = dir.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, if file == Path::new(name) { text } else { "" }).unwrap();
            }
            broken(dir.path(), &files).unwrap()
        };
        let fine = "[a](../README.md), [b](../../README.md#part), [c](https://a.example/x), [d](#part), [e](../use)";
        assert_eq!(broken_by("docs/use/find.md", fine), Vec::<String>::new());
        assert_eq!(broken_by("docs/use/find.md", "[a](README.md)"), ["docs/use/find.md: there is no README.md"]);
        let named = format!("see {0}s/use/find.md. https://a.example/{0}s/x.md, {0}s/find.md", "doc");
        assert_eq!(broken_by("crates/a/src/b/c.rs", &named).len(), 1);
        assert_eq!(broken_by("ARCHITECTURE.md", "`a/b/c.rs`, `c.rs`, `b/c.rs`"), Vec::<String>::new());
        assert_eq!(broken_by("ARCHITECTURE.md", "`a/c.rs`, `d.rs`").len(), 2);
        assert_eq!(broken_by("ARCHITECTURE.md", "`a/b`, `a/src/b/`, `b/c`, `/bin/true`, `a`"), Vec::<String>::new());
        assert_eq!(broken_by("ARCHITECTURE.md", "`a/c`, `b/d/`").len(), 2);
    }
}
