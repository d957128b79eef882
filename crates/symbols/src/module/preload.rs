//! Files that another thread reads before a target maps them.
//!
//! Nearly every program maps this machine's C library. A target does not wait for tables that have been read by then,
//! and the report gets its names sooner.

use super::answers::{HasTables, KeptAnswers};
use super::tables::Module;
use crate::elf::ElfFile;
use crate::mapped::{self, FileState, Identity};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that may be mapped soon, for [`Symbols::expecting`](crate::Symbols::expecting).
#[derive(Clone, Debug, Default)]
pub struct Preloaded(Arc<Mutex<HashMap<Identity, Arc<Module>>>>);

/// A file of [`Preloaded`].
#[derive(Clone, Debug)]
pub struct PreloadedFile(Arc<Module>);

impl Preloaded {
    /// Opens the file at `path` and adds it. Returns `None` if it is not an ELF file for x86-64.
    pub fn open(&self, path: &Path) -> Option<PreloadedFile> {
        // The kernel will report the file under its canonical path.
        let path = std::fs::canonicalize(path).ok()?;
        let source = mapped::open_file(&path).ok()?;
        let (identity, path) = (source.identity()?, path.to_str()?);
        if let Some(module) = self.find(&identity, path) {
            return Some(PreloadedFile(module));
        }
        let module = Arc::new(Module::new(path, ElfFile::parse(source)?));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(identity, Arc::clone(&module));
        Some(PreloadedFile(module))
    }

    /// Opens the libraries that the loader maps for `program`, in its order. Finds those in the loader's own folder
    /// and in folders that files name; finding others would take the loader's cache. Opens at most `most` files, and
    /// keeps them open.
    pub fn open_needed(&self, program: &PreloadedFile, loader: &Path, most: usize) -> Vec<PreloadedFile> {
        let mut opened: Vec<PreloadedFile> = Vec::new();
        let mut seen = HashSet::new();
        let (mut open, mut folders) = (program.clone(), Vec::new());
        for at in 0..=most {
            let (names, told) = open.0.elf.needed(most);
            let origin = Path::new(&*open.0.path).parent().and_then(Path::to_str).unwrap_or_default();
            let told: Vec<PathBuf> =
                told.iter().take(MOST_FOLDERS).map(|dir| origin_put_in(dir, origin).into()).collect();
            // The program's folders also hold for the needs of its libraries.
            if at == 0 {
                folders = told.iter().cloned().chain(loader.parent().map(Path::to_owned)).collect();
            }
            for name in names.into_iter().filter(|name| !name.contains('/')) {
                if seen.len() < most && seen.insert(name.clone()) {
                    let places = told.iter().chain(&folders).map(|dir| dir.join(&name));
                    opened.extend(places.filter(|path| path.is_file()).find_map(|path| self.open(&path)));
                }
            }
            let Some(next) = opened.get(at) else { break };
            open = next.clone();
        }
        opened
    }

    /// Returns the file with this identity, if it was opened by this path.
    pub(crate) fn find(&self, identity: &Identity, path: &str) -> Option<Arc<Module>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(identity).filter(|module| *module.path == *path).cloned()
    }
}

impl PreloadedFile {
    #[cfg(test)]
    pub(crate) fn module(&self) -> &Module {
        &self.0
    }

    /// Returns the file's state, see [`Symbols::state`](crate::Symbols::state).
    pub fn state(&self) -> Option<FileState> {
        self.0.elf.bytes.state()
    }

    /// Returns the file's build-id, see [`Symbols::build_id`](crate::Symbols::build_id).
    pub fn build_id(&self) -> Option<&str> {
        self.0.elf.build_id.as_deref()
    }

    /// Returns all bytes of the file, if it has not changed since it was opened.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        self.0.elf.bytes.read_all()
    }

    /// Returns true if the file is a program that asks for a loader.
    pub fn is_dynamic(&self) -> bool {
        self.0.elf.has_interpreter()
    }

    /// Returns the range of the function around `address`, if one of the file's tables has it.
    pub fn function_at(&self, address: u64) -> Option<Range<u64>> {
        self.0.range_by_tables(address)
    }

    /// Reads the file's bytes that are mapped at `address` into `buffer`. Returns the number of bytes read.
    pub fn read_code_into(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.0.elf.read_code_into(address, buffer)
    }

    /// Returns true if earlier runs have kept answers about the file, so that its tables and code are hardly read.
    pub fn is_known(&self) -> bool {
        self.0.name_counts().kept > 0
    }

    /// Reads the tables for unwinding through the file, unless an earlier run has kept the results of unwinding.
    pub fn read_frames(&self) {
        if !self.is_known() {
            self.0.cfi();
        }
    }

    /// Returns one number that stands for the file's debug files, see
    /// [`Symbols::debug_file_state`](crate::Symbols::debug_file_state).
    pub fn debug_file_state(&self) -> u64 {
        self.0.debug_file_state()
    }

    /// Takes an earlier run's answers about the file, see [`Symbols::know_names`](crate::Symbols::know_names).
    pub fn know_names(&self, answers: Arc<dyn KeptAnswers>) {
        self.0.know_names(answers);
    }

    /// Reads the names of the file's functions and its relocations, unless an earlier run has kept the answers about
    /// them.
    pub fn read_names(&self) {
        if !self.is_known() {
            self.0.tables().make_ready();
            self.0.slots();
            self.0.runtime();
        }
    }
}

/// Makes the instruction decoder ready, if it needs that.
pub fn make_decoder_ready() {
    crate::code::make_ready();
}

/// Folders taken from one file, at most; each is searched for every library.
const MOST_FOLDERS: usize = 16;

/// Replaces the tokens in a folder that a file in folder `origin` names (ld.so(8), "Dynamic string tokens").
fn origin_put_in(dir: &str, origin: &str) -> String {
    dir.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
}

/// Path of the dynamic loader of nearly every program (the psABIs, "Program Interpreter").
const LOADER: &str =
    if cfg!(target_arch = "aarch64") { "/lib/ld-linux-aarch64.so.1" } else { "/lib64/ld-linux-x86-64.so.2" };

/// Returns the paths of the loader that a program asks for, and of the C library beside it. Without a program, returns
/// those that most programs use.
#[must_use]
pub fn libraries_of(program: Option<&PreloadedFile>) -> Vec<PathBuf> {
    let asked = program.and_then(|program| program.0.elf.interpreter());
    let loader = std::fs::canonicalize(asked.as_deref().unwrap_or(LOADER));
    let Ok(loader) = loader else { return Vec::new() };
    let library = loader.with_file_name("libc.so.6");
    [loader, library].into_iter().filter(|path| path.is_file()).collect()
}
