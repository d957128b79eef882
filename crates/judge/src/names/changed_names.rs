//! Names that were given to other files, made or taken away, and the paths that such a change concerns: the name itself,
//! and all names below it, since the change of a folder or a link changes where they lead. No other path is concerned.

use crate::collections::hash::{Map, Seeded};
use crate::names::paths::{PathId, Paths};
use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher};

/// Hashes of the beginnings of paths that end with a component, and of components. The hash of a beginning is taken over
/// the components one by one, so that a path costs time in proportion to its length.
#[derive(Clone, Default)]
pub(crate) struct Hashes(Seeded);

/// The hashes of a path up to one of its components.
pub(crate) struct Beginning {
    /// Hash of the path up to the component.
    pub whole: u64,
    /// Hash of the component alone.
    last: u64,
}

impl Hashes {
    /// Returns the path's beginnings, the shortest first.
    pub(crate) fn of<'p>(&'p self, path: &'p str) -> impl Iterator<Item = Beginning> + 'p {
        let mut so_far = self.0.build_hasher();
        so_far.write_u8(u8::from(path.starts_with('/')));
        components(path).map(move |component| {
            let last = self.0.hash_one(component);
            so_far.write_u64(last);
            Beginning { whole: so_far.clone().finish(), last }
        })
    }
}

/// Returns the path's components, without `.` and empty ones.
fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|component| !component.is_empty() && *component != ".")
}

/// The form of a path. Paths of two forms are compared by their components only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Absolute,
    Relative,
    /// With `..`, which leads elsewhere if a folder is a link.
    Winding,
}

impl Form {
    pub(crate) const ALL: [Self; 3] = [Self::Absolute, Self::Relative, Self::Winding];

    pub(crate) fn of(path: &str) -> Self {
        match path.starts_with('/') {
            _ if components(path).any(|component| component == "..") => Self::Winding,
            true => Self::Absolute,
            false => Self::Relative,
        }
    }

    /// Returns true if the beginnings of two paths of these forms can be compared.
    pub(crate) fn fits(self, other: Self) -> bool {
        self == other && self != Self::Winding
    }
}

/// Changed names, each with the version of its newest change.
#[derive(Default)]
pub(crate) struct ChangedNames {
    hashes: Hashes,
    /// By hash of the whole path.
    paths: Map<u64, u32>,
    /// By hash of the last component, for paths of each [`Form`].
    last: [Map<u64, u32>; 3],
    /// Newest change of a name without a component, which concerns each path.
    all: u32,
    /// Number of changes.
    changes: u32,
    /// By path number: `changes` when the path was last looked up, and its newest change then.
    looked_up: RefCell<Vec<(u32, u32)>>,
}

impl ChangedNames {
    /// Returns an empty list that uses these hashes.
    pub(crate) fn with(hashes: Hashes) -> Self {
        Self { hashes, ..Self::default() }
    }

    /// Notes a change of a path.
    pub(crate) fn change(&mut self, path: &str, version: u32) {
        self.changes = self.changes.wrapping_add(1);
        let Some(Beginning { whole, last }) = self.hashes.of(path).last() else {
            self.all = version;
            return;
        };
        self.paths.insert(whole, version);
        if let Some(names) = self.last.get_mut(Form::of(path) as usize) {
            names.insert(last, version);
        }
    }

    /// Returns the version of the newest change that concerns the path, or 0. A change of a relative name concerns an
    /// absolute path if that has such a component, since the folder is not known.
    pub(crate) fn newest(&self, path: &str) -> u32 {
        if self.paths.is_empty() {
            return self.all;
        }
        let form = Form::of(path);
        let others = || Form::ALL.iter().zip(&self.last).filter(|(of, names)| !form.fits(**of) && !names.is_empty());
        let newest = self.hashes.of(path).map(|beginning| {
            let same = self.paths.get(&beginning.whole).filter(|_| form != Form::Winding);
            let other = others().filter_map(|(_, names)| names.get(&beginning.last));
            other.chain(same).copied().max().unwrap_or(0)
        });
        newest.max().unwrap_or(0).max(self.all)
    }

    /// Does the same as [`ChangedNames::newest`] for a numbered path, which is looked up again only after a change.
    pub(crate) fn newest_of(&self, path: PathId, paths: &Paths<'_>) -> u32 {
        if self.changes == 0 {
            return 0;
        }
        let mut looked_up = self.looked_up.borrow_mut();
        if looked_up.len() <= path.place() {
            looked_up.resize(path.place() + 1, (0, 0));
        }
        let Some(known) = looked_up.get_mut(path.place()) else { return self.newest(&paths.text(path)) };
        if known.0 != self.changes {
            *known = (self.changes, self.newest(&paths.text(path)));
        }
        known.1
    }
}
