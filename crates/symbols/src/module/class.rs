//! Classes of code: the user's, the C library's, a language run-time's.

use super::answers::Functions;
use crate::code::{GotSlots, start};
use crate::elf::ElfFile;
use crate::names::{demangle, is_reserved};
use crate::unwind::Cfi;
use std::ops::Range;
use systoll_model::FrameClass;

/// Top-level packages of Go's standard library (`go list std`), except those with a vendored twin.
const GO_STD: &[&str] = &[
    "archive",
    "bufio",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "structs",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "type",
    "unicode",
    "unique",
    "unsafe",
    "vendor",
    "weak",
    "_rt0_amd64_linux",
    "_rt0_amd64",
    "gogo",
    "callRet",
    "gosave_systemstack_switch",
];

/// Returns true for the classes of code that programs call into: the C library's, the loader's and the vDSO's.
pub(crate) fn is_libc(class: FrameClass) -> bool {
    matches!(class, FrameClass::Libc | FrameClass::Loader | FrameClass::Vdso)
}

/// Returns the class of a whole file, by its name; `None` if it depends on the function.
pub(crate) fn of_file(path: &str, soname: Option<&str>) -> Option<FrameClass> {
    if path == "[vdso]" {
        return Some(FrameClass::Vdso);
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    [Some(file), soname].into_iter().flatten().find_map(of_file_name)
}

fn of_file_name(name: &str) -> Option<FrameClass> {
    if !name.contains(".so") {
        return None;
    }
    let stem = name.split(['.', '-', '_']).next().unwrap_or(name);
    match stem {
        "ld" if name.starts_with("ld-musl") => Some(FrameClass::Libc),
        "ld" if name.starts_with("ld-") => Some(FrameClass::Loader),
        "libc" if name.starts_with("libc.so") || name.starts_with("libc-2.") || name.starts_with("libc.musl") => {
            Some(FrameClass::Libc)
        }
        "libpthread" | "libdl" | "libm" | "librt" | "libresolv" | "libutil" | "libanl" | "libmvec" => {
            Some(FrameClass::Libc)
        }
        "libnss" if !name.starts_with("libnss3") && !name.starts_with("libnssutil") => Some(FrameClass::Libc),
        "libffi" | "libstdc++" | "libgcc" | "libc++" | "libc++abi" | "libgfortran" | "libasan" | "libtsan"
        | "libubsan" => Some(FrameClass::Runtime),
        "libstd" => Some(FrameClass::Runtime),
        _ => None,
    }
}

/// Facts by which the functions of one file are classified.
#[derive(Debug, Default)]
pub(crate) struct Ownership {
    is_go: bool,
    /// Range of the start-up code at the entry point, which belongs to the C library.
    start: Option<Range<u64>>,
    /// Range of the C library's functions in a static program.
    static_libc: Option<Range<u64>>,
    /// True if the program's own functions have call frame information, and those of the C library have none because it
    /// was built without (musl).
    libc_is_bare: bool,
}

impl Ownership {
    /// Collects the facts about a file. For most files, this reads neither slots nor call frame information.
    pub(crate) fn of<'m>(
        elf: &ElfFile,
        names: Functions<'_>,
        slots: &dyn Fn() -> &'m GotSlots,
        cfi: &dyn Fn() -> &'m Cfi,
        start: Option<Range<u64>>,
    ) -> Self {
        let is_program = elf.entry() != 0 && (elf.has_interpreter() || !elf.needs_others);
        let is_go = is_go(elf);
        let start = start.filter(|_| is_program && !is_go);
        let static_libc = if is_static(elf) && !is_go { static_libc(elf, names, slots(), start.clone()) } else { None };
        let has_entry = |addr| cfi().function(addr).is_some();
        let libc_is_bare =
            is_static(elf) && !is_go && !has_entry(elf.entry()) && start::main_of(elf, slots()).is_some_and(has_entry);
        Self { is_go, start, static_libc, libc_is_bare }
    }

    /// Returns the class of the function around `addr`, whose name in the symbol table is `name`.
    pub(crate) fn class<'m>(
        &self,
        names: Functions<'_>,
        cfi: &dyn Fn() -> &'m Cfi,
        addr: u64,
        name: Option<&str>,
    ) -> FrameClass {
        if self.start.as_ref().is_some_and(|s| s.contains(&addr)) {
            return FrameClass::Libc;
        }
        if self.is_go {
            return name.map_or(FrameClass::User, go_class);
        }
        if let Some(class) = name.and_then(runtime_class) {
            return class;
        }
        if self.libc_is_bare && cfi().function(addr).is_none() {
            return FrameClass::Libc;
        }
        let Some(libc) = &self.static_libc else { return FrameClass::User };
        // A cold part lies apart from the function that it belongs to.
        let whole = name.and_then(|n| n.split_once(".cold")).and_then(|(whole, _)| names.find(whole));
        let addr = whole.map_or(addr, |function| function.start);
        // Functions that are hardly ever called lie apart as well: `abort` lies before the program's own code.
        let is_apart = self.start.as_ref().is_some_and(|s| addr < s.start)
            && name.is_some_and(|n| n == "abort" || is_reserved(n.as_bytes()));
        if libc.contains(&addr) || is_apart { FrameClass::Libc } else { FrameClass::User }
    }
}

