//! Sums by key.

use crate::collections::hash::Map;
use std::collections::BTreeMap;
use std::hash::Hash;

/// A table of sums. A sum that needs more than 64 bits, as those of a hostile recording may, is the largest number.
pub(crate) trait Sums<K>: Default {
    /// Adds a number to the sum of a key.
    fn add(&mut self, key: K, n: u64);

    /// Returns the sums of all parts.
    fn of(parts: impl IntoIterator<Item = (K, u64)>) -> Self {
        let mut sums = Self::default();
        parts.into_iter().for_each(|(key, n)| sums.add(key, n));
        sums
    }
}

impl<K: Eq + Hash> Sums<K> for Map<K, u64> {
    fn add(&mut self, key: K, n: u64) {
        let sum = self.entry(key).or_default();
        *sum = sum.saturating_add(n);
    }
}

impl<K: Ord> Sums<K> for BTreeMap<K, u64> {
    fn add(&mut self, key: K, n: u64) {
        let sum = self.entry(key).or_default();
        *sum = sum.saturating_add(n);
    }
}
