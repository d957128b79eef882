//! The files of the causes that come with systoll. Their patterns are compiled in, so that they match without parsing
//! a file.

use crate::fact::{AskedFacts, Fact};
use crate::finding::Kind;
use crate::language::CodeLanguage;
use crate::pattern::{ArgValues, List, Pattern};
use crate::target::Target;
use std::borrow::Cow;
use systoll_model::Sysno;

/// A file under `causes/`.
pub(crate) struct File {
    /// The id of the file's cause.
    pub id: &'static str,
    /// The file's content, converted to JSON.
    pub json: &'static str,
    /// The file's content.
    #[cfg(test)]
    pub toml: &'static str,
    /// The patterns of the file's cause.
    pub matches: &'static [Pattern],
}

/// All built-in files, by id.
pub(crate) static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/causes.rs"));
