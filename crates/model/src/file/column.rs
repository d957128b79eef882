//! Columns of a pprof profile beside those that every profile has.

/// A column of a profile: one value for each row.
#[derive(Clone, Debug)]
pub struct PprofColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its unit: `count`, `bytes`, `nanoseconds`.
    pub unit: &'a str,
    /// One value a row, in the order of [`crate::Recording::rows`]; 0 if the row has none.
    pub values: Vec<u64>,
}
