//! Defines how soon another process may see a change.

/// Least time between two looks of another process, ns. It does not see a value that lasts for
/// less, and a file that is opened again sooner is not opened for news.
pub(super) const OTHERS_LOOK_NS: u64 = 10_000_000;
