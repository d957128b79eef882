//! Modules, frames and stacks: the names of addresses.

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
    /// GNU build-id in lower-case hex, if the file has one.
    pub build_id: Option<Arc<str>>,
}

impl Module {
    /// Returns the last component of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// The kind of code that a frame runs, by its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameClass {
    /// Code of the program, or of a library that it was linked with by choice. Findings are about such code.
    #[default]
    User,
    /// Code of the C library, wherever it is linked.
    Libc,
    /// Code of the dynamic loader.
    Loader,
    /// Code of a language's own run-time: libstdc++, Rust's std, Go's runtime.
    Runtime,
    /// Code of the vDSO.
    Vdso,
    /// Code at an address for which no mapping or no file was found.
    Unknown,
}

impl FrameClass {
    /// All classes, in the order of their codes in recordings.
    pub const ALL: [Self; 6] = [Self::User, Self::Libc, Self::Loader, Self::Runtime, Self::Vdso, Self::Unknown];
}

/// The language of a script that an interpreter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Python, run by CPython.
    Python,
    /// Ruby, run by CRuby.
    Ruby,
    /// JavaScript, compiled as it runs.
    JavaScript,
    /// Java, and other languages that run in its virtual machine, compiled as they run.
    Java,
    /// Scripts of Bash.
    Bash,
    /// The language of any other shell.
    Shell,
    /// The language Perl.
    Perl,
    /// The language PHP.
    Php,
    /// The language Lua.
    Lua,
}

impl Language {
    /// All languages, in the order of their codes in the file.
    pub const ALL: [Self; 9] = [
        Self::Python,
        Self::Ruby,
        Self::JavaScript,
        Self::Java,
        Self::Bash,
        Self::Shell,
        Self::Perl,
        Self::Php,
        Self::Lua,
    ];

    /// Returns the language's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Ruby => "Ruby",
            Self::JavaScript => "JavaScript",
            Self::Java => "Java",
            Self::Bash => "Bash",
            Self::Shell => "Shell",
            Self::Perl => "Perl",
            Self::Php => "PHP",
            Self::Lua => "Lua",
        }
    }
}

/// A function and a line of its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// Demangled function name, or `file+0xSTART` (the function's start) if it has none.
    pub function: Arc<str>,
    /// Source file as DWARF names it.
    pub file: Option<Arc<str>>,
    /// Line of the call, from 1.
    pub line: Option<u32>,
}

/// A return address (or, at the leaf, the address of the `syscall` instruction), resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The module in which the address lies.
    pub module: Option<ModuleId>,
    /// Address of the call instruction, as an ELF virtual address of `module`; absolute if there is
    /// no module.
    pub address: u64,
    /// The kind of code that the frame runs.
    pub class: FrameClass,
    /// The functions at this address: inlined ones first, innermost first, then the function that
    /// contains them. Never empty.
    pub locations: Vec<Location>,
    /// Public name of the function that this frame calls here: the outermost function of its language's own library
    /// that is inlined at the call, else decoded from the call instruction and its relocations. `None` if it is an
    /// indirect call.
    pub callee: Option<Arc<str>>,
    /// The language of the script, if the frame is a script's line that its interpreter knows. Such a frame has no
    /// module, and its `address` means nothing.
    pub language: Option<Language>,
}

/// Names of files that tell only the folder's purpose, without their endings, and folders that tell no more.
const VAGUE: &[&str] =
    &["index", "__init__", "__main__", "init", "mod", "lib", "src", "dist", "build", "cjs", "esm", "out", "bin"];
/// Folders that are shown before a file's name, at most.
const MAX_FOLDERS: usize = 3;

/// Returns the end of a source file's path by which a reader knows the file: its name, with its folder if the name is
/// that of many files, as `express/lib/index.js`.
pub fn short_file(path: &str) -> &str {
    let mut from = path.rfind('/').map_or(0, |slash| slash + 1);
    for _ in 0..MAX_FOLDERS {
        let name = path.get(from..).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let stem = name.split('.').next().unwrap_or(name);
        let Some(before) = from.checked_sub(1).and_then(|end| path.get(..end)) else { break };
        if before.is_empty() || !VAGUE.contains(&stem) {
            break;
        }
        from = before.rfind('/').map_or(0, |slash| slash + 1);
    }
    path.get(from..).unwrap_or(path)
}

impl Frame {
    /// Returns the function to which the code belongs, without the functions inlined into it.
    pub fn function(&self) -> &str {
        self.locations.last().map_or("?", |l| &l.function)
    }

    /// Returns the place in the source at which the frame stands: the innermost location with a line, otherwise the
    /// innermost location.
    pub fn location(&self) -> Option<&Location> {
        self.locations.first()
    }
}

/// Frames of a stack, from the system call outwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The frames, leaf first.
    pub frames: Vec<FrameId>,
    /// True if unwinding reached the first frame of the program or thread. A row's context ends at
    /// the user's frame by design and is not complete.
    pub complete: bool,
}

#[cfg(test)]
mod tests {
    use super::short_file;

    #[test]
    fn a_file_whose_name_many_have_is_shown_with_its_folder() {
        for (path, shown) in [
            ("/srv/app/server.js", "server.js"),
            ("/srv/node_modules/express/index.js", "express/index.js"),
            ("/srv/node_modules/agent-base/dist/index.js", "agent-base/dist/index.js"),
            ("/srv/node_modules/a/lib/dist/cjs/index.js", "lib/dist/cjs/index.js"),
            ("/usr/lib/python3/asyncio/__init__.py", "asyncio/__init__.py"),
            ("src/net/mod.rs", "net/mod.rs"),
            ("/index.js", "index.js"),
            ("index.js", "index.js"),
            ("/a/", ""),
            ("", ""),
        ] {
            assert_eq!(short_file(path), shown, "{path}");
        }
    }
}
