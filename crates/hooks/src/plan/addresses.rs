//! Sets of addresses in code, and where something may jump to.

use super::image::Region;

/// A set of addresses in code.
#[derive(Clone)]
pub(super) struct Set {
    /// Start of a region, its length in bytes, one bit a byte.
    regions: Vec<(u64, u64, Vec<u64>)>,
}

impl Set {
    pub(super) fn new(code: &[Region<'_>]) -> Self {
        let region = |r: &Region<'_>| (r.start, r.bytes.len() as u64, vec![0; r.bytes.len().div_ceil(64)]);
        Self { regions: code.iter().map(region).collect() }
    }

    fn find(&self, address: u64) -> Option<(usize, usize, u64)> {
        // Nearly everything lies in one region; there are seldom more than six.
        let n = self.regions.partition_point(|r| r.0 <= address).checked_sub(1)?;
        let (start, len, _) = self.regions.get(n)?;
        let bit = address - start;
        (bit < *len).then_some((n, (bit / 64) as usize, 1 << (bit % 64)))
    }

    /// Adds `address` and returns whether it lies in code at all.
    pub(super) fn mark(&mut self, address: u64) -> bool {
        let Some((n, word, bit)) = self.find(address) else { return false };
        if let Some(word) = self.regions.get_mut(n).and_then(|r| r.2.get_mut(word)) {
            *word |= bit;
        }
        true
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        let word = |(n, word, bit): (usize, usize, u64)| Some(self.regions.get(n)?.2.get(word)? & bit != 0);
        self.find(address).and_then(word).unwrap_or(false)
    }
}

/// Where something may jump to.
pub(super) struct Targets {
    all: Set,
    /// Those told of by what is surely code, or by a table or symbol.
    sure: Set,
}

impl Targets {
    pub(super) fn new(code: &[Region<'_>]) -> Self {
        let none = Set::new(code);
        Self { all: none.clone(), sure: none }
    }

    /// Adds `address` and returns whether it lies in code at all.
    pub(super) fn mark(&mut self, address: u64, sure: bool) -> bool {
        if sure {
            self.sure.mark(address);
        }
        self.all.mark(address)
    }

    /// Whether something may jump to `address`.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.all.contains(address)
    }

    /// Whether something beyond doubt leads to `address`.
    pub(super) fn is_sure(&self, address: u64) -> bool {
        self.sure.contains(address)
    }

    /// All addresses of `start..end` that something beyond doubt leads to.
    pub(super) fn sure_within(&self, start: u64, end: u64) -> Vec<u64> {
        (start..end).filter(|address| self.is_sure(*address)).collect()
    }

    /// The first target strictly between `start` and `end`.
    pub(super) fn inside(&self, start: u64, end: u64) -> Option<u64> {
        (start.saturating_add(1)..end).find(|address| self.contains(*address))
    }
}
