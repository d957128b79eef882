//! Files looked at before a target has them mapped, by another thread.
//!
//! Nearly every program maps this box's C library. To have read its tables by then saves the target
//! the wait for it, and at the end whoever waits for names.

use crate::elf::Image;
use crate::maps;
use crate::module::Module;
use crate::source::{FileState, Identity};
use iced_x86::{Decoder, DecoderOptions};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that may be mapped soon, for [`Symbols::expecting`](crate::Symbols::expecting).
#[derive(Clone, Debug, Default)]
pub struct Ahead(Arc<Mutex<HashMap<Identity, Arc<Module>>>>);

/// One of them.
#[derive(Clone, Debug)]
pub struct AheadFile(Arc<Module>);

impl Ahead {
    /// Opens the file at `path`, which is known from now on; `None` where it is no ELF file for x86-64.
    pub fn open(&self, path: &Path) -> Option<AheadFile> {
        // As the kernel will call it.
        let path = std::fs::canonicalize(path).ok()?;
        let source = maps::open_file(&path).ok()?;
        let identity = source.identity()?;
        let module = Arc::new(Module::new(path.to_str()?, Image::parse(source)?));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(identity, Arc::clone(&module));
        Some(AheadFile(module))
    }

    /// The file of that identity, if it is known by this path.
    pub(crate) fn find(&self, identity: &Identity, path: &str) -> Option<Arc<Module>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(identity).filter(|module| *module.path == *path).cloned()
    }
}

impl AheadFile {
    /// State of the file, as [`Symbols::state`](crate::Symbols::state) has it.
    pub fn state(&self) -> Option<FileState> {
        self.0.image.source.state()
    }

    /// Its build-id, as [`Symbols::build_id`](crate::Symbols::build_id) has it.
    pub fn build_id(&self) -> Option<&str> {
        self.0.image.build_id.as_deref()
    }

    /// Whether it is a program that asks for a loader.
    pub fn is_dynamic(&self) -> bool {
        self.0.image.has_interpreter()
    }

    /// Reads what the file has mapped at `address`; how many bytes there were.
    pub fn read_code_into(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.0.image.read_code_into(address, buffer)
    }

    /// Reads what unwinding through the file needs.
    pub fn read_frames(&self) {
        self.0.cfi();
    }

    /// Reads what the file's functions are called, and what the loader is to write into it.
    pub fn read_names(&self) {
        self.0.names().make_ready();
        self.0.slots();
        self.0.runtime();
    }
}

/// Has the decoder of instructions unpack its tables, which it does once, when it is first needed: that
/// takes as long as decoding thousands of instructions.
pub fn make_decoder_ready() {
    let _ = Decoder::new(64, &[0xc3], DecoderOptions::NONE).decode();
}

/// The dynamic loader of nearly every program (x86-64 psABI, "Program Interpreter").
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// Paths of the loader that a program asks for, and of the C library that lies beside it. Of no program:
/// those of most.
#[must_use]
pub fn libraries_of(program: Option<&AheadFile>) -> Vec<PathBuf> {
    let asked = program.and_then(|program| program.0.image.interpreter());
    let loader = std::fs::canonicalize(asked.as_deref().unwrap_or(LOADER));
    let Ok(loader) = loader else { return Vec::new() };
    let library = loader.with_file_name("libc.so.6");
    [loader, library].into_iter().filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Symbols;

    #[test]
    fn a_file_opened_ahead_is_the_one_that_is_found_mapped() {
        let pid = std::process::id() as i32;
        let ahead = Ahead::default();
        let own = ahead.open(Path::new("/proc/self/exe")).unwrap();
        let libraries = libraries_of(Some(&own));
        assert_eq!(libraries, libraries_of(None));
        let mapped = maps::executable(pid).unwrap();
        assert!(libraries.iter().all(|path| mapped.iter().any(|m| Path::new(&m.path) == path)), "{libraries:?}");
        let path = libraries.last().unwrap();
        let file = ahead.open(path).unwrap();
        file.read_names();
        let mapped = mapped.into_iter().find(|m| Path::new(&m.path) == path).unwrap();
        let mut symbols = Symbols::expecting(ahead.clone());
        let key = symbols.load(pid, &mapped).unwrap();
        assert!(std::ptr::eq(symbols.module(key).unwrap(), &*file.0));
        assert_eq!((symbols.state(key), symbols.build_id(key)), (file.state(), file.build_id()));
        // The same inode with other contents, or by another name, is another file.
        let identity = maps::identity(&mapped).unwrap();
        assert!(ahead.find(&identity, "/elsewhere").is_none());
        assert!(ahead.open(Path::new("/proc/self/status")).is_none());
    }
}
