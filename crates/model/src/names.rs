//! Modules, frames and stacks: what addresses turned out to be called.

use std::sync::Arc;

/// Index into [`crate::Recording::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// Index into [`crate::Recording::frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// Index into [`crate::Recording::stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// A file, or the vDSO, that was mapped executable into a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path as the target saw it; `[vdso]` for the vDSO.
    pub path: Arc<str>,
    /// GNU build-id in lower-case hex, where the file has one.
    pub build_id: Option<Arc<str>>,
}

impl Module {
    /// The last component of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Whose code a frame runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameClass {
    /// The program, or a library somebody chose to link: what findings are about.
    #[default]
    User,
    /// The C library, wherever it is linked.
    Libc,
    /// The dynamic loader.
    Loader,
    /// A language's own run-time: libstdc++, Rust's std, Go's runtime.
    Runtime,
    /// The vDSO.
    Vdso,
    /// No mapping or no file was found for the address.
    Unknown,
}

/// One function at one place of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// Demangled function name, or `file+0xSTART` (the function's start) where it has none.
    pub function: Arc<str>,
    /// Source file as DWARF names it.
    pub file: Option<Arc<str>>,
    /// Line of the call, from 1.
    pub line: Option<u32>,
}

/// A return address (or, at the leaf, the address of the `syscall` instruction), resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The module the address lies in.
    pub module: Option<ModuleId>,
    /// Address of the instruction that makes the call, as an ELF virtual address of `module`;
    /// absolute where there is none.
    pub address: u64,
    /// Whose code it is.
    pub class: FrameClass,
    /// Inlined functions first, innermost first; last the function whose code it is.
    /// Never empty.
    pub locations: Vec<Location>,
    /// Public name of the function that this frame calls here, from decoding the call
    /// instruction and following relocations; `None` where the call is indirect.
    pub callee: Option<Arc<str>>,
}

impl Frame {
    /// The function whose code it is, inlined ones set aside.
    pub fn function(&self) -> &str {
        self.locations.last().map_or("?", |l| &l.function)
    }

    /// The place in the source the frame stands at: its innermost location with a line,
    /// else its innermost location.
    pub fn location(&self) -> Option<&Location> {
        self.locations.first()
    }
}

/// Frames from the system call outwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    /// Leaf first.
    pub frames: Vec<FrameId>,
    /// Whether unwinding reached the program's or thread's first frame. A row's context ends
    /// at the user's frame by design and is not complete.
    pub complete: bool,
}
