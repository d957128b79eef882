//! The language, and its version, of the code that makes the calls.
//!
//! A cure for another language is worse than none, so a language is named only if frames, modules or the program tell
//! it. A script's language comes from the lines read from its interpreter, from the interpreter's file on the stack,
//! or from the program that runs; a compiled language from source files and from the form of functions' names.

use serde::Deserialize;
use std::cmp::Ordering;
use std::fmt;
use systoll_model::{Frame, FrameClass, Language as ScriptLanguage, Process};

macro_rules! languages {
    ($($(#[$doc:meta])* $language:ident = $name:literal, $shown:literal, [$($file:literal),*], [$($also:literal),*];)*) => {
        /// A language of programs and scripts for which there may be cures.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(try_from = "String")]
        pub enum CodeLanguage {
            $($(#[$doc])* $language,)*
        }

        impl CodeLanguage {
            /// All languages.
            pub const ALL: &[Self] = &[$(Self::$language),*];

            /// Returns the language's name in causes' files and in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$language => $name,)* }
            }

            /// Returns the language's name for readers.
            pub fn shown(self) -> &'static str {
                match self { $(Self::$language => $shown,)* }
            }

            /// Returns other names for the language: endings of its files, short forms.
            pub fn aliases(self) -> &'static [&'static str] {
                match self { $(Self::$language => &[$($also),*],)* }
            }

            /// Returns the names, without versions, of programs and libraries that run the
            /// language.
            pub fn files(self) -> &'static [&'static str] {
                match self { $(Self::$language => &[$($file),*],)* }
            }
        }
    };
}

languages! {
    /// C.
    C = "c", "C", [], [];
    /// C++.
    Cpp = "c++", "C++", [], ["cpp", "cxx", "cc"];
    /// Rust.
    Rust = "rust", "Rust", [], ["rs"];
    /// Go.
    Go = "go", "Go", [], ["golang"];
    /// Python.
    Python = "python", "Python", ["python", "libpython", "pypy", "libpypy"], ["py", "python3"];
    /// Ruby.
    Ruby = "ruby", "Ruby", ["ruby", "libruby"], ["rb"];
    /// Perl.
    Perl = "perl", "Perl", ["perl", "libperl"], ["pl"];
    /// PHP.
    Php = "php", "PHP", ["php", "php-cgi", "php-fpm", "libphp"], [];
    /// JavaScript, as Node and its like run it.
    JavaScript = "javascript", "JavaScript", ["node", "nodejs", "libnode", "bun", "deno"], ["js", "ts", "typescript", "mjs"];
    /// Java and other languages of its virtual machine.
    Java = "java", "Java", ["java", "libjvm", "libjava", "libnio"], ["kotlin", "scala", "jvm"];
    /// Any POSIX shell.
    Shell = "shell", "shell", ["sh", "dash", "ash", "ksh", "mksh", "yash", "zsh"], ["posix-shell"];
    /// Bash: a shell with expansions of its own.
    Bash = "bash", "bash", ["bash"], [];
    /// Fish: a shell with a syntax of its own.
    Fish = "fish", "fish", ["fish"], [];
    /// Awk.
    Awk = "awk", "awk", ["awk", "mawk", "gawk", "nawk", "original-awk"], [];
    /// Tcl.
    Tcl = "tcl", "Tcl", ["tclsh", "wish", "libtcl"], [];
    /// Lua.
    Lua = "lua", "Lua", ["lua", "luajit", "liblua", "libluajit"], [];
    /// R.
    R = "r", "R", ["R", "libR"], [];
    /// Julia.
    Julia = "julia", "Julia", ["julia", "libjulia"], ["jl"];
    /// Erlang and Elixir.
    Erlang = "erlang", "Erlang", ["beam.smp", "erl"], ["elixir", "ex"];
    /// C# and other languages of .NET.
    CSharp = "c#", "C#", ["dotnet", "libcoreclr", "mono"], ["cs", "csharp", ".net"];
    /// Scheme.
    Scheme = "scheme", "Scheme", ["guile", "libguile"], ["scm"];
    /// Octave.
    Octave = "octave", "Octave", ["octave", "octave-cli", "octave-gui", "liboctinterp"], [];
    /// OCaml.
    OCaml = "ocaml", "OCaml", ["ocamlrun", "ocaml"], ["ml"];
}

