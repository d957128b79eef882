//! Which versions of packages a script's sources are of, by what Python's and Node's installers leave beside them.
//!
//! The paths come from the memory of targets. What is read of a file is a version's digits and dots, and lists that a
//! name is looked for in; nothing else of it leaves this module.

use std::collections::BTreeSet;
use std::path::Path;
use systoll_files::{Links, head, names, open};
use systoll_model::{Frame, Package, Row};

/// Packages looked for in a run at most.
const MOST: usize = 64;
/// Entries of a folder of installed packages that are looked at.
const MOST_ENTRIES: usize = 4_096;
/// Bytes read of a file that tells what a package has.
const MOST_BYTES: u64 = 64 << 10;
/// A version is no longer than this.
const MOST_VERSION: usize = 32;
/// Where Python's installers put packages: pip, and Debian's.
const PYTHON: [&str; 2] = ["/site-packages/", "/dist-packages/"];
const NODE: &str = "/node_modules/";
/// Calls after which a program's paths may mean other files than ours.
const OTHER_ROOT: [&str; 5] = ["chroot", "pivot_root", "unshare", "setns", "mount"];

/// The packages of the frames' sources whose version is known; none where a program may have had another root.
pub(crate) fn packages(frames: &[Frame], rows: &[Row]) -> Vec<Package> {
    let moves = |row: &Row| row.counts.calls > 0 && row.syscall.name().is_some_and(|name| OTHER_ROOT.contains(&name));
    if rows.iter().any(moves) {
        return Vec::new();
    }
    let sources = frames.iter().filter(|f| f.language.is_some()).flat_map(|f| &f.locations);
    let homes: BTreeSet<Home<'_>> = sources.filter_map(|l| home(l.file.as_deref()?)).take(MOST * MOST).collect();
    homes.into_iter().take(MOST).filter_map(|home| home.package()).collect()
}

/// Where a package's sources lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Home<'a> {
    /// A module, `name`, in a folder of packages: a folder or a file there, `path`.
    Python { all: &'a str, path: &'a str, name: &'a str },
    /// A folder with a package.json.
    Node { path: &'a str },
}

/// The package that a source is of, by its path alone.
fn home(source: &str) -> Option<Home<'_>> {
    if !source.starts_with('/') || source.contains('\0') {
        return None;
    }
    // The innermost: a package may have packages of its own.
    if let Some(at) = source.rfind(NODE).map(|at| at + NODE.len()) {
        let rest = source.get(at..)?;
        let first = rest.find('/')?;
        let end = if rest.starts_with('@') { first + 1 + rest.get(first + 1..)?.find('/')? } else { first };
        return Some(Home::Node { path: source.get(..at + end)? });
    }
    let at = PYTHON.iter().find_map(|folder| Some(source.rfind(folder)? + folder.len()))?;
    let (all, rest) = source.split_at_checked(at)?;
    let entry = rest.split('/').next().filter(|entry| !entry.is_empty())?;
    let name = entry.strip_suffix(".py").unwrap_or(entry);
    Some(Home::Python { all, path: source.get(..at + entry.len())?, name })
}

impl Home<'_> {
    fn package(self) -> Option<Package> {
        let (path, version) = match self {
            Self::Python { all, path, name } => (path, of_python(all, path, name)?),
            Self::Node { path } => (path, of_node(path)?),
        };
        Some(Package { home: path.into(), version: version.into() })
    }
}

/// The version of the distribution that has the module `name`: one of that name, else the one that lists it
/// (PyPA's specification of installed projects: `NAME-VERSION.dist-info`; setuptools: `top_level.txt`).
fn of_python(all: &str, path: &str, name: &str) -> Option<String> {
    // What is not there for us is another's.
    Path::new(path).symlink_metadata().ok()?;
    let entries = names(all, MOST_ENTRIES).ok()?;
    let told: Vec<(&str, &str, &str)> = entries
        .iter()
        .filter_map(|entry| {
            let entry = entry.to_str()?;
            let stem = entry.strip_suffix(".dist-info").or_else(|| entry.strip_suffix(".egg-info"))?;
            // Setuptools adds Python's version: `-py3.11`.
            let stem = stem.split_once("-py").map_or(stem, |(stem, _)| stem);
            let (project, version) = stem.rsplit_once('-')?;
            Some((entry, project, plain(version)?))
        })
        .collect();
    let of_name = told.iter().find(|(_, project, _)| normal(project) == normal(name));
    let lists = |entry: &str| {
        let file = Path::new(all).join(entry).join("top_level.txt");
        head(file, MOST_BYTES).is_ok_and(|text| text.split(|b| *b == b'\n').any(|line| line == name.as_bytes()))
    };
    let found = of_name.or_else(|| told.iter().find(|(entry, ..)| lists(entry)))?;
    Some(found.2.to_owned())
}

/// As PyPA's specification compares projects' names.
fn normal(name: &str) -> String {
    name.to_lowercase().replace(['-', '.'], "_")
}

/// The `version` of a package.json.
fn of_node(folder: &str) -> Option<String> {
    let file = Path::new(folder).join("package.json");
    let (_, metadata) = open(&file, Links::Follow).ok()?;
    if metadata.len() > MOST_BYTES {
        return None;
    }
    let json: serde_json::Value = serde_json::from_slice(&head(file, MOST_BYTES).ok()?).ok()?;
    Some(plain(json.get("version")?.as_str()?)?.to_owned())
}

/// A version that is numbers between dots; others can't be compared.
fn plain(version: &str) -> Option<&str> {
    let is_plain = version.len() <= MOST_VERSION
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_plain.then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(source: &str) -> Option<String> {
        home(source)?.package().map(|p| p.version.to_string())
    }

    #[test]
    fn versions_are_what_installers_left_beside_the_sources() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("site-packages/sh.py", "");
        write("site-packages/sh-1.12.14.dist-info/METADATA", "");
        write("site-packages/dateutil/tz/tz.py", "");
        write("site-packages/python_dateutil-2.6.1.dist-info/top_level.txt", "dateutil\n");
        write("site-packages/beta/a.py", "");
        write("site-packages/beta-1.0rc1.dist-info/top_level.txt", "beta\n");
        write("dist-packages/yaml/a.py", "");
        write("dist-packages/PyYAML-5.3-py3.11.egg-info/top_level.txt", "_yaml\nyaml\n");
        write("node_modules/nanoid/package.json", r#"{"name": "nanoid", "version": "2.1.11"}"#);
        write("node_modules/a/node_modules/@s/b/package.json", r#"{"version": "3.0.0"}"#);
        write("node_modules/c/package.json", r#"{"version": "1.0.0-alpha\u001b["}"#);
        let of = |source: &str| version(&format!("{root}/{source}"));
        assert_eq!(of("site-packages/sh.py").as_deref(), Some("1.12.14"));
        assert_eq!(of("site-packages/dateutil/tz/tz.py").as_deref(), Some("2.6.1"));
        assert_eq!(of("dist-packages/yaml/a.py").as_deref(), Some("5.3"));
        assert_eq!(of("node_modules/nanoid/lib/index.js").as_deref(), Some("2.1.11"));
        assert_eq!(of("node_modules/a/node_modules/@s/b/index.js").as_deref(), Some("3.0.0"));
        for unknown in ["site-packages/beta/a.py", "site-packages/gone/a.py", "node_modules/c/i.js", "app.py", ""] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
        for wild in
            ["site-packages/sh.py", "/node_modules/", "/node_modules/@a", "/site-packages/", "/a\0/site-packages/b"]
        {
            assert_eq!(version(wild), None, "{wild}");
        }
    }
}
