//! Sets of addresses in code, and the targets of jumps.

use super::image::Region;

/// A set of addresses in code.
pub(super) struct Set {
    /// Start, length in bytes, and one bit a byte, of each region.
    regions: Vec<(u64, u64, Vec<u64>)>,
    /// Index of the longest region, which contains nearly all code.
    longest: usize,
}

impl Set {
    pub(super) fn new(code: &[Region<'_>]) -> Self {
        let region = |r: &Region<'_>| (r.start, r.bytes.len() as u64, vec![0; r.bytes.len().div_ceil(64)]);
        let longest = code.iter().enumerate().max_by_key(|(_, r)| r.bytes.len()).map_or(0, |(n, _)| n);
        Self { regions: code.iter().map(region).collect(), longest }
    }

    fn find(&self, address: u64) -> Option<(usize, usize, u64)> {
        let is_there = self.regions.get(self.longest).is_some_and(|r| address.wrapping_sub(r.0) < r.1);
        let n =
            if is_there { self.longest } else { self.regions.partition_point(|r| r.0 <= address).checked_sub(1)? };
        let (start, len, _) = self.regions.get(n)?;
        let bit = address - start;
        (bit < *len).then_some((n, (bit / 64) as usize, 1 << (bit % 64)))
    }

    /// Adds `address` to the set. Returns true if it lies in code.
    pub(super) fn mark(&mut self, address: u64) -> bool {
        let Some((n, word, bit)) = self.find(address) else { return false };
        if let Some(word) = self.regions.get_mut(n).and_then(|r| r.2.get_mut(word)) {
            *word |= bit;
        }
        true
    }

    /// Adds `address` to the set. Returns true if it lies in code and is new.
    pub(super) fn add_new(&mut self, address: u64) -> bool {
        let Some((n, word, bit)) = self.find(address) else { return false };
        let Some(word) = self.regions.get_mut(n).and_then(|r| r.2.get_mut(word)) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        let word = |(n, word, bit): (usize, usize, u64)| Some(self.regions.get(n)?.2.get(word)? & bit != 0);
        self.find(address).and_then(word).unwrap_or(false)
    }

    /// Adds the addresses of another set of the same code.
    fn add(&mut self, other: &Self) {
        let words = self.regions.iter_mut().zip(&other.regions).flat_map(|(own, other)| own.2.iter_mut().zip(&other.2));
        words.for_each(|(own, other)| *own |= other);
    }

    /// Returns the addresses in `start..end`, ascending. In large files nearly all words of bits are zero.
    fn within(&self, start: u64, end: u64) -> impl Iterator<Item = u64> {
        let first = self.regions.partition_point(|(at, len, _)| at.saturating_add(*len) <= start);
        let regions = self.regions.get(first..).unwrap_or_default().iter().take_while(move |r| r.0 < end);
        regions.flat_map(move |(at, len, words)| {
            let (from, to) = (start.saturating_sub(*at), end.saturating_sub(*at).min(*len));
            let (n, behind) = ((from / 64) as usize, to.div_ceil(64) as usize);
            let words = words.get(n..behind).unwrap_or_default().iter().zip(n as u64..);
            let marked =
                words.filter(|(word, _)| **word != 0).flat_map(|(word, n)| bits(*word).map(move |bit| 64 * n + bit));
            marked.filter(move |offset| (from..to).contains(offset)).map(move |offset| at + offset)
        })
    }
}

/// Returns the bits that are set in a word, ascending.
fn bits(word: u64) -> impl Iterator<Item = u64> {
    let rest = |word: &u64| Some(word & word.wrapping_sub(1)).filter(|rest| *rest != 0);
    let words = std::iter::successors(Some(word).filter(|word| *word != 0), rest);
    words.map(|word| word.trailing_zeros().into())
}

/// Addresses to which something may jump.
pub(super) struct Targets {
    /// Targets found in code that is certain, or in a table or symbol.
    sure: Set,
    /// All other targets, which may repeat some of the certain ones.
    unsure: Set,
}

impl Targets {
    pub(super) fn new(code: &[Region<'_>]) -> Self {
        Self { sure: Set::new(code), unsure: Set::new(code) }
    }

    /// Adds a target. Returns true if it lies in code.
    pub(super) fn mark(&mut self, address: u64, sure: bool) -> bool {
        if sure { self.sure.mark(address) } else { self.unsure.mark(address) }
    }

    /// Adds the targets of another walk over the same code.
    pub(super) fn add(&mut self, other: &Self) {
        self.sure.add(&other.sure);
        self.unsure.add(&other.unsure);
    }

    /// Returns true if something may jump to `address`.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.sure.contains(address) || self.unsure.contains(address)
    }

    /// Returns true if something certainly leads to `address`.
    pub(super) fn is_sure(&self, address: u64) -> bool {
        self.sure.contains(address)
    }

    /// Returns the addresses in `start..end` to which something certainly leads.
    pub(super) fn sure_within(&self, start: u64, end: u64) -> Vec<u64> {
        self.sure.within(start, end).collect()
    }

    /// Returns the first target strictly between `start` and `end`.
    pub(super) fn inside(&self, start: u64, end: u64) -> Option<u64> {
        (start.saturating_add(1)..end).find(|address| self.contains(*address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn iteration_within_a_range_equals_single_lookups(
            marked in prop::collection::vec(0u64..1500, 0..60),
            start in 0u64..1500,
            len in 0u64..1500,
        ) {
            let bytes = [0; 1000];
            let code = [(100, 70), (170, 1), (300, 1000)].map(|(start, len)| Region { start, bytes: &bytes[..len] });
            let mut set = Set::new(&code);
            for address in &marked {
                set.mark(*address);
            }
            let one_by_one: Vec<u64> = (start..start + len).filter(|address| set.contains(*address)).collect();
            prop_assert_eq!(set.within(start, start + len).collect::<Vec<_>>(), one_by_one);
        }
    }
}
