//! The files of a run, each loaded once. Names outlive the process that mapped a file, and the deletion or replacement
//! of the file.

use super::problems::Problems;
use crate::ModuleKey;
use crate::elf::ElfFile;
use crate::mapped::{self, FileBytes, Identity, MapsEntry};
use crate::module::{Module, Preloaded};
use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// Files kept open, at most; others are read into memory.
const MAX_OPEN: usize = 256;
/// Size of a file that is read into memory, at most, bytes.
const MAX_RESIDENT: u64 = 64 << 20;

/// Files by key and by identity.
#[derive(Debug, Default)]
pub(super) struct Modules {
    all: Vec<Arc<Module>>,
    /// Files that were opened before a process mapped them.
    preloaded: Preloaded,
    by_file: HashMap<Identity, Option<ModuleKey>>,
    /// vDSOs by size. The kernel maps the same pages into every process of a kind.
    vdsos: HashMap<u64, ModuleKey>,
    ignored: HashSet<Inode>,
    open: usize,
}

/// Identity of a file in a `maps` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Inode {
    device: (u32, u32),
    number: u64,
}

impl Modules {
    pub(super) fn expecting(preloaded: Preloaded) -> Self {
        Self { preloaded, ..Self::default() }
    }

    pub(super) fn get(&self, key: ModuleKey) -> Option<&Module> {
        self.all.get(key.0 as usize).map(|module| &**module)
    }

    pub(super) fn shared(&self, key: ModuleKey) -> Option<&Arc<Module>> {
        self.all.get(key.0 as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ModuleKey, &Module)> {
        (0..).map(ModuleKey).zip(self.all.iter().map(|module| &**module))
    }

    /// Excludes a file from loading.
    pub(super) fn ignore(&mut self, file: &Metadata) {
        let device = (nix::libc::major(file.dev()), nix::libc::minor(file.dev()));
        self.ignored.insert(Inode { device, number: file.ino() });
    }

    /// Returns the file behind a mapping, loading it if it is new; `None` for memory without a file, and for unreadable
    /// files.
    pub(super) fn load(&mut self, pid: i32, entry: &MapsEntry, problems: &mut Problems) -> Option<ModuleKey> {
        let is_vdso = entry.path == "[vdso]";
        let inode = Inode { device: entry.device, number: entry.inode };
        if !is_vdso && (entry.inode == 0 || entry.path.is_empty()) || self.ignored.contains(&inode) {
            return None;
        }
        let len = entry.end.saturating_sub(entry.start);
        if is_vdso && let Some(known) = self.vdsos.get(&len) {
            return Some(*known);
        }
        let identity = mapped::identity(entry);
        if let Some(known) = identity.and_then(|identity| self.by_file.get(&identity)) {
            return *known;
        }
        if let Some(identity) = identity.filter(|_| self.open < MAX_OPEN)
            && let Some(module) = self.preloaded.find(&identity, &entry.path)
        {
            self.open += 1;
            let key = self.push(module);
            self.by_file.insert(identity, key);
            return key;
        }
        let bytes = match mapped::open(pid, entry) {
            Ok(bytes) => bytes,
            Err(why) => {
                problems.add(format!("{}: no names: {why}", entry.path));
                return None;
            }
        };
        match bytes {
            FileBytes::Memory(_) => {
                let key = self.add(entry, bytes, problems)?;
                self.vdsos.insert(len, key);
                Some(key)
            }
            FileBytes::File { identity, .. } => {
                if let Some(known) = self.by_file.get(&identity) {
                    return *known;
                }
                let key = self.resident(bytes).and_then(|bytes| self.add(entry, bytes, problems));
                self.by_file.insert(identity, key);
                key
            }
        }
    }

    /// Keeps the file open, or reads it into memory if too many are open.
    fn resident(&mut self, bytes: FileBytes) -> Option<FileBytes> {
        if self.open < MAX_OPEN {
            self.open += 1;
            return Some(bytes);
        }
        if bytes.len() > MAX_RESIDENT {
            return None;
        }
        bytes.read_all().map(|bytes| FileBytes::Memory(bytes.into()))
    }

    fn add(&mut self, entry: &MapsEntry, bytes: FileBytes, problems: &mut Problems) -> Option<ModuleKey> {
        let Some(elf) = ElfFile::parse(bytes) else {
            problems.add(format!("{}: no names: not an ELF file for x86-64", entry.path));
            return None;
        };
        self.push(Arc::new(Module::new(&entry.path, elf)))
    }

    pub(super) fn push(&mut self, module: Arc<Module>) -> Option<ModuleKey> {
        let key = ModuleKey(u32::try_from(self.all.len()).ok()?);
        self.all.push(module);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use crate::mapped::maps;
    use crate::{Preloaded, Symbols, libraries_of};
    use std::path::Path;

    #[test]
    fn a_mapping_uses_the_file_opened_ahead() {
        let pid = std::process::id() as i32;
        let preloaded = Preloaded::default();
        let own = preloaded.open(Path::new("/proc/self/exe")).unwrap();
        let libraries = libraries_of(Some(&own));
        assert_eq!(libraries, libraries_of(None));
        let mapped = maps::executable(pid).unwrap();
        assert!(libraries.iter().all(|path| mapped.iter().any(|m| Path::new(&m.path) == path)), "{libraries:?}");
        let path = libraries.last().unwrap();
        let file = preloaded.open(path).unwrap();
        file.read_names();
        let mapped = mapped.into_iter().find(|m| Path::new(&m.path) == path).unwrap();
        let mut symbols = Symbols::expecting(preloaded.clone());
        let key = symbols.load(pid, &mapped).unwrap();
        assert!(std::ptr::eq(symbols.module(key).unwrap(), file.module()));
        assert_eq!((symbols.state(key), symbols.build_id(key)), (file.state(), file.build_id()));
        // The same file under another name counts as another file.
        let identity = crate::mapped::identity(&mapped).unwrap();
        assert!(preloaded.find(&identity, "/elsewhere").is_none());
        assert!(preloaded.open(Path::new("/proc/self/status")).is_none());
    }
}
