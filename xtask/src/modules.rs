//! Reads from a crate's source which of its modules use each other.
//!
//! A module is a file. An edge is a path in code (`use`, a call, a type) that begins with `crate`,
//! `self`, `super` or a child's name, and ends in another file's module. A facade's `pub use` is no
//! edge: a module that uses a name through a facade depends on the file that defines the name.
//! Tests are left out, and so are macros' arguments, which are not parsed.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

/// Path of a module from the crate's root; empty for the root itself.
pub(crate) type Module = Vec<String>;

/// A crate's modules, their edges, and its structs.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) uses: BTreeMap<Module, BTreeSet<Module>>,
    /// Paths of structs, and their number of fields.
    pub(crate) structs: Vec<(String, usize)>,
}

/// A source file whose paths are not resolved yet.
#[derive(Default)]
struct Source {
    /// Paths that occur in code.
    paths: Vec<Vec<String>>,
    /// Re-exports of single names, each with the path from which it comes.
    handed_on: BTreeMap<String, Vec<String>>,
    /// Re-exports of all names of a module: `pub use x::*`.
    globs: Vec<Vec<String>>,
    /// Names of structs, each with its number of fields.
    structs: Vec<(String, usize)>,
}

impl Graph {
    /// Reads the crate whose sources are in `src`.
    ///
    /// # Errors
    /// If a file can't be read or is no Rust.
    pub(crate) fn read(src: &Path) -> Result<Self> {
        let sources = read_all(src)?;
        let modules: BTreeSet<Module> = sources.keys().cloned().collect();
        let mut graph = Self::default();
        for (module, source) in &sources {
            let used = source.paths.iter().filter_map(|path| resolve(&sources, &modules, module, path, 0));
            graph.uses.insert(module.clone(), used.filter(|other| other != module).collect());
            let path = |name: &str| format!("{}::{name}", module.join("::"));
            graph.structs.extend(source.structs.iter().map(|(name, fields)| (path(name), *fields)));
        }
        Ok(graph)
    }

    /// Returns groups of modules that use each other, largest first, each in order of names.
    pub(crate) fn circles(&self) -> Vec<Vec<Module>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.uses.keys().map(|module| (module, self.reachable(module))).collect();
        let both = |a: &Module, b: &Module| {
            let from = |x, y| reached.get(x).is_some_and(|seen: &BTreeSet<&Module>| seen.contains(y));
            from(a, b) && from(b, a)
        };
        let mut done = BTreeSet::new();
        let mut circles = Vec::new();
        for module in self.uses.keys() {
            if !done.contains(module) {
                let circle: Vec<Module> = self.uses.keys().filter(|other| both(module, other)).cloned().collect();
                done.extend(circle.iter().cloned());
                circles.push(circle);
            }
        }
        circles.retain(|circle| circle.len() > 1);
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    /// Returns the graph of the crate's rooms: what stands in one folder of the crate's root is one module.
    pub(crate) fn of_rooms(&self) -> Self {
        let room = |module: &Module| module.iter().take(1).cloned().collect::<Module>();
        let mut rooms = Self::default();
        for (module, used) in self.uses.iter().filter(|(module, _)| !module.is_empty()) {
            let uses = rooms.uses.entry(room(module)).or_default();
            uses.extend(used.iter().map(room).filter(|other| *other != room(module)));
        }
        rooms
    }

    fn reachable(&self, from: &Module) -> BTreeSet<&Module> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&Module> = self.uses.get(from).into_iter().flatten().collect();
        while let Some(module) = open.pop() {
            if seen.insert(module) {
                open.extend(self.uses.get(module).into_iter().flatten());
            }
        }
        seen
    }
}

fn read_all(src: &Path) -> Result<BTreeMap<Module, Source>> {
    let mut sources = BTreeMap::new();
    let mut folders = vec![(src.to_owned(), Module::new())];
    while let Some((folder, place)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("can't read {}", folder.display()))? {
            let path = entry?.path();
            let Some(stem) = path.file_stem().and_then(|s| s.to_str()) else { continue };
            let mut module = place.clone();
            if path.is_dir() {
                // Each entry point of the command is a crate of its own.
                if stem != "bin" {
                    module.push(stem.to_owned());
                    folders.push((path, module));
                }
                continue;
            }
            if path.extension().is_none_or(|e| e != "rs") {
                continue;
            }
            if !["lib", "main", "mod"].contains(&stem) {
                module.push(stem.to_owned());
            }
            let text = std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
            let file = syn::parse_file(&text).with_context(|| format!("can't parse {}", path.display()))?;
            let mut source = Source::default();
            source.visit_file(&file);
            sources.insert(module, source);
        }
    }
    Ok(sources)
}

