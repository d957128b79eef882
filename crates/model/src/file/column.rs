//! A column of a pprof profile, in addition to those that every profile has.

/// A column of a profile: one value for each row.
#[derive(Clone, Debug)]
pub struct PprofColumn<'a> {
    /// Name of the column.
    pub name: &'a str,
    /// Unit of the values: `count`, `bytes`, `nanoseconds`.
    pub unit: &'a str,
    /// One value a row, in the order of [`crate::Recording::rows`]; 0 if the row has none.
    pub values: Vec<u64>,
}
