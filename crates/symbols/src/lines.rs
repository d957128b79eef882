//! Source lines and inlined functions, by DWARF.

use crate::module::Module;
use crate::names::demangle;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolizer};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use systoll_model::Location;

/// Looks up lines; keeps what it parsed until dropped.
pub(crate) struct Lines {
    symbolizer: Symbolizer,
    /// Copies must stay open as long as the symbolizer may read them.
    copies: RefCell<Vec<File>>,
}

impl Lines {
    pub(crate) fn new() -> Self {
        // Names are demangled by us, so that all are written alike.
        let symbolizer = Symbolizer::builder().enable_demangling(false).enable_auto_reload(false).build();
        Self { symbolizer, copies: RefCell::default() }
    }

    /// What stands at each of `addrs`, innermost first; the last location is the function itself.
    /// Empty where there are no lines.
    pub(crate) fn look_up(&self, module: &Module, addrs: &[u64]) -> Result<Vec<Vec<Location>>, String> {
        let Some(path) = self.dwarf_of(module)? else { return Ok(vec![Vec::new(); addrs.len()]) };
        let source = Source::Elf(Elf::new(path));
        let found = self.symbolizer.symbolize(&source, Input::VirtOffset(addrs)).map_err(|e| e.to_string())?;
        let mut locations: Vec<_> = found.iter().map(|s| s.as_sym().map_or_else(Vec::new, in_model)).collect();
        locations.resize_with(addrs.len(), Vec::new);
        Ok(locations)
    }

    /// The file to read DWARF from: the separate debug file, or a copy of the module itself, whose
    /// path may be gone or hold something else by now. The symbolizer maps files, and a mapping of
    /// a file that its owner truncates is deadly: a copy is not.
    fn dwarf_of(&self, module: &Module) -> Result<Option<PathBuf>, String> {
        if module.image.has_lines() {
            let bytes = module.image.source.read_all().ok_or("the file has changed, or is too large")?;
            let copy = memfd_create(c"systoll-dwarf", MFdFlags::MFD_CLOEXEC).map_err(|e| e.to_string())?;
            let mut copy = File::from(copy);
            copy.write_all(&bytes).map_err(|e| e.to_string())?;
            let path = PathBuf::from(format!("/proc/self/fd/{}", copy.as_raw_fd()));
            self.copies.borrow_mut().push(copy);
            return Ok(Some(path));
        }
        Ok(module.debug_file().filter(|d| d.image.has_lines()).map(|d| d.path.clone()))
    }
}

fn in_model(symbol: &Sym<'_>) -> Vec<Location> {
    let location = |name: &str, at: Option<&CodeInfo<'_>>| Location {
        function: demangle(name).into(),
        file: at.map(|c| c.to_path().to_string_lossy().into()),
        line: at.and_then(|c| c.line).filter(|l| *l > 0),
    };
    if symbol.code_info.is_none() && symbol.inlined.is_empty() {
        return Vec::new();
    }
    let inlined = symbol.inlined.iter().rev().map(|i| location(&i.name, i.code_info.as_ref()));
    inlined.chain([location(&symbol.name, symbol.code_info.as_deref())]).collect()
}