/// Returns the module of the file from which `path`, written in `module`, comes.
fn resolve(
    sources: &BTreeMap<Module, Source>,
    modules: &BTreeSet<Module>,
    module: &Module,
    path: &[String],
    depth: usize,
) -> Option<Module> {
    let mut at = module.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => (at, rest) = (Module::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        child => {
            let inside: Module = at.iter().cloned().chain([child.to_owned()]).collect();
            if !modules.contains(&inside) || path.len() < 2 {
                return None;
            }
        }
    }
    while let Some(part) = rest.first() {
        let inside: Module = at.iter().cloned().chain([part.clone()]).collect();
        if !modules.contains(&inside) {
            break;
        }
        (at, rest) = (inside, &rest[1..]);
    }
    // A facade only hands the name on, so look where it comes from.
    if let (Some(name), Some(source), true) = (rest.first(), sources.get(&at), depth < 8) {
        if let Some(from) = source.handed_on.get(name) {
            return resolve(sources, modules, &at, from, depth + 1).or(Some(at));
        }
        // A name alone does not tell from which of several globs it comes, so the first is taken.
        if let (Some(glob), false) = (source.globs.first(), source.structs.iter().any(|(s, _)| s == name)) {
            return resolve(sources, modules, &at, glob, depth + 1).or(Some(at));
        }
    }
    Some(at)
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("test")
            || a.path().is_ident("cfg")
                && matches!(&a.meta, syn::Meta::List(list) if list.tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|t| t == "test"))
    })
}

impl Source {
    /// Notes the paths that a `use` names.
    fn tree(&mut self, tree: &syn::UseTree, before: &[String], hands_on: bool) {
        let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
        match tree {
            syn::UseTree::Path(path) => self.tree(&path.tree, &with(path.ident.to_string()), hands_on),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, before, hands_on)),
            syn::UseTree::Name(name) if name.ident == "self" => self.named(before.to_vec(), None, hands_on),
            syn::UseTree::Name(name) => self.named(with(name.ident.to_string()), None, hands_on),
            syn::UseTree::Rename(name) => {
                self.named(with(name.ident.to_string()), Some(name.rename.to_string()), hands_on);
            }
            syn::UseTree::Glob(_) if hands_on => self.globs.push(before.to_vec()),
            syn::UseTree::Glob(_) => self.paths.push(before.to_vec()),
        }
    }

    fn named(&mut self, path: Vec<String>, called: Option<String>, hands_on: bool) {
        let called = called.or_else(|| path.last().cloned());
        match (hands_on, called) {
            (true, Some(name)) => drop(self.handed_on.insert(name, path)),
            _ => self.paths.push(path),
        }
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // A module within a file is treated as a part of the file; `super` in it is the file
        // itself.
        if let (false, Some((_, items))) = (is_test(&item.attrs), &item.content) {
            let mut inner = Self::default();
            items.iter().for_each(|item| inner.visit_item(item));
            let outward = |path: Vec<String>| match path.first().map(String::as_str) {
                Some("super") => [vec!["self".to_owned()], path[1..].to_vec()].concat(),
                _ => path,
            };
            self.paths.extend(inner.paths.into_iter().map(outward));
            self.structs.extend(inner.structs);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            self.tree(&item.tree, &[], !matches!(item.vis, syn::Visibility::Inherited));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.structs.push((item.ident.to_string(), item.fields.len()));
        visit::visit_item_struct(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            self.paths.push(path.segments.iter().map(|s| s.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Graph::read(dir.path()).unwrap()
    }

    fn names(circles: Vec<Vec<Module>>) -> Vec<Vec<String>> {
        circles.into_iter().map(|c| c.into_iter().map(|m| m.join("::")).collect()).collect()
    }

    #[test]
    fn circles_are_found_through_facades_and_paths() {
        let found = graph(&[
            ("lib.rs", "mod a; mod b; pub use a::A;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B; fn f(_: super::A) {}"),
        ]);
        assert_eq!(names(found.circles()), [["a", "b"]]);
        let calls = graph(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "fn f() { crate::b::g() }"),
            ("b.rs", "fn g() { super::a::f() }"),
        ]);
        assert_eq!(names(calls.circles()), [["a", "b"]]);
        let folder = graph(&[
            ("lib.rs", "mod r;"),
            ("r/mod.rs", "mod x; pub fn top() { x::f() }"),
            ("r/x.rs", "use super::top; pub fn f() { top() }"),
        ]);
        assert_eq!(names(folder.circles()), [["r", "r::x"]]);
    }

    #[test]
    fn paths_without_a_circle_pass() {
        let facade = graph(&[
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
            ("a.rs", "pub struct A;"),
            ("b.rs", "use crate::A; pub struct B(A); #[cfg(test)] mod tests { use crate::a::A; }"),
        ]);
        assert_eq!(names(facade.circles()), Vec::<Vec<String>>::new());
        let tested = graph(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "#[cfg(test)] mod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a::A; mod words { use super::B; }"),
        ]);
        assert_eq!(names(tested.circles()), Vec::<Vec<String>>::new());
    }
}
