//! Bounds that several questions about waits share.

/// Waits of a row, at least, for a claim: fewer may be chance.
pub(super) const LEAST_WAITS: u64 = 5;
/// Least share of a row's calls in windows, 0 to 1, for what is said of all of them.
pub(super) const MOSTLY: f64 = 0.7;
