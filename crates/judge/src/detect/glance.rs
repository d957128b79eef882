//! How often others look at what a program changes.

/// Least time from one look of a reader to the next, ns: a value that lasts for less is not seen, and a file opened again
/// sooner is not opened for news.
pub(super) const GLANCE: u64 = 10_000_000;