impl CodeLanguage {
    /// Returns the language with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|language| language.name() == name)
    }

    /// Returns the language with this name or alias, or with an interpreter of this name.
    pub fn meant(name: &str) -> Option<Self> {
        let also = |language: &Self| language.aliases().contains(&name) || language.files().contains(&name);
        Self::named(name).or_else(|| Self::ALL.iter().copied().find(also))
    }

    /// Returns the language with this name, for tables that are made at compile time. A name that no language has
    /// does not compile.
    pub(crate) const fn known(name: &str) -> Self {
        let mut at = 0;
        while !same(Self::ALL[at].name().as_bytes(), name.as_bytes()) {
            at += 1;
        }
        Self::ALL[at]
    }

    /// Returns true if advice for `general` holds for this language too: bash is a shell.
    pub(crate) fn is_a(self, general: Self) -> bool {
        self == general || (self, general) == (Self::Bash, Self::Shell)
    }

    pub(crate) fn of_script(language: ScriptLanguage) -> Self {
        match language {
            ScriptLanguage::Python => Self::Python,
            ScriptLanguage::Ruby => Self::Ruby,
            ScriptLanguage::JavaScript => Self::JavaScript,
            ScriptLanguage::Java => Self::Java,
            ScriptLanguage::Bash => Self::Bash,
            ScriptLanguage::Shell => Self::Shell,
            ScriptLanguage::Perl => Self::Perl,
            ScriptLanguage::Php => Self::Php,
            ScriptLanguage::Lua => Self::Lua,
        }
    }

    /// Returns the language whose interpreter the process is.
    pub(crate) fn of_program(program: &Process) -> Option<Self> {
        Self::of_file(program.name()).or_else(|| applet(program))
    }

    /// Returns the language whose interpreter has this file name, such as `python3.11`.
    pub fn of_file(name: &str) -> Option<Self> {
        let stem = stem(name);
        Self::ALL.iter().copied().find(|language| language.files().contains(&stem))
    }
}

impl TryFrom<String> for CodeLanguage {
    type Error = String;

    /// Reads a language's name in a cause's file.
    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|language| language.name()).collect();
            format!("{name:?} is no language that cures may be for: {}", known.join(", "))
        })
    }
}

/// Returns true if two texts are equal, at compile time.
const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// A version: numbers between dots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Version(Vec<u32>);

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is no version: numbers between dots"))
    }
}

impl Version {
    /// Reads a version such as `3.14`. Returns `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.split('.').map(|n| n.parse().ok()).collect::<Option<Vec<u32>>>().map(Self)
    }

    /// Compares as many numbers as both versions have: a 3.14.1 is equal to 3.14.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let both = self.0.len().min(other.0.len());
        self.0[..both].cmp(&other.0[..both])
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

/// Returns an interpreter's file name without its version: `python3.11`, `libpython3.11.so.1.0`, `php-fpm8.2`,
/// `libruby-3.1.so`.
fn stem(name: &str) -> &str {
    let name = name.split_once(".so").map_or(name, |(stem, _)| stem);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    bare.trim_end_matches(['-', '_'])
}

/// Returns the version in a file's name.
pub(crate) fn version_of(name: &str) -> Option<Version> {
    let (stem, behind) = name.split_once(".so").map_or((name, ""), |(stem, behind)| (stem, behind));
    let numbers = |text: &str| {
        let start = text.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        text.get(start..).map(|n| n.trim_matches('.')).filter(|n| !n.is_empty()).and_then(Version::parse)
    };
    // libperl.so.5.36: the version is behind the suffix if there is none before it.
    numbers(stem).or_else(|| numbers(behind))
}

/// Returns the language that BusyBox runs, by the name under which it was called.
pub(crate) fn applet(program: &Process) -> Option<CodeLanguage> {
    let called = || program.argv.first().map(|word| word.rsplit('/').next().unwrap_or(word).trim_start_matches('-'));
    if program.name() == "busybox" { CodeLanguage::of_file(called()?) } else { None }
}

/// Returns the language of compiled code: by the user's own frame, else by the frames around it.
pub(crate) fn compiled(user: Option<&Frame>, frames: &[&Frame]) -> Option<CodeLanguage> {
    let own = frames.iter().copied().filter(|f| !matches!(f.class, FrameClass::Libc | FrameClass::Loader));
    user.and_then(by_source)
        .or_else(|| frames.iter().find_map(|f| by_runtime(f)))
        .or_else(|| own.clone().find_map(by_source))
        .or_else(|| user.and_then(by_name))
}

fn by_source(frame: &Frame) -> Option<CodeLanguage> {
    // The last location is the frame's own function; the others were inlined into it.
    let file = frame.locations.last()?.file.as_deref()?;
    match file.rsplit_once('.')?.1 {
        "c" => Some(CodeLanguage::C),
        "cc" | "cpp" | "cxx" | "C" | "c++" | "hpp" | "hh" | "hxx" | "tcc" => Some(CodeLanguage::Cpp),
        "rs" => Some(CodeLanguage::Rust),
        "go" => Some(CodeLanguage::Go),
        "java" | "kt" | "scala" => Some(CodeLanguage::Java),
        _ => None,
    }
}

