//! The languages whose lines are read from their interpreter's memory.

use super::interpreter::{Candidate, Runtime};
use super::{bash, dash, hotspot, lua, luajit, perl, php, python, ruby, v8, zsh};
use crate::elf::ElfFile;
use std::sync::Arc;

/// Functions that recognise the files of a language.
struct Files {
    /// Function that returns the interpreter in a file, if the file holds one of this language.
    recognise: fn(Candidate<'_>) -> Option<Box<dyn Runtime>>,
    /// Function that returns true if a path is one of the native modules that come with the
    /// interpreter.
    is_bundled: fn(&str) -> bool,
}

const LANGUAGES: &[Files] = &[
    Files { recognise: python::recognise, is_bundled: python::is_bundled },
    Files { recognise: ruby::recognise, is_bundled: ruby::is_bundled_module },
    Files { recognise: bash::recognise, is_bundled: bash::is_bundled },
    Files { recognise: dash::recognise, is_bundled: dash::is_bundled },
    Files { recognise: perl::recognise, is_bundled: perl::is_bundled },
    Files { recognise: lua::recognise, is_bundled: lua::is_bundled },
    Files { recognise: luajit::recognise, is_bundled: luajit::is_bundled },
    Files { recognise: php::recognise, is_bundled: php::is_bundled },
    Files { recognise: zsh::recognise, is_bundled: zsh::is_bundled },
    Files { recognise: hotspot::recognise, is_bundled: hotspot::is_bundled },
    Files { recognise: v8::recognise, is_bundled: v8::is_bundled },
];

/// Returns the interpreter in a file, if the file holds one.
pub(crate) fn recognise(elf: &ElfFile, path: &str) -> Option<Arc<dyn Runtime>> {
    let file = Candidate { elf, path };
    LANGUAGES.iter().find_map(|language| (language.recognise)(file)).map(Arc::from)
}

/// Returns true if a path is one of the native modules that come with an interpreter.
pub(crate) fn is_bundled(path: &str) -> bool {
    LANGUAGES.iter().any(|language| (language.is_bundled)(path))
}
