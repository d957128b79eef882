//! Paths, and what a changed name concerns.

pub(crate) mod changed_names;
pub(crate) mod paths;
