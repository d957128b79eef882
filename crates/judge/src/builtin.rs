//! The files of the causes that come with systoll. What calls look like that they explain is known without reading them.

use crate::fact::{AskedFacts, Fact};
use crate::finding::Kind;
use crate::language::CodeLanguage;
use crate::pattern::{ArgValues, List, Pattern};
use crate::target::Target;
use std::borrow::Cow;
use systoll_model::Sysno;

/// A file under `causes/`.
pub(crate) struct File {
    /// The id of its cause.
    pub id: &'static str,
    /// What stands in it, as JSON.
    pub json: &'static str,
    /// What stands in it.
    #[cfg(test)]
    pub toml: &'static str,
    /// Its patterns.
    pub matches: &'static [Pattern],
}

/// All of them, by id.
pub(crate) static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/causes.rs"));
