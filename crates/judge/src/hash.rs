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
}
