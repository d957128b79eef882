//! Finds the versions of the packages to which scripts' sources belong, by the metadata that Python's and Node's
//! installers leave beside them.
//!
//! The paths come from the memory of targets. Only a version's digits and dots leave this module; the other files are
//! only searched for a name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use systoll_files::{head, names};
use systoll_model::{Frame, Package, Row};

/// Packages looked up in a run, at most.
const MOST: usize = 64;
/// Entries read of a folder of installed packages, at most.
const MOST_ENTRIES: usize = 4_096;
/// Bytes read of a metadata file, at most.
const MOST_BYTES: u64 = 64 << 10;
/// Bytes of a version, at most.
const MOST_VERSION: usize = 32;
/// Folders into which Python's installers put packages: pip's and Debian's.
const PYTHON: [&str; 2] = ["/site-packages/", "/dist-packages/"];
const NODE: &str = "/node_modules/";
/// Calls after which a program's paths may mean other files than they mean to us.
const OTHER_ROOT: [&str; 5] = ["chroot", "pivot_root", "unshare", "setns", "mount"];

/// Returns the packages to which the frames' sources belong, as far as their versions are known; none if a program may
/// have changed its root.
pub(crate) fn packages(frames: &[Frame], rows: &[Row]) -> Vec<Package> {
    let moves = |row: &Row| row.counts.calls > 0 && row.syscall.name().is_some_and(|name| OTHER_ROOT.contains(&name));
    if rows.iter().any(moves) {
        return Vec::new();
    }
    let sources = frames.iter().filter(|f| f.language.is_some()).flat_map(|f| &f.locations);
    let homes: BTreeSet<Home<'_>> = sources.filter_map(|l| home(l.file.as_deref()?)).take(MOST * MOST).collect();
    versions(homes.into_iter().take(MOST))
}

/// The place where a package's sources lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Home<'a> {
    /// A module `name` in the folder of packages `all`; `path` is the module's own folder or file there.
    Python { all: &'a str, path: &'a str, name: &'a str },
    /// A folder that contains a package.json.
    Node { path: &'a str },
}

/// Returns the package that a source belongs to, by its path alone.
fn home(source: &str) -> Option<Home<'_>> {
    if !source.starts_with('/') || source.contains('\0') {
        return None;
    }
    // Take the innermost folder: a package may contain packages of its own.
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

/// A Python module in a folder of packages.
struct Module<'a> {
    path: &'a str,
    name: &'a str,
}

/// Returns the packages whose version is known. Lists each folder of packages once, however many of its modules ran.
fn versions<'a>(homes: impl Iterator<Item = Home<'a>>) -> Vec<Package> {
    let mut packages = Vec::new();
    let mut folders: BTreeMap<&str, Vec<Module<'_>>> = BTreeMap::new();
    for home in homes {
        match home {
            Home::Python { all, path, name } => folders.entry(all).or_default().push(Module { path, name }),
            Home::Node { path } => {
                packages.extend(of_node(path).map(|version| Package { home: path.into(), version: version.into() }));
            }
        }
    }
    packages.extend(folders.into_iter().flat_map(|(all, modules)| of_python(all, modules)));
    packages
}

/// The metadata folder of a distribution (PyPA's specification of installed projects: `NAME-VERSION.dist-info`;
/// setuptools: `NAME-VERSION-py3.11.egg-info`).
struct Distribution<'a> {
    entry: &'a str,
    project: String,
    version: &'a str,
}

impl<'a> Distribution<'a> {
    fn of(entry: &'a str) -> Option<Self> {
        let stem = entry.strip_suffix(".dist-info").or_else(|| entry.strip_suffix(".egg-info"))?;
        let stem = stem.split_once("-py").map_or(stem, |(stem, _)| stem);
        let (project, version) = stem.rsplit_once('-')?;
        Some(Self { entry, project: normal(project), version: plain(version)? })
    }
}

/// Returns the versions of the distributions that contain these modules of one folder. For each module this is the
/// distribution of the same name, otherwise the first that lists the module in its `top_level.txt`.
fn of_python(all: &str, mut modules: Vec<Module<'_>>) -> Vec<Package> {
    // A module that we can't see belongs to another mount namespace.
    modules.retain(|module| Path::new(module.path).symlink_metadata().is_ok());
    if modules.is_empty() {
        return Vec::new();
    }
    let entries = names(all, MOST_ENTRIES).unwrap_or_default();
    let told: Vec<Distribution<'_>> = entries.iter().filter_map(|entry| Distribution::of(entry.to_str()?)).collect();
    let mut packages = Vec::new();
    let mut add = |module: &Module<'_>, told: &Distribution<'_>| {
        packages.push(Package { home: module.path.into(), version: told.version.into() });
    };
    modules.retain(|module| {
        let name = normal(module.name);
        let of_name = told.iter().find(|distribution| distribution.project == name);
        of_name.inspect(|distribution| add(module, distribution)).is_none()
    });
    for distribution in &told {
        if modules.is_empty() {
            break;
        }
        let file = Path::new(all).join(distribution.entry).join("top_level.txt");
        let Ok(text) = head(file, MOST_BYTES) else { continue };
        let lists = |name: &str| text.split(|b| *b == b'\n').any(|line| line == name.as_bytes());
        modules.retain(|module| {
            let is_listed = lists(module.name);
            if is_listed {
                add(module, distribution);
            }
            !is_listed
        });
    }
    packages
}

/// Normalises a project's name as PyPA's specification compares them.
fn normal(name: &str) -> String {
    name.to_lowercase().replace(['-', '.'], "_")
}

/// Returns the `version` of a package.json.
fn of_node(folder: &str) -> Option<String> {
    // The head of a longer file is no valid JSON.
    let text = head(Path::new(folder).join("package.json"), MOST_BYTES).ok()?;
    let json: serde_json::Value = serde_json::from_slice(&text).ok()?;
    Some(plain(json.get("version")?.as_str()?)?.to_owned())
}

/// Returns the version if it consists of digits and dots; others can't be compared.
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
        versions(home(source).into_iter()).pop().map(|p| p.version.to_string())
    }

    #[test]
    fn versions_come_from_installers_metadata() {
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
        // Several modules of one folder yield the same packages as each of them alone.
        let several =
            ["dateutil/tz/tz.py", "sh.py", "gone/a.py", "beta/a.py"].map(|f| format!("{root}/site-packages/{f}"));
        let found = versions(several.iter().filter_map(|source| home(source)));
        let told: Vec<&str> = found.iter().map(|package| &*package.version).collect();
        assert_eq!(told, ["1.12.14", "2.6.1"]);
        for wild in
            ["site-packages/sh.py", "/node_modules/", "/node_modules/@a", "/site-packages/", "/a\0/site-packages/b"]
        {
            assert_eq!(version(wild), None, "{wild}");
        }
    }
}
