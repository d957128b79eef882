//! The words of findings: mechanism, cures, names of functions.

pub(crate) mod language_api;
mod next_command;
pub(crate) mod phrasing;