/// Returns true if `function`, demangled, in source file `file` is in a language's own library, compiled into `elf`.
pub(crate) fn is_runtimes(elf: &ElfFile, function: &str, file: Option<&str>) -> bool {
    if is_go(elf) {
        return go_class(function) == FrameClass::Runtime;
    }
    is_runtime_path(function) || file.is_some_and(is_runtime_file)
}

/// Returns true if a source file belongs to Rust's or C++'s standard library, or comes with a compiler. Used for
/// inlined functions for which DWARF has no full names.
fn is_runtime_file(path: &str) -> bool {
    let rust =
        path.strip_prefix("/rustc/").is_some_and(|p| p.split_once('/').is_some_and(|(_, p)| p.starts_with("library/")));
    rust || path.contains("/lib/rustlib/src/rust/library/")
        || ["/include/c++/", "/lib/gcc/", "/lib/clang/"].iter().any(|folder| path.contains(folder))
}

fn go_class(name: &str) -> FrameClass {
    // A package path ends at the first dot after its last slash. Slashes in the brackets of generics do not count.
    let path = name.split(['[', '(']).next().unwrap_or(name);
    let first = path.split(['/', '.', ':']).next().unwrap_or(path);
    if GO_STD.contains(&first) { FrameClass::Runtime } else { FrameClass::User }
}

/// Returns [`FrameClass::Runtime`] for a function of Rust's or C++'s standard library that was compiled into this file.
fn runtime_class(name: &str) -> Option<FrameClass> {
    if !name.starts_with('_') {
        return None;
    }
    const SUPPORT: &[&str] = &["_Unwind_", "__cxa_", "__gxx_", "__rust_", "__rdl_", "__rg_", "__rustc"];
    if SUPPORT.iter().any(|s| name.starts_with(s)) {
        // In a static program, these may be functions of the C library. A report shows both classes alike.
        return Some(FrameClass::Runtime);
    }
    (name.starts_with("_Z") || name.starts_with("_R"))
        .then(|| demangle(name))
        .and_then(|n| is_runtime_path(&n).then_some(FrameClass::Runtime))
}

/// Returns true if a demangled name is in Rust's or C++'s standard library.
pub(crate) fn is_runtime_path(name: &str) -> bool {
    let mut path = name;
    // `<&mut std::fs::File as std::io::Write>::write`: the type decides which library it is.
    while let Some(rest) =
        ["<", "&", "*const ", "*mut ", "mut ", "dyn ", "[", "("].iter().find_map(|p| path.strip_prefix(p))
    {
        path = rest;
    }
    ["std::", "core::", "alloc::", "__gnu_cxx::", "__cxxabiv1::"].iter().any(|p| path.starts_with(p))
}

