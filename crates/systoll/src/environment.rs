//! Reads the environment variables for systoll: one table, which the man pages print, and a reader
//! for each.
//!
//! Libraries read some of the variables themselves; no other file of this crate does (xtask's tidy
//! rules hold it).

use std::ffi::OsString;

/// One line of the table: a variable, or several with one meaning.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The variable's name; several names are separated by `, `.
    pub names: &'static str,
    /// The variable's meaning, for the man pages.
    pub about: &'static str,
}

const fn variable(names: &'static str, about: &'static str) -> Variable {
    Variable { names, about }
}

/// All environment variables that systoll and its libraries read.
pub const VARIABLES: &[Variable] = &[
    variable("NO_COLOR", "Set to anything, no colours are used; TERM=dumb does the same. --color overrides both."),
    variable("COLUMNS", "The width of lines where no terminal tells one."),
    variable(
        "LC_ALL, LC_CTYPE, LANG",
        "The first that is set names the locale. Where it is no UTF-8 one, reports are in ASCII: us for \u{b5}s, x for \u{d7}.",
    ),
    variable(
        "SYSTOLL_SERVICE, SYSTOLL_RELEASE, SYSTOLL_HOST",
        "What --service, --release and --host are if not given.",
    ),
    variable(
        "SYSTOLL_PYTHON",
        "The Python that runs fleet's engine; else systoll's own in XDG_DATA_HOME, else python3.",
    ),
    variable(
        "SYSTOLL_DEBUG_PATH",
        "Folders with debug files, with a colon between; looked into before /usr/lib/debug.",
    ),
    variable("DEBUGINFOD_URLS", "Where it is set, debuginfod-find fetches debug files that are nowhere here."),
    variable("XDG_CACHE_HOME", "The folder of caches; ~/.cache where it is not set."),
    variable("XDG_DATA_HOME", "The folder of fleet's Python packages; ~/.local/share where it is not set."),
    variable("TMPDIR", "Where demo, bisect and prove put what is gone when they end."),
    variable("CC", "The C compiler that builds the programs of systoll demo."),
    variable("BROWSER", "What --open opens a page with; xdg-open where it is not set."),
    variable("HOME", "The folder that ~ stands for."),
    variable("PATH", "The folders of commands, and of the helpers that systoll starts."),
    variable("LD_PRELOAD", "Libraries that remain loaded when a cure's library is added."),
    variable("TERM", "dumb: no colours."),
];

/// Returns true unless `NO_COLOR` or `TERM=dumb` forbids colours.
pub(crate) fn allows_colours() -> bool {
    set("NO_COLOR").is_none() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns the width of lines that `COLUMNS` asks for.
pub(crate) fn columns() -> Option<usize> {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0)
}

/// Returns the name of the locale, as setlocale(3) looks for it.
pub(crate) fn locale() -> Option<String> {
    let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(text)
}

/// Returns the Python that the user chose for fleet's engine.
pub(crate) fn python() -> Option<OsString> {
    set("SYSTOLL_PYTHON")
}

/// Returns the program that opens pages.
pub(crate) fn browser() -> OsString {
    set("BROWSER").unwrap_or_else(|| "xdg-open".into())
}

/// Returns the libraries that are preloaded into every program already.
pub(crate) fn preload() -> Option<OsString> {
    std::env::var_os("LD_PRELOAD")
}

/// Returns true if a folder of `PATH` has a file of this name.
pub(crate) fn is_on_path(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

/// Returns true if the variable `name` has this value already; an unset variable counts as empty.
pub(crate) fn has(name: &str, value: &str) -> bool {
    std::env::var_os(name).unwrap_or_default() == *value
}

fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
