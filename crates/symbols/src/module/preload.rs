//! Files read before a target has them mapped, by another thread.
//!
//! Nearly every program maps this box's C library. A target does not wait for tables that have been
//! read by then, and a report has its names sooner.

use super::asked::{HasTables, KeptAnswers};
use super::tables::Module;
use crate::elf::ElfFile;
use crate::mapped::{self, FileState, Identity};
use iced_x86::{Decoder, DecoderOptions};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that may be mapped soon, for [`Symbols::expecting`](crate::Symbols::expecting).
#[derive(Clone, Debug, Default)]
pub struct Preloaded(Arc<Mutex<HashMap<Identity, Arc<Module>>>>);

/// One of them.
#[derive(Clone, Debug)]
pub struct PreloadedFile(Arc<Module>);

impl Preloaded {
    /// Opens the file at `path`, which is known from now on; `None` where it is no ELF file for x86-64.
    pub fn open(&self, path: &Path) -> Option<PreloadedFile> {
        // As the kernel will call it.
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

    /// Opens what the loader maps for `program`, in the order in which it does: as far as it lies in the loader's own folder
    /// or where files say that theirs lie. Elsewhere the loader's cache would have to be asked. At most `most`, each of which
    /// stays open.
    pub fn open_needed(&self, program: &PreloadedFile, loader: &Path, most: usize) -> Vec<PreloadedFile> {
        let mut opened: Vec<PreloadedFile> = Vec::new();
        let mut seen = HashSet::new();
        let (mut open, mut folders) = (program.clone(), Vec::new());
        for at in 0..=most {
            let (names, told) = open.0.elf.needed(most);
            let origin = Path::new(&*open.0.path).parent().and_then(Path::to_str).unwrap_or_default();
            let told: Vec<PathBuf> =
                told.iter().take(MOST_FOLDERS).map(|dir| origin_put_in(dir, origin).into()).collect();
            // The program's hold for what its libraries need as well.
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

    /// The file of that identity, if it is known by this path.
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

    /// State of the file, as [`Symbols::state`](crate::Symbols::state) has it.
    pub fn state(&self) -> Option<FileState> {
        self.0.elf.bytes.state()
    }

    /// Its build-id, as [`Symbols::build_id`](crate::Symbols::build_id) has it.
    pub fn build_id(&self) -> Option<&str> {
        self.0.elf.build_id.as_deref()
    }

    /// All of it, where it still is what it was when it was opened.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        self.0.elf.bytes.read_all()
    }

    /// Whether it is a program that asks for a loader.
    pub fn is_dynamic(&self) -> bool {
        self.0.elf.has_interpreter()
    }

    /// The extent of the function around `address`, where one of the file's tables tells it.
    pub fn function_at(&self, address: u64) -> Option<Range<u64>> {
        self.0.told_range(address)
    }

    /// Reads what the file has mapped at `address`; how many bytes there were.
    pub fn read_code_into(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.0.elf.read_code_into(address, buffer)
    }

    /// Whether earlier runs have kept what they asked of the file: its tables and code are hardly read then.
    pub fn is_known(&self) -> bool {
        self.0.name_counts().kept > 0
    }

    /// Reads what unwinding through the file needs, unless an earlier run has kept what it found out by that.
    pub fn read_frames(&self) {
        if !self.is_known() {
            self.0.cfi();
        }
    }

    /// [`Symbols::debug_file_state`](crate::Symbols::debug_file_state).
    pub fn debug_file_state(&self) -> u64 {
        self.0.debug_file_state()
    }

    /// [`Symbols::know_names`](crate::Symbols::know_names).
    pub fn know_names(&self, answers: Arc<dyn KeptAnswers>) {
        self.0.know_names(answers);
    }

    /// Reads what the file's functions are called, and what the loader is to write into it, unless an earlier run has
    /// kept what it asked of them.
    pub fn read_names(&self) {
        if !self.is_known() {
            self.0.tables().make_ready();
            self.0.slots();
            self.0.runtime();
        }
    }
}

/// Has the decoder of instructions unpack its tables, which it does once, when it is first needed: that
/// takes as long as decoding thousands of instructions.
pub fn make_decoder_ready() {
    let _ = Decoder::new(64, &[0xc3], DecoderOptions::NONE).decode();
}

/// The most folders that a file may say libraries are in: each is looked in for each of them.
const MOST_FOLDERS: usize = 16;

/// A folder that a file at `origin` tells the loader of (ld.so(8), "Dynamic string tokens").
fn origin_put_in(dir: &str, origin: &str) -> String {
    dir.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
}

/// The dynamic loader of nearly every program (x86-64 psABI, "Program Interpreter").
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// Paths of the loader that a program asks for, and of the C library that lies beside it. Of no program:
/// those of most.
#[must_use]
pub fn libraries_of(program: Option<&PreloadedFile>) -> Vec<PathBuf> {
    let asked = program.and_then(|program| program.0.elf.interpreter());
    let loader = std::fs::canonicalize(asked.as_deref().unwrap_or(LOADER));
    let Ok(loader) = loader else { return Vec::new() };
    let library = loader.with_file_name("libc.so.6");
    [loader, library].into_iter().filter(|path| path.is_file()).collect()
}