/// Returns the language by functions that only programs of that language have on their stacks.
fn by_runtime(frame: &Frame) -> Option<CodeLanguage> {
    let name = frame.function();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
    if starts(&["runtime.goexit", "runtime.main", "runtime.mcall", "runtime.mstart", "runtime.systemstack"]) {
        return Some(CodeLanguage::Go);
    }
    if starts(&["std::rt::", "std::sys::", "std::io::", "core::ops::", "core::ptr::", "alloc::", "<alloc::", "<std::"])
    {
        return Some(CodeLanguage::Rust);
    }
    if starts(&["caml_", "camlStdlib"]) {
        return Some(CodeLanguage::OCaml);
    }
    starts(&["std::basic_", "std::ostream", "std::__", "__gnu_cxx::", "operator new"]).then_some(CodeLanguage::Cpp)
}

/// Returns the language by the form of a function's name: `run(int)` is C++, a plain word is C.
fn by_name(frame: &Frame) -> Option<CodeLanguage> {
    let name = frame.function();
    if name.is_empty() || name == "?" || name.contains("+0x") {
        return None;
    }
    if name.contains('(') {
        return Some(CodeLanguage::Cpp);
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.split_once(".constprop")
        .or(name.split_once(".part"))
        .or(name.split_once(".isra"))
        .map_or(name, |(n, _)| n)
        .chars()
        .all(word)
        .then_some(CodeLanguage::C)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::Location;

    #[test]
    fn interpreters_are_known_by_their_files() {
        use CodeLanguage::*;
        for (file, language, version) in [
            ("python3.11", Some(Python), Some("3.11")),
            ("libpython3.11.so.1.0", Some(Python), Some("3.11")),
            ("ruby3.1", Some(Ruby), Some("3.1")),
            ("libruby-3.1.so.3.1", Some(Ruby), Some("3.1")),
            ("perl", Some(Perl), None),
            ("libperl.so.5.36", Some(Perl), Some("5.36")),
            ("php-fpm8.2", Some(Php), Some("8.2")),
            ("libnode.so.108", Some(JavaScript), Some("108")),
            ("libjvm.so", Some(Java), None),
            ("bash", Some(Bash), None),
            ("dash", Some(Shell), None),
            ("mawk", Some(Awk), None),
            ("tclsh8.6", Some(Tcl), Some("8.6")),
            ("libuv.so.1", None, None),
            ("pythonista", None, None),
            ("basher", None, None),
        ] {
            assert_eq!(CodeLanguage::of_file(file), language, "{file}");
            if language.is_some() {
                assert_eq!(version_of(file), version.and_then(Version::parse), "{file}");
            }
        }
    }

    #[test]
    fn versions_compare_as_far_as_both_go() {
        let compare = |a: &str, b: &str| Version::parse(a).unwrap().compare(&Version::parse(b).unwrap());
        assert_eq!(compare("3.9", "3.14"), Ordering::Less);
        assert_eq!(compare("3.14.1", "3.14"), Ordering::Equal);
        assert_eq!(compare("8.2", "8.1"), Ordering::Greater);
        assert!(Version::parse("3.x").is_none() && Version::parse("").is_none() && Version::parse("3..1").is_none());
    }

    fn frame(function: &str, file: Option<&str>) -> Frame {
        let location = Location { function: function.into(), file: file.map(Into::into), line: Some(1) };
        Frame { locations: vec![location], ..Frame::default() }
    }

    #[test]
    fn compiled_languages_are_known_by_sources_and_names() {
        use CodeLanguage::*;
        for (function, file, language) in [
            ("log_line", Some("app.c"), Some(C)),
            ("log_line", None, Some(C)),
            ("log_line.constprop.0", None, Some(C)),
            ("app::main", Some("src/main.rs"), Some(Rust)),
            ("Log::line(int)", None, Some(Cpp)),
            ("main.main", Some("/x/main.go"), Some(Go)),
            ("app+0x1234", None, None),
            ("app::main", None, None),
        ] {
            assert_eq!(compiled(Some(&frame(function, file)), &[]), language, "{function}");
        }
        let lang_start = frame("std::rt::lang_start_internal", None);
        assert_eq!(compiled(Some(&frame("app::main", None)), &[&lang_start]), Some(Rust));
        let goexit = frame("runtime.goexit.abi0", None);
        assert_eq!(compiled(Some(&frame("main.main", None)), &[&goexit]), Some(Go));
    }

    #[test]
    fn names_are_told_apart() {
        for language in CodeLanguage::ALL {
            assert_eq!(CodeLanguage::named(language.name()), Some(*language));
        }
        assert!(CodeLanguage::Bash.is_a(CodeLanguage::Shell) && !CodeLanguage::Shell.is_a(CodeLanguage::Bash));
        assert_eq!(CodeLanguage::named("Python"), None);
    }
}
