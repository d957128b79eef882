//! Values beside those that every profile has.

/// A value that goes with each row of a profile.
#[derive(Clone, Debug)]
pub struct PprofColumn<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Its unit: `count`, `bytes`, `nanoseconds`.
    pub unit: &'a str,
    /// One a row, in the order of [`crate::Recording::rows`]; 0 where there is none.
    pub values: Vec<u64>,
}
