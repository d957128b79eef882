//! What tables of names are.

/// Numbers with their names, ascending.
pub(crate) type Names = [(u32, &'static str)];
