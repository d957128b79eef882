//! The type of the tables of names.

/// Numbers with their names, ascending.
pub(crate) type Names = [(u32, &'static str)];
