//! A quick hash for the judge's tables: with the standard one, made to withstand what this one
//! withstands by its seed, hashing was most of what judging took.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// A table; its order says nothing.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, Seeded>;
/// A set; its order says nothing.
pub(crate) type Set<K> = std::collections::HashSet<K, Seeded>;

/// Hashers that begin with this process's own random number, so that nobody can write a
/// recording whose keys all fall together.
#[derive(Clone, Copy)]
pub(crate) struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        static SEED: OnceLock<u64> = OnceLock::new();
        Self(*SEED.get_or_init(|| RandomState::new().hash_one(0u64)))
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// Multiplies to twice the width and folds the halves together, word by word.
pub(crate) struct Folded(u64);

/// An odd number with as many ones as zeroes: digits of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Another: digits of the square root of two.
const LAST: u64 = 0x6a09_e667_f3bc_c909;

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Folded {
    fn word(&mut self, word: u64) {
        self.0 = folded(self.0 ^ word, FACTOR);
    }
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        folded(self.0, LAST)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            self.word(u64::from_le_bytes(last));
        }
        self.word(bytes.len() as u64);
    }

    fn write_u8(&mut self, n: u8) {
        self.word(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.word(n.into());
    }

    fn write_i32(&mut self, n: i32) {
        self.word(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }
}

/// Numbers byte strings in the order they are first met.
///
/// Their bytes lie in one buffer: with a box each, allocating was much of what judging took.
#[derive(Default)]
pub(crate) struct Spellings {
    bytes: Vec<u8>,
    /// Where each one ends in `bytes`.
    ends: Vec<usize>,
    /// Open addressing: the upper half of a hash, and a number plus one; 0 is a free place.
    table: Vec<(u32, u32)>,
    seeded: Seeded,
}

impl Spellings {
    /// Its number. `None` where there are too many.
    pub(crate) fn number(&mut self, spelled: &[u8]) -> Option<u32> {
        if 2 * self.ends.len() >= self.table.len() {
            self.grow();
        }
        let hash = (self.seeded.hash_one(spelled) >> 32) as u32;
        let at = self.places(hash).find(|at| match self.table.get(*at) {
            Some((_, 0)) | None => true,
            Some((other, number)) => *other == hash && self.spelling(number - 1) == Some(spelled),
        })?;
        let place = self.table.get_mut(at)?;
        if place.1 == 0 {
            *place = (hash, u32::try_from(self.ends.len() + 1).ok()?);
            self.bytes.extend_from_slice(spelled);
            self.ends.push(self.bytes.len());
        }
        Some(place.1 - 1)
    }

    fn spelling(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..*self.ends.get(number)?)
    }

    /// Places to look at, the likeliest first.
    fn places(&self, hash: u32) -> impl Iterator<Item = usize> + use<> {
        let mask = self.table.len().wrapping_sub(1);
        (0..=mask).map(move |n| (hash as usize).wrapping_add(n) & mask)
    }

    /// Doubles the table, whose length is always a power of two.
    fn grow(&mut self) {
        let len = (2 * self.table.len()).max(64);
        let old = std::mem::replace(&mut self.table, vec![(0, 0); len]);
        for entry in old.into_iter().filter(|(_, number)| *number != 0) {
            let free = self.places(entry.0).find(|at| self.table.get(*at).is_some_and(|place| place.1 == 0));
            if let Some(place) = free.and_then(|at| self.table.get_mut(at)) {
                *place = entry;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn near_keys_fall_apart() {
        let seeded = Seeded::default();
        let tops: BTreeSet<u64> = (0..4096u64).map(|n| seeded.hash_one(n) >> 48).collect();
        let lows: BTreeSet<u64> = (0..4096u64).map(|n| seeded.hash_one(n << 32) & 0xffff).collect();
        // 4,096 draws of 65,536 leave some 3,970 different ones.
        assert!(tops.len() > 3_000 && lows.len() > 3_000, "{} {}", tops.len(), lows.len());
        let of = |bytes: &[u8]| seeded.hash_one(bytes);
        assert!(of(b"a") != of(b"a\0") && of(b"") != of(b"\0") && of(b"12345678") != of(b"123456789"));
    }

    #[test]
    fn the_same_spelling_has_the_same_number() {
        let mut spellings = Spellings::default();
        let all: Vec<String> = (0..5000).map(|n| "x".repeat(n % 7) + &n.to_string()).collect();
        let mut numbers = std::collections::BTreeMap::new();
        for text in all.iter().chain(&all).chain([&String::new()]) {
            let next = numbers.len() as u32;
            let expected = *numbers.entry(text.as_str()).or_insert(next);
            assert_eq!(spellings.number(text.as_bytes()), Some(expected), "{text}");
        }
    }
}
