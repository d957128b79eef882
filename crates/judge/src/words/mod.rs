//! The words of findings: mechanism, cures, names of functions.

pub(crate) mod language_api;
pub(crate) mod phrasing;
