//! Where randomness of a run starts.

use std::time::{SystemTime, UNIX_EPOCH};

/// A seed that differs from run to run; it is kept with the results, so that they can be repeated.
pub(crate) fn fresh() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
}
