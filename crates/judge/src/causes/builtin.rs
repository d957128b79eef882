//! The files of the causes that come with systoll. Their patterns are compiled in, so that they match without parsing
//! a file.

use crate::causes::fact::{AskedFacts, Fact};
use crate::causes::pattern::{ArgValues, List, Pattern};
use crate::causes::target::Target;
use crate::code::language::CodeLanguage;
use crate::results::finding::Kind;
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
