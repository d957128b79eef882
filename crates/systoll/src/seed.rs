//! Chooses the seed of a run's randomness.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a seed that differs from run to run. It is stored with the results, which makes them
/// repeatable.
pub(crate) fn fresh() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
}
