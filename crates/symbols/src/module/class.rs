//! Whose code it is: the user's, the C library's, a language run-time's.

use super::asked::Functions;
use crate::code::{GotSlots, start};
use crate::elf::ElfFile;
use crate::names::{demangle, is_reserved};
use crate::unwind::Cfi;
use std::ops::Range;
use systoll_model::FrameClass;

/// Top-level packages of Go's standard library (`go list std`), but for those with a vendored twin.
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

/// Whether it is the C library's code, the loader's or the vDSO's: what programs call into.
pub(crate) fn is_libc(class: FrameClass) -> bool {
    matches!(class, FrameClass::Libc | FrameClass::Loader | FrameClass::Vdso)
}

/// The class of a whole file, by its name; `None` where it depends on the function.
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

/// What tells functions of one file apart.
#[derive(Debug, Default)]
pub(crate) struct Ownership {
    is_go: bool,
    /// The start-up code at the entry point, which comes with the C library.
    start: Option<Range<u64>>,
    /// Where the C library's functions lie in a static program.
    static_libc: Option<Range<u64>>,
    /// Whether only the program's own functions have call frame information, and none of a C library's
    /// that is built without (musl's).
    libc_is_bare: bool,
}

impl Ownership {
    /// Of most files slots and call frame information need not be read for that.
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

    /// Class of the function called `name` (as in the symbol table) around `addr`.
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
        // Cold parts lie apart from the function they belong to.
        let whole = name.and_then(|n| n.split_once(".cold")).and_then(|(whole, _)| names.find(whole));
        let addr = whole.map_or(addr, |function| function.start);
        // So do functions that are hardly ever called: `abort` lies before the program's own code.
        let is_apart = self.start.as_ref().is_some_and(|s| addr < s.start)
            && name.is_some_and(|n| n == "abort" || is_reserved(n.as_bytes()));
        if libc.contains(&addr) || is_apart { FrameClass::Libc } else { FrameClass::User }
    }
}

/// Whether `function`, demangled, in source file `file` is in a language's own library, compiled into `elf`.
pub(crate) fn is_runtimes(elf: &ElfFile, function: &str, file: Option<&str>) -> bool {
    if is_go(elf) {
        return go_class(function) == FrameClass::Runtime;
    }
    is_runtime_path(function) || file.is_some_and(is_runtime_file)
}

/// Whether a source file belongs to Rust's or C++'s standard library, or comes with a compiler:
/// their inlined functions, where DWARF does not give them whole names.
fn is_runtime_file(path: &str) -> bool {
    let rust =
        path.strip_prefix("/rustc/").is_some_and(|p| p.split_once('/').is_some_and(|(_, p)| p.starts_with("library/")));
    rust || path.contains("/lib/rustlib/src/rust/library/")
        || ["/include/c++/", "/lib/gcc/", "/lib/clang/"].iter().any(|folder| path.contains(folder))
}

fn go_class(name: &str) -> FrameClass {
    // A package path ends at the first dot behind its last slash; generics have slashes in brackets.
    let path = name.split(['[', '(']).next().unwrap_or(name);
    let first = path.split(['/', '.', ':']).next().unwrap_or(path);
    if GO_STD.contains(&first) { FrameClass::Runtime } else { FrameClass::User }
}

/// Whether the function belongs to Rust's or C++'s standard library, though it was compiled into
/// this file.
fn runtime_class(name: &str) -> Option<FrameClass> {
    if !name.starts_with('_') {
        return None;
    }
    const SUPPORT: &[&str] = &["_Unwind_", "__cxa_", "__gxx_", "__rust_", "__rdl_", "__rg_", "__rustc"];
    if SUPPORT.iter().any(|s| name.starts_with(s)) {
        // In a static program these may be the C library's: a report shows both alike.
        return Some(FrameClass::Runtime);
    }
    (name.starts_with("_Z") || name.starts_with("_R"))
        .then(|| demangle(name))
        .and_then(|n| is_runtime_path(&n).then_some(FrameClass::Runtime))
}

/// Whether a demangled name is one of Rust's or C++'s standard library.
pub(crate) fn is_runtime_path(name: &str) -> bool {
    let mut path = name;
    // `<&mut std::fs::File as std::io::Write>::write`: the type decides whose it is.
    while let Some(rest) =
        ["<", "&", "*const ", "*mut ", "mut ", "dyn ", "[", "("].iter().find_map(|p| path.strip_prefix(p))
    {
        path = rest;
    }
    ["std::", "core::", "alloc::", "__gnu_cxx::", "__cxxabiv1::"].iter().any(|p| path.starts_with(p))
}

/// Whether it is a program that brings its C library along.
pub(crate) fn is_static(elf: &ElfFile) -> bool {
    elf.entry() != 0 && !elf.has_interpreter() && !elf.needs_others
}

/// Whether Go's linker made it.
pub(crate) fn is_go(elf: &ElfFile) -> bool {
    [".gopclntab", ".go.buildinfo"].iter().any(|name| elf.section(name).is_some())
}

/// Where the C library lies in a static program: linkers put the members of archives behind the
/// program's own objects, so from its first function on.
fn static_libc(elf: &ElfFile, names: Functions<'_>, slots: &GotSlots, start: Option<Range<u64>>) -> Option<Range<u64>> {
    let start = start?;
    let main = start::main_of(elf, slots);
    // An optimised `main` lies in a section of its own, before everything else.
    let own = main.unwrap_or(0).max(start.end);
    let first = if names.is_empty() {
        // Stripped: all that is known for sure is what the start-up code calls.
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
    fn files_are_told_by_their_names() {
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
    fn standard_libraries_are_told_by_their_paths() {
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
