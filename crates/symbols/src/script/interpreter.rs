//! The interface of every language: recognises files that hold its interpreter, and reads the lines of threads.
//!
//! A language is a folder beside this file. It recognises its files by their exports ([`Runtime`]), knows the layout
//! of its version's frames in a process that has the file mapped ([`Interpreter`]), and reads them while a thread
//! waits.

use super::memory::Memory;
use super::thread::{Evaluation, Thread};
use crate::PlacedFrame;
use crate::code::variables;
use crate::elf::ElfFile;
use crate::lines::ScriptLines;
use object::LittleEndian as Le;
use object::elf;
use std::fmt::Debug;
use std::ops::Range;
use systoll_binfile::c_str;

/// A file that holds an interpreter.
pub(crate) trait Runtime: Debug + Send + Sync {
    /// Returns the interpreter of a process that has the file mapped with `bias`; `Ok(None)` until the interpreter
    /// has started. Returns a message if the frames of its version are not known.
    fn attach(&self, memory: &mut Memory<'_, '_>, bias: u64) -> Result<Option<Box<dyn Interpreter>>, String>;

    /// Returns the address of the function that runs once for each nested evaluation; `None` if evaluations are not
    /// matched with native frames.
    fn evaluate(&self) -> Option<u64>;

    /// Returns true if a program reaches its script's first line after few calls, and may end after few. Its lines
    /// are read from the first call on, even if earlier runs already met all of its calls.
    fn is_brief(&self) -> bool {
        false
    }

    /// Returns true if the interpreter compiles scripts at run time, so that frames without a file belong to them.
    fn compiles(&self) -> bool {
        false
    }
}

/// An interpreter in an address space.
pub(crate) trait Interpreter: Debug + Send {
    /// Returns the evaluations of the thread, innermost first; `None` if they can't be read.
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>>;
}

/// The inputs for reading the scripts of a waiting thread.
pub(crate) struct Look<'l, 'r, 'f> {
    pub(crate) thread: Thread,
    /// The thread's native frames, innermost first.
    pub(crate) placed: &'l [PlacedFrame],
    pub(crate) memory: &'l mut Memory<'r, 'f>,
    pub(crate) lines: &'l mut ScriptLines,
}

/// Bytes beyond the outermost unwound frame that still count as the same native stack.
const BEYOND: u64 = 16 << 10;

/// Returns the native stack that contains the part `unwound`.
pub(crate) fn around(unwound: &Range<u64>) -> Range<u64> {
    unwound.start..unwound.end.saturating_add(BEYOND)
}

impl Look<'_, '_, '_> {
    /// Returns the part of the native stack that was unwound; `None` if nothing was.
    pub(crate) fn stack(&self) -> Option<Range<u64>> {
        Some(self.placed.first()?.sp..self.placed.last()?.sp)
    }
}

/// A file that may hold an interpreter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'e> {
    pub(crate) elf: &'e ElfFile,
    pub(crate) path: &'e str,
}

impl Candidate<'_> {
    /// Returns the file's name without its folders.
    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// Returns the 4-byte word that the file holds at an ELF virtual address.
    pub(crate) fn half(&self, at: u64) -> Option<u32> {
        Some(u32::from_le_bytes(self.elf.read_vaddr(at, 4)?.try_into().ok()?))
    }

    /// Returns the range of an exported function; an empty range if it is not known.
    pub(crate) fn function(&self, name: &str) -> Range<u64> {
        self.elf.exports().and_then(|exports| exports.extents(name.as_bytes()).next()).unwrap_or_default()
    }

    /// Returns the address range of data that the file's own symbol table names. Names are read only of symbols whose
    /// range `may` accepts.
    pub(crate) fn own_data(&self, name: &str, may: &dyn Fn(&Range<u64>) -> bool) -> Option<Range<u64>> {
        let table = self.elf.symbols()?;
        table.symbols().iter().find_map(|symbol| {
            let start = symbol.st_value.get(Le);
            let extent = start..start.checked_add(symbol.st_size.get(Le))?;
            let is_data = symbol.st_type() == elf::STT_OBJECT && symbol.st_shndx.get(Le) != elf::SHN_UNDEF;
            (is_data && may(&extent)).then_some(())?;
            (table.strings.get(symbol.st_name.get(Le)).as_deref() == Some(name.as_bytes())).then_some(extent)
        })
    }

    /// Returns the address from which an exported function reads its first pointer.
    pub(crate) fn first_pointer_read(&self, name: &str) -> Option<u64> {
        variables::first_pointer_read(self.elf, self.function(name))
    }

    /// Returns the address of the first 4-byte variable that an exported function compares, or the function that it jumps to.
    pub(crate) fn first_half_compared(&self, name: &str) -> Option<u64> {
        variables::first_half_compared(self.elf, self.function(name))
    }

    /// Returns the addresses of exported symbols, in the order of `names`.
    pub(crate) fn exported<const N: usize>(&self, names: [&str; N]) -> [Option<u64>; N] {
        if let Some(exports) = self.elf.exports() {
            return names.map(|name| exports.addresses(name.as_bytes()).next());
        }
        let mut found = [None; N];
        let Some(table) = self.elf.dynamic_symbols() else { return found };
        let strings = table.strings.whole();
        for symbol in table.symbols().iter().filter(|s| s.st_shndx.get(Le) != elf::SHN_UNDEF) {
            let at = symbol.st_name.get(Le) as usize;
            // Most symbols are others, so their first bytes are compared before their whole names.
            let might = strings.get(at..).is_some_and(|s| names.iter().any(|n| s.starts_with(n.as_bytes())));
            if !might {
                continue;
            }
            let name = c_str(strings, at);
            for (wanted, found) in names.iter().zip(&mut found) {
                if name == Some(wanted.as_bytes()) {
                    *found = Some(symbol.st_value.get(Le));
                }
            }
        }
        found
    }
}