/// Returns true for a program that contains its C library.
pub(crate) fn is_static(elf: &ElfFile) -> bool {
    elf.entry() != 0 && !elf.has_interpreter() && !elf.needs_others
}

/// Returns true if Go's linker made the file.
pub(crate) fn is_go(elf: &ElfFile) -> bool {
    [".gopclntab", ".go.buildinfo"].iter().any(|name| elf.section(name).is_some())
}

/// Returns the range of the C library in a static program. Linkers put the members of archives behind the program's own
/// objects, so it begins at the C library's first function.
fn static_libc(elf: &ElfFile, names: Functions<'_>, slots: &GotSlots, start: Option<Range<u64>>) -> Option<Range<u64>> {
    let start = start?;
    let main = start::main_of(elf, slots);
    // An optimized `main` lies in a section of its own, before everything else.
    let own = main.unwrap_or(0).max(start.end);
    let first = if names.is_empty() {
        // In a stripped program, only the function that the start-up code calls is known for certain.
        start::first_call(elf, slots).filter(|at| *at > own)
    } else {
        names.first_of_libc(own)
    }?;
    let end =
        elf.headers.segments.iter().filter(|s| s.executable).map(|s| s.vaddr.saturating_add(s.file_size)).max()?;
    Some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_classified_by_their_names() {
        use FrameClass::*;
        for (path, class) in [
            ("/lib/x86_64-linux-gnu/libc.so.6", Some(Libc)),
            ("/lib/libc-2.31.so", Some(Libc)),
            ("/lib/ld-musl-x86_64.so.1", Some(Libc)),
            ("/usr/lib/ld-linux-x86-64.so.2", Some(Loader)),
            ("/usr/lib/libnss_files.so.2", Some(Libc)),
            ("/usr/lib/libnss3.so", None),
            ("/usr/lib/libm.so.6", Some(Libc)),
            ("/usr/lib/libmagic.so.1", None),
            ("/usr/lib/libcurl.so.4", None),
            ("/usr/lib/libstdc++.so.6.0.30", Some(Runtime)),
            ("/usr/bin/ld", None),
            ("/home/me/libc", None),
            ("[vdso]", Some(Vdso)),
        ] {
            assert_eq!(of_file(path, None), class, "{path}");
        }
        assert_eq!(of_file("/opt/strange.so", Some("libc.so.6")), Some(Libc));
    }

    #[test]
    fn standard_libraries_are_recognized_by_their_paths() {
        for ours in
            ["std::fs::File::open", "<std::fs::File as std::io::Write>::write", "<&mut alloc::vec::Vec<T> as X>::y"]
        {
            assert!(is_runtime_path(ours), "{ours}");
        }
        for theirs in ["<mine::T as core::fmt::Display>::fmt", "stdx::a", "main", "core_things"] {
            assert!(!is_runtime_path(theirs), "{theirs}");
        }
        for theirs in ["/usr/include/c++/12/bits/std_thread.h", "/rustc/0123abc/library/core/src/ops.rs"] {
            assert!(is_runtime_file(theirs), "{theirs}");
        }
        for ours in ["/home/me/include/c.h", "/rustc/x.rs", "src/rustc/0123/library/a.rs", "library/core/a.rs"] {
            assert!(!is_runtime_file(ours), "{ours}");
        }
        assert_eq!(go_class("internal/runtime/syscall.Syscall6"), FrameClass::Runtime);
        assert_eq!(go_class("os.(*File).Write"), FrameClass::Runtime);
        assert_eq!(go_class("main.main"), FrameClass::User);
        assert_eq!(go_class("example.com/os/x.F"), FrameClass::User);
    }
}
