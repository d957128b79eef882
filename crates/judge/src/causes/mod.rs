//! Causes as data: their files, patterns, facts and newer versions.

pub(crate) mod builtin;
pub(crate) mod catalogue;
pub(crate) mod fact;
pub(crate) mod pattern;
pub(crate) mod pattern_file;
pub(crate) mod target;
pub(crate) mod upgrade;
